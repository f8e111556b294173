//! The house rules, as tests: who may name whom, how long things are, what must not stand in a file, licences, and what may go stale.
//!
//! Promises: each rule is a function from files to complaints and is tested on bad input beside it; a complaint is one sentence with the
//! file, the line, the rule and what to do.
//! Does not: run the program.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "the whole program is a test, and clippy takes only what stands under #[test] for one"
)]

#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/infra.rs"]
mod infra;
#[path = "tidy/licences.rs"]
mod licences;
#[path = "tidy/readme.rs"]
mod readme;
#[path = "tidy/size.rs"]
mod size;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/table.rs"]
mod table;
#[path = "tidy/text.rs"]
mod text;

fn hold(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn imports_follow_the_dependency_table() {
    hold(imports::complaints(&source::tracked()));
}

#[test]
fn the_dependency_table_has_no_cycle() {
    assert_eq!(imports::cycle(table::MODULES), None, "tests/tidy/table.rs:1: these rows form a cycle; one of them names what is above it");
}

#[test]
fn every_row_has_a_reason_and_names_rows() {
    let known = |path: &str| path == "*" || table::MODULES.iter().any(|row| row.path == path);
    for row in table::MODULES {
        assert!(
            !row.reason.is_empty() && row.may.iter().chain(row.tests).all(|path| known(path)),
            "tests/tidy/table.rs:1: {} names no row",
            row.path
        );
    }
    assert!(table::FOREIGN.iter().all(|row| !row.reason.is_empty() && !row.only.is_empty()));
}

#[test]
fn files_and_functions_are_short_and_say_what_they_are() {
    hold(size::complaints(&source::tracked()));
}

#[test]
fn nothing_unfinished_silenced_or_of_one_machine_stands_in_a_file() {
    hold(text::complaints(&source::tracked()));
}

#[test]
fn what_watches_the_server_names_numbers_that_it_has() {
    hold(infra::complaints(&source::tracked(), runlore::telemetry::metrics::TABLE));
}

#[test]
fn licences_are_permissive() {
    let crates = licences::crates();
    assert!(crates.len() > 20, "cargo metadata named only {} crates", crates.len());
    hold(licences::complaints(&crates));
}

#[test]
fn the_readme_names_the_tools_of_the_registry() {
    let update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    hold(readme::complaints(&source::tracked(), &readme::registry(), update));
}
