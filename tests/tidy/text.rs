//! What must not stand in the project's files: unfinished or silenced code, sleeping tests, paths of one machine, hosts of a registry.
//!
//! Promises: code is read as tokens, other text line by line; the forbidden words are put together here so that this file has none.
//! Does not: look into `Cargo.lock` (cargo writes the registry's host there) or into the fixtures (they are logs as tools wrote them).

use crate::source::{File, Source};
use std::collections::BTreeSet;

/// A word that no text file may have, and what to do instead.
const WORDS: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "mend it now, or file an issue"),
    (concat!("XX", "X"), "mend it now, or file an issue"),
    (concat!("/ro", "ot/"), "the path is one machine's; make it relative or a temporary directory"),
    (concat!("/wo", "rk/"), "the path is one machine's; make it relative or a temporary directory"),
    (concat!("/ho", "me/"), "the path is one machine's; make it relative or a temporary directory"),
    (concat!("crates", ".io"), "name no registry's host: the client is set up for one"),
    (concat!("pypi", ".org"), "name no registry's host: the client is set up for one"),
    (concat!("python", "hosted"), "name no registry's host: the client is set up for one"),
    (concat!("npmjs", ".org"), "name no registry's host: the client is set up for one"),
    (concat!("npmjs", ".com"), "name no registry's host: the client is set up for one"),
    (concat!("debian", ".org"), "name no registry's host: the client is set up for one"),
];

/// A mark that code may not have: what, whether only in tests, and what to do instead.
const MARKS: &[(&str, bool, &str)] = &[
    ("#[ignore]", false, "a test that does not run proves nothing; mend it or remove it"),
    ("#[ignore] with a reason", false, "a test that does not run proves nothing; mend it or remove it"),
    ("#[allow]", false, "say why: #[expect(lint, reason = \"...\")]"),
    ("sleep(", true, "wait for a condition, with a deadline, not for a time"),
    ("todo!", false, "write it, or leave it out"),
    ("unimplemented!", false, "write it, or leave it out"),
];

/// What stands in `files` and must not.
pub fn complaints(files: &[File]) -> Vec<String> {
    let text = files.iter().filter(|file| !exempt(&file.name)).flat_map(words);
    text.chain(files.iter().filter(|file| file.name.ends_with(".rs")).flat_map(marks)).collect()
}

fn exempt(name: &str) -> bool {
    name == "Cargo.lock" || name.starts_with("tests/fixtures/")
}

/// Whether `line` has `word`; one of letters only must stand alone, so that a hash may happen to contain it.
fn has(line: &str, word: &str) -> bool {
    let letters = word.chars().all(char::is_alphanumeric);
    let part_of_word = |before: &str, after: &str| before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
    line.match_indices(word)
        .any(|(at, _)| !letters || !part_of_word(line.get(..at).unwrap_or_default(), line.get(at + word.len()..).unwrap_or_default()))
}

fn words(file: &File) -> Vec<String> {
    let found = |(index, line): (usize, &str)| {
        let (word, instead) = WORDS.iter().find(|(word, _)| has(line, word))?;
        Some(format!("{}:{}: {word} must not stand in a tracked file; {instead}", file.name, index + 1))
    };
    file.text.lines().enumerate().filter_map(found).collect()
}

fn marks(file: &File) -> Vec<String> {
    let source = Source::read(file, &BTreeSet::new());
    let found = source.marks.iter().filter_map(|mark| {
        let (what, _, instead) = MARKS.iter().find(|(what, in_tests, _)| *what == mark.what && (mark.test || !in_tests))?;
        Some(format!("{}:{}: {what} is not used here; {instead}", file.name, mark.line))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(name: &str, text: &str) -> Vec<String> {
        complaints(&[File { name: name.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn every_word_is_refused_with_its_line() {
        for (word, _) in WORDS {
            let found = complaints_of("deploy/unit.service", &format!("a\nb {word} x\n"));
            assert!(found.len() == 1 && found[0].starts_with("deploy/unit.service:2: "), "{word}: {found:?}");
        }
        assert!(complaints_of("x.json", concat!("sha512-aXX", "Xb==")).is_empty());
        assert!(complaints_of("Cargo.lock", concat!("crates", ".io")).is_empty());
    }

    #[test]
    fn every_mark_is_refused() {
        let ignored = concat!("#[test]\n#[ign", "ore]\nfn a() {}");
        let reasoned = concat!("#[test]\n#[ign", "ore = \"slow, for a reason\"]\nfn a() {}");
        for text in [
            ignored,
            reasoned,
            "#[allow(dead_code)]\nfn a() {}",
            "#![allow(dead_code)]\nfn a() {}",
            "fn a() { todo!() }",
            "fn a() { std::unimplemented!(\"x\") }",
        ] {
            assert_eq!(complaints_of("src/a.rs", text).len(), 1, "{text}");
        }
        assert!(complaints_of("src/a.rs", "fn a() { b(\"todo!\") } // todo!()").is_empty());
        assert!(complaints_of("src/a.rs", "#[allow(dead_code, reason = \"x\")]\nfn a() {}").is_empty());
    }

    #[test]
    fn only_tests_may_not_sleep() {
        let sleeps = "async fn a() { tokio::time::sleep(d).await }";
        assert!(complaints_of("src/a.rs", sleeps).is_empty());
        assert_eq!(complaints_of("src/a.rs", &format!("#[cfg(test)] mod tests {{ {sleeps} }}")).len(), 1);
        assert_eq!(complaints_of("tests/it/a.rs", sleeps).len(), 1);
    }
}
