//! Files and functions stay small, and every file opens by saying what it is.
//!
//! Promises: 500 lines a file without its test modules, 800 with them (files of tests: 800), 70 lines a function; measured on tokens, so
//! a brace in a text or comment counts for nothing.
//! Does not: judge style; `cargo fmt` and clippy do.

use crate::source::{File, Source};
use std::collections::BTreeSet;

const FILE_LINES_MAX: usize = 500;
const FILE_LINES_MAX_WITH_TESTS: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// What is too long, or does not say what it is, among the Rust files of `files`.
pub fn complaints(files: &[File]) -> Vec<String> {
    let none = BTreeSet::new();
    let rust: Vec<(&File, Source)> =
        files.iter().filter(|file| file.name.ends_with(".rs")).map(|file| (file, Source::read(file, &none))).collect();
    let for_tests: Vec<&str> = rust.iter().flat_map(|(_, source)| &source.test_modules).map(String::as_str).collect();
    rust.iter().flat_map(|(file, source)| of_file(file, source, is_test(&file.name, &for_tests))).collect()
}

fn is_test(name: &str, for_tests: &[&str]) -> bool {
    name.starts_with("tests/") || crate::source::module(name).is_some_and(|module| for_tests.contains(&module.as_str()))
}

fn of_file(file: &File, source: &Source, test: bool) -> Vec<String> {
    let opening = (!opens(&file.text)).then(|| {
        format!("{}:1: a file opens with //! and what it is, what it promises and what it does not do; write that first", file.name)
    });
    let length = too_long(file.text.lines().count(), if test { 0 } else { source.test_lines }, test);
    let length = length.map(|text| format!("{}:1: {text}; move a part that has a name of its own to a file of its own", file.name));
    opening.into_iter().chain(length).chain(functions(file, source)).collect()
}

fn opens(text: &str) -> bool {
    text.lines().next().and_then(|line| line.strip_prefix("//! ")).is_some_and(|words| !words.trim().is_empty())
}

fn too_long(lines: usize, of_tests: usize, test: bool) -> Option<String> {
    let code = lines - of_tests;
    if lines > FILE_LINES_MAX_WITH_TESTS {
        return Some(format!("the file has {lines} lines, and {FILE_LINES_MAX_WITH_TESTS} is the most"));
    }
    (!test && code > FILE_LINES_MAX).then(|| format!("the file has {code} lines without its tests, and {FILE_LINES_MAX} is the most"))
}

fn functions(file: &File, source: &Source) -> Vec<String> {
    let long = source.functions.iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|function| {
        let (name, lines) = (&function.name, function.lines);
        format!("{}:{}: fn {name} has {lines} lines, and {FUNCTION_LINES_MAX} is the most; name its parts", file.name, function.line)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(name: &str, text: String) -> Vec<String> {
        complaints(&[File { name: name.to_owned(), text }])
    }

    #[test]
    fn long_files_are_refused_and_their_tests_count_less() {
        let code = |lines: usize| format!("//! x\n{}", "const A: u8 = 1;\n".repeat(lines - 1));
        let tests = |lines: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "const A: u8 = 1;\n".repeat(lines - 2));
        assert!(complaints_of("src/a.rs", code(500)).is_empty());
        assert_eq!(complaints_of("src/a.rs", code(501)).len(), 1);
        assert!(complaints_of("src/a.rs", code(499) + &tests(300)).is_empty());
        assert!(complaints_of("src/a.rs", code(499) + &tests(301))[0].contains("801 lines"));
        assert_eq!(complaints_of("src/a.rs", code(499) + &tests(310)).len(), 1);
        assert!(complaints_of("tests/a.rs", code(800)).is_empty() && complaints_of("tests/a.rs", code(801)).len() == 1);
    }

    #[test]
    fn long_functions_are_refused_wherever_they_stand() {
        let long = |lines: usize| format!("//! x\nimpl A {{\n    fn b() {{\n{}    }}\n}}\n", "        c(\"}\"); // }\n".repeat(lines - 2));
        assert!(complaints_of("src/a.rs", long(70)).is_empty());
        assert_eq!(complaints_of("src/a.rs", long(71)), ["src/a.rs:3: fn b has 71 lines, and 70 is the most; name its parts"]);
        assert_eq!(complaints_of("src/a.rs", format!("//! x\n#[cfg(test)]\nmod tests {{\n{}}}\n", &long(80)[6..])).len(), 1);
    }

    #[test]
    fn a_file_says_what_it_is() {
        assert!(complaints_of("src/a.rs", "//! What it is.\n".to_owned()).is_empty());
        for text in ["", "use a::b;\n//! late\n", "//!\n", "// x\n"] {
            assert_eq!(complaints_of("src/a.rs", text.to_owned()).len(), 1, "{text:?}");
        }
    }
}
