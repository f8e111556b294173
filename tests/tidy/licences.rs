//! Every crate that the program or its tests are built from has a licence that asks for nothing but its notice.
//!
//! Promises: reads `cargo metadata` of the locked set, offline; a crate without a licence is refused too.
//! Does not: look at crates that this platform does not build, or at what their archives contain.

use std::process::Command;

/// The licences that we take, by their SPDX names.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // For data only: the list of public certificate authorities (webpki-roots). It asks for its own text to go along.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// A crate and its licence expression.
pub type Crate = (String, Option<String>);

/// The crates of the locked set on this platform.
pub fn crates() -> Vec<Crate> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", &host];
    let out = Command::new(cargo).args(arguments).current_dir(crate::source::root()).output().expect("cargo runs, as it runs this test");
    assert!(out.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata has packages");
    let text = |package: &serde_json::Value, key: &str| package[key].as_str().map(str::to_owned);
    packages.iter().map(|package| (text(package, "name").unwrap_or_default(), text(package, "license"))).collect()
}

/// The crates whose licence is none of ours.
pub fn complaints(crates: &[Crate]) -> Vec<String> {
    let refused = crates.iter().filter(|(_, licence)| !licence.as_deref().is_some_and(permissive));
    refused
        .map(|(name, licence)| {
            format!("Cargo.lock:1: the crate {name} has the licence {licence:?}, which is not among those we take; use another crate")
        })
        .collect()
}

/// Whether an SPDX expression leaves a way through with permissive licences only.
fn permissive(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let whole = any(&mut words);
    whole && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words) -> bool {
    let mut holds = all(words);
    while words.next_if_eq(&"OR").is_some() {
        holds |= all(words);
    }
    holds
}

fn all(words: &mut Words) -> bool {
    let mut holds = one(words);
    while words.next_if_eq(&"AND").is_some() {
        holds &= one(words);
    }
    holds
}

fn one(words: &mut Words) -> bool {
    match words.next() {
        Some("(") => any(words) & words.next_if_eq(&")").is_some(),
        Some(name) => {
            let with = words.next_if_eq(&"WITH").map(|_| words.next());
            PERMISSIVE.contains(&name) && matches!(with, None | Some(Some("LLVM-exception")))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "MIT AND (BSD-3-Clause OR LGPL-2.1)",
        ] {
            assert!(permissive(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MPL-2.0",
            "MIT AND GPL-3.0",
            "(MIT",
            "MIT)",
            "MIT Apache-2.0",
            "GPL-2.0 WITH Classpath-exception",
            "(GPL-3.0 OR AGPL-3.0) AND MIT",
        ] {
            assert!(!permissive(bad), "{bad}");
        }
    }

    #[test]
    fn a_crate_without_a_licence_is_refused() {
        let found =
            complaints(&[("a".to_owned(), None), ("b".to_owned(), Some("MIT".to_owned())), ("c".to_owned(), Some("MPL-2.0".to_owned()))]);
        assert!(found.len() == 2 && found[0].contains("crate a") && found[1].contains("crate c"));
    }
}
