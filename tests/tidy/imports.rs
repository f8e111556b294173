//! Holds what every file under `src` names against the dependency table.
//!
//! Promises: a module without a row is refused as much as a name that its row does not allow; a refusal says the file, the line, what was
//! named, and the row's reason.
//! Does not: follow re-exports: a `pub use` of what a row forbids is refused where it stands.

use crate::{
    source::{File, Named, Source, module},
    table::{FOREIGN, Foreign, MODULES, Module},
};
use std::collections::BTreeSet;

/// What is wrong with the imports of `files`.
pub fn complaints(files: &[File]) -> Vec<String> {
    let own: Vec<&File> = files.iter().filter(|file| module(&file.name).is_some()).collect();
    let modules: BTreeSet<String> = own.iter().filter_map(|file| module(&file.name)).collect();
    let read: Vec<(&File, Source)> = own.iter().map(|file| (*file, Source::read(file, &modules))).collect();
    let for_tests: Vec<&str> = read.iter().flat_map(|(_, source)| &source.test_modules).map(String::as_str).collect();
    read.iter().flat_map(|(file, source)| of_file(file, source, &for_tests)).collect()
}

fn of_file(file: &File, source: &Source, for_tests: &[&str]) -> Vec<String> {
    let name = module(&file.name).unwrap_or_default();
    let Some(row) = row(&name) else {
        return vec![format!(
            "{}:1: the module {name} has no row in tests/tidy/table.rs; add one that says what it may name and why",
            file.name
        )];
    };
    let test_file = for_tests.iter().any(|test| within(&name, test));
    let check = |named: &Named| {
        let named = Named { test: named.test || test_file, ..named.clone() };
        ours(row, &named).or_else(|| foreign(&name, &named)).map(|text| format!("{}:{}: {text}", file.name, named.line))
    };
    source.paths.iter().filter_map(check).collect()
}

/// The row of a module: that of the longest prefix of its path.
fn row(module: &str) -> Option<&'static Module> {
    MODULES.iter().filter(|row| within(module, row.path)).max_by_key(|row| row.path.len())
}

fn within(module: &str, parent: &str) -> bool {
    module == parent || module.strip_prefix(parent).is_some_and(|rest| rest.starts_with("::"))
}

fn ours(from: &Module, named: &Named) -> Option<String> {
    let (first, rest) = named.path.split_first()?;
    if first != "crate" || rest.is_empty() {
        return None;
    }
    let to = row(&rest.join("::"))?;
    let allowed = to.path == from.path || from.may.iter().any(|may| *may == "*" || *may == to.path);
    if allowed || named.test && from.tests.contains(&to.path) {
        return None;
    }
    let (path, from, reason) = (named.path.join("::"), from.path, from.reason);
    Some(format!("{from} may not name {path} ({from}: {reason}); take what it needs as an argument, or move the code to a layer that may"))
}

fn foreign(module: &str, named: &Named) -> Option<String> {
    let row = FOREIGN.iter().find(|row| names(row, &named.path))?;
    if row.only.iter().any(|only| within(module, only)) || named.test && row.tests {
        return None;
    }
    let (path, only, reason) = (named.path.join("::"), row.only.join(", "), row.reason);
    Some(format!("{module} may not name {path}: {reason}; only {only} may (tests/tidy/table.rs)"))
}

fn names(row: &Foreign, path: &[String]) -> bool {
    let path = path.join("::");
    match row.path.strip_prefix('*') {
        Some(end) => path.ends_with(end),
        None => within(&path, row.path),
    }
}

/// A cycle among the rows of the table, as the modules on it.
pub fn cycle(modules: &[Module]) -> Option<Vec<&str>> {
    modules.iter().find_map(|row| back_to(modules, row.path, row.path, &mut vec![row.path]))
}

