//! What evaluations and cases are called.
//!
//! Promises: two different tests never share an id, and a person still reads it; no name holds a directory of one machine.
//! Does not: redact.

use super::text::capped;

/// A name is read in tables; what is longer ends in a digest.
pub(super) const NAME_BYTES_MAX: usize = 200;
/// An id has no cap but this one, at which nobody reads it any more.
const CASE_BYTES_MAX: usize = 1000;

/// The id of a test: `class::name`, of a test without a class its name. `file` is given where class and name do not tell two tests apart.
///
/// What would be read as another pair is quoted: a class that holds `::` stands as a JSON text (`"crate::tests"::works`), a file stands so
/// before a space (`"sum.test.js" test::adds`), and a name that looks like either has `::` before it.
pub(super) fn case(file: Option<&str>, class: &str, name: &str) -> String {
    let plain =
        |text: &str| !text.is_empty() && !text.contains("::") && !text.starts_with(':') && !text.ends_with(':') && !text.starts_with('"');
    let test = match class {
        "" if plain(name) => name.to_owned(),
        "" => format!("::{name}"),
        class if plain(class) => format!("{class}::{name}"),
        class => format!("{}::{name}", quoted(class)),
    };
    let whole = file.map_or_else(|| test.clone(), |file| format!("{} {test}", quoted(file)));
    capped(&whole, CASE_BYTES_MAX)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The name of a suite inside the one that is called `outer`.
pub(super) fn suite(outer: &str, name: &str) -> String {
    let name = without_directory(name);
    match (outer, name) {
        (outer, "") => outer.to_owned(),
        ("", name) => capped(name, NAME_BYTES_MAX),
        (outer, name) => capped(&format!("{outer}/{name}"), NAME_BYTES_MAX),
    }
}

/// PHPUnit and others call a suite by the whole path of its file. A name such as `/api/users` is none: it has no ending.
fn without_directory(name: &str) -> &str {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    if is_absolute(name) && last.contains('.') { last } else { name }
}

fn is_absolute(path: &str) -> bool {
    let mut bytes = path.bytes();
    match (bytes.next(), bytes.next(), bytes.next()) {
        (Some(b'/'), _, _) | (Some(b'\\'), Some(b'\\'), _) => true,
        (Some(drive), Some(b':'), Some(b'/' | b'\\')) => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// The directory that all absolute paths of a log share, which says where the machine had the project.
#[derive(Default)]
pub(super) struct Directory(Option<String>);

impl Directory {
    /// Counts a path in.
    pub(super) fn see(&mut self, path: &str) {
        // Most files stand below what is shared so far.
        let below = self.0.as_ref().is_some_and(|held| path.strip_prefix(held.as_str()).is_some_and(|rest| rest.starts_with('/')));
        if below || !is_absolute(path) {
            return;
        }
        let path = path.replace('\\', "/");
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let shared = match &self.0 {
            None => parent.to_owned(),
            Some(held) => {
                let same = held.split('/').zip(parent.split('/')).take_while(|(a, b)| a == b);
                same.map(|(part, _)| part).collect::<Vec<_>>().join("/")
            }
        };
        self.0 = Some(shared);
    }

    /// `path` below the directory.
    pub(super) fn below(&self, path: &str) -> String {
        if !is_absolute(path) {
            return path.to_owned();
        }
        let path = path.replace('\\', "/");
        let below = self.0.as_deref().and_then(|directory| path.strip_prefix(directory));
        below.unwrap_or(&path).trim_start_matches('/').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn ids_are_readable() {
        assert_eq!(case(None, "test_sample", "test_pass"), "test_sample::test_pass");
        assert_eq!(case(None, "", "test_broken_import"), "test_broken_import");
        assert_eq!(case(None, "crate::tests", "works"), r#""crate::tests"::works"#);
        assert_eq!(case(Some("a/sum.test.js"), "test", "adds"), r#""a/sum.test.js" test::adds"#);
    }

    #[test]
    fn two_tests_never_share_an_id() {
        let words = ["", "a", "b", ":", "::", "a::b", ":a", "a:", "\"a\"", "\"a\" b", "a b", "\"", " ", "\"a\"::b"];
        let mut seen = HashMap::new();
        for file in [None].into_iter().chain(words.map(Some)) {
            for class in words {
                for name in words {
                    let id = case(file, class, name);
                    assert_eq!(seen.insert(id.clone(), (file, class, name)), None, "{id} is also {:?}", (file, class, name));
                }
            }
        }
    }

    #[test]
    fn suites_are_named_from_the_outside_in() {
        assert_eq!(suite("add", "errors"), "add/errors");
        assert_eq!(suite("", "/srv/build/7/phpunit.xml"), "phpunit.xml");
        assert_eq!(suite("", r"C:\build\phpunit.xml"), "phpunit.xml");
        assert_eq!(suite("", "/api/users"), "/api/users");
        assert_eq!(suite("outer", ""), "outer");
    }

    #[test]
    fn files_stand_below_what_they_share() {
        let mut directory = Directory::default();
        for path in ["/srv/build/7/a/x.test.js", "/srv/build/7/b/x.test.js", "relative/x.js"] {
            directory.see(path);
        }
        assert_eq!(directory.below("/srv/build/7/b/x.test.js"), "b/x.test.js");
        assert_eq!(directory.below("relative/x.js"), "relative/x.js");
        directory.see(r"\\server\share\x.js");
        assert_eq!(directory.below("/srv/build/7/b/x.test.js"), "srv/build/7/b/x.test.js");
    }
}
