//! Keys and tokens on the command line: what is printed, what is written, and what is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use super::harness::{Ran, command, ran};

fn runlore(directory: &std::path::Path, words: &[&str]) -> Ran {
    ran(command().current_dir(directory).args(words).output().unwrap())
}

const MINT: [&str; 10] =
    ["token", "mint", "--key-file", "key.pem", "--issuer", "runlore", "--audience", "https://runs.example", "--organization", "acme"];

#[test]
fn a_key_is_made_once_and_its_tokens_are_all_that_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let keygen = ["token", "keygen", "--out", "key.pem"];
    let made = runlore(directory.path(), &keygen);
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    let set: Value = serde_json::from_str(&made.out).unwrap();
    let key = &set["keys"][0];
    assert_eq!((&key["kty"], &key["alg"], key.get("d")), (&"OKP".into(), &"EdDSA".into(), None));
    let file = directory.path().join("key.pem");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let again = runlore(directory.path(), &keygen);
    assert!(again.code == 1 && again.out.is_empty() && again.err.contains("is there already"), "{}", again.err);

    let minted = runlore(directory.path(), &[&MINT[..], &["--scope", "eval:read", "--scope", "runs:write", "--role", "member"]].concat());
    assert_eq!((minted.code, minted.err.as_str()), (0, ""));
    let token = minted.out.strip_suffix('\n').unwrap();
    assert!(token.split('.').count() == 3 && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{token}");
}

#[test]
fn a_key_that_others_may_read_signs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(runlore(directory.path(), &["token", "keygen", "--out", "key.pem"]).code, 0);
    std::fs::set_permissions(directory.path().join("key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = runlore(directory.path(), &MINT);
    assert!(refused.code == 1 && refused.out.is_empty(), "{}", refused.out);
    assert!(
        refused.err.contains("the key file key.pem is open to others (mode 644); make it yours alone: chmod 600 key.pem"),
        "{}",
        refused.err
    );
}

#[test]
fn what_a_token_may_not_say_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    let bad = [["--ttl", "31d"], ["--ttl", "1"], ["--role", "root"], ["--scope", "a b"], ["--subject", ""], ["--expires", "1h"]];
    for words in bad {
        let refused = runlore(directory.path(), &[&MINT[..], &words].concat());
        assert!(refused.code == 2 && refused.out.is_empty(), "{words:?}: {}", refused.err);
    }
    assert_eq!(runlore(directory.path(), &["token"]).code, 2);
    let missing = runlore(directory.path(), &MINT);
    assert!(missing.code == 1 && missing.err.contains("the key file key.pem cannot be read"), "{}", missing.err);
}