fn back_to<'a>(modules: &'a [Module], goal: &str, at: &str, path: &mut Vec<&'a str>) -> Option<Vec<&'a str>> {
    for next in modules.iter().filter(|row| row.path == at).flat_map(|row| row.may) {
        if *next == goal {
            return Some(path.clone());
        }
        if *next != "*" && !path.contains(next) {
            path.push(next);
            if let Some(found) = back_to(modules, goal, next, path) {
                return Some(found);
            }
            path.pop();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(name: &str, text: &str) -> Vec<String> {
        let file = |name: &str, text: &str| File { name: name.to_owned(), text: text.to_owned() };
        complaints(&[
            file("src/store.rs", "#[cfg(test)] mod model;"),
            file("src/store/sqlite.rs", ""),
            file("src/store/model.rs", ""),
            file(name, text),
        ])
    }

    fn refused(name: &str, text: &str) -> bool {
        !complaints_of(name, text).is_empty()
    }

    #[test]
    fn a_refusal_says_where_what_and_why() {
        let found =
            complaints_of("src/domain/cell.rs", "//! x\n\nuse crate::{\n    transcript::Packed,\n    store::{self, sqlite::Open},\n};\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].starts_with("src/domain/cell.rs:5: domain may not name crate::store::sqlite::Open (domain: words and rules"),
            "{found:?}"
        );
    }

    #[test]
    fn every_way_to_write_a_path_is_seen() {
        for text in [
            "use crate::store::sqlite::open;",
            "use super::super::store::sqlite::open;",
            "use crate::{auth::Role, store::{Error, sqlite as db}};",
            "use crate::store; fn f() { store::sqlite::open() }",
            "use crate as house; fn f() { house::store::sqlite::open() }",
            "fn f() { println!(\"{}\", crate::store::sqlite::open()) }",
            "type T = Vec<crate::store::sqlite::Open>;",
            "fn f() -> impl Iterator + use<'_> { crate::store::sqlite::open() }",
            "pub use runlore::store::sqlite::open;",
        ] {
            assert!(refused("src/tools/show.rs", text), "{text}");
        }
        assert!(refused("src/store.rs", "pub use sqlite::Open;"), "a child named without self::");
    }

    #[test]
    fn comments_and_text_are_not_code_and_own_modules_are_allowed() {
        let text = "//! [x](crate::store::sqlite)\n/* use crate::serve::x; */ fn f() { g(\"crate::serve::x\", r#\"rusqlite::y\"#) }\nuse crate::{tools::Ctx, store::Error};";
        assert_eq!(complaints_of("src/tools/show.rs", text), Vec::<String>::new());
    }

    #[test]
    fn tests_may_name_what_their_row_says_and_no_more() {
        assert!(refused("src/tools/show.rs", "use crate::store::model::Model;"));
        assert!(!refused("src/tools/show.rs", "#[cfg(test)]\nmod tests { use crate::store::model::Model; }"));
        assert!(refused("src/tools/show.rs", "#[cfg(test)]\nmod tests { use crate::serve::x; }"));
        assert!(
            refused("src/tools/show.rs", "#[cfg(test)]\nmod tests {}\nuse crate::store::model::Model;"),
            "the attribute ends with its item"
        );
    }

    #[test]
    fn a_file_declared_for_tests_is_a_test() {
        let text = "use std::fs::File;";
        assert!(!refused("src/store/model.rs", text) && refused("src/store/other.rs", text));
    }

    #[test]
    fn foreign_crates_and_clocks_belong_to_someone() {
        assert!(refused("src/tools/show.rs", "use rusqlite::Connection;") && refused("src/cli/show.rs", "use rmcp::model::Tool;"));
        assert!(!refused("src/store/sqlite.rs", "use rusqlite::Connection;") && !refused("src/mcp/faults.rs", "use rmcp::model::Tool;"));
        assert!(refused("src/auth.rs", "use std::time::Instant; fn f() { Instant::now(); }"));
        assert!(refused("src/auth.rs", "fn f() { chrono::Utc::now(); }") && !refused("src/clock.rs", "fn f() { chrono::Utc::now(); }"));
        assert!(
            refused("src/local/walk.rs", "use std::process::{self, Command};")
                && !refused("src/local/git.rs", "use std::process::Command;")
        );
    }

    #[test]
    fn a_module_without_a_row_is_refused() {
        assert!(complaints_of("src/helpers.rs", "//! x")[0].contains("has no row"));
    }

    #[test]
    fn a_cycle_is_found() {
        let row = |path, may| Module { path, may, tests: &[], reason: "" };
        assert_eq!(cycle(&[row("a", &["b"]), row("b", &["c"]), row("c", &["b"])]), Some(vec!["b", "c"]));
        assert_eq!(cycle(&[row("a", &["b", "c"]), row("b", &["c"]), row("c", &[])]), None);
    }
}
