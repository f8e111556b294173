//! What a sender says beside the log: in the query, and in the JSON that goes with a log that came in parts.
//!
//! Promises: every value is bounded and held against its rules; an unknown word is a fault, not silence.
//! Does not: look anything up.

use axum::extract::Query;
use http::Uri;
use serde::Deserialize;

use crate::{
    domain::hex::is_sha256,
    local::{
        bundle::is_plain,
        git::ANCESTORS_MAX,
        index::{Received, run_id_fault},
    },
    store::Kind,
};

/// Bytes of a log's name.
const NAME_BYTES_MAX: usize = 512;

/// The query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Question {
    /// The project; needed only of those who may see several.
    pub(super) project: Option<String>,
    /// The run that the log is for, rather than its own.
    pub(super) run: Option<String>,
    /// What the log is called.
    pub(super) name: Option<String>,
    /// `recorded` (where it says nothing) or `scratch`.
    kind: Option<String>,
    /// The log's main file in the archive, where what comes is one.
    pub(super) bundle: Option<String>,
    /// The digest of what has come in parts.
    pub(super) upload: Option<String>,
    /// Bytes before this part.
    pub(super) offset: Option<u64>,
}

impl Question {
    /// The query of a request.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn read(query: &str) -> Result<Self, String> {
        let uri: Uri = format!("/?{query}").parse().map_err(|_| "the query cannot be read".to_owned())?;
        let Query(question) =
            Query::<Self>::try_from_uri(&uri).map_err(|error| format!("the query cannot be read: {}", error.body_text()))?;
        question.fault().map_or(Ok(question), Err)
    }

    fn fault(&self) -> Option<String> {
        let shown = |text: &str| text.chars().take(80).collect::<String>().escape_debug().to_string();
        let name = self.name.as_ref().filter(|name| name.len() > NAME_BYTES_MAX || !is_plain(name));
        let bundle = self.bundle.as_ref().filter(|main| main.len() > NAME_BYTES_MAX || !is_plain(main) || main.contains('/'));
        let kind = self.kind.as_ref().filter(|kind| !matches!(kind.as_str(), "recorded" | "scratch"));
        let upload = self.upload.as_ref().filter(|digest| !is_sha256(digest));
        let of = |found: Option<&String>, what: &str| found.map(|text| format!("{what} (it is \"{}\")", shown(text)));
        self.run
            .as_deref()
            .and_then(run_id_fault)
            .or_else(|| {
                of(
                    name,
                    "name: give a relative path of at most 512 bytes, 200 a part, such as logs/a.json, without .. and control characters",
                )
            })
            .or_else(|| of(bundle, "bundle: give the name of the main file in the archive, such as run.json"))
            .or_else(|| of(kind, "kind: give recorded or scratch"))
            .or_else(|| of(upload, "upload: give the SHA-256 of the log, 64 hexadecimal digits in lower case"))
    }

    /// How the index is to take it.
    pub(super) fn received(&self) -> Received<'_> {
        let kind = if self.kind.as_deref() == Some("scratch") { Kind::Scratch } else { Kind::Recorded };
        Received { name: self.name.as_deref().unwrap_or_default(), run: self.run.as_deref(), kind }
    }
}

/// What goes with a log that came in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Manifest {
    /// The commits before the log's own, nearest first.
    pub(super) ancestors: Vec<String>,
    /// When the log's file was last changed, in milliseconds since 1970.
    pub(super) modified: Option<u64>,
}

impl Manifest {
    /// The manifest in `bytes`.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("the JSON beside the log is not as it should be: {error}"))?;
        if manifest.ancestors.len() > ANCESTORS_MAX {
            return Err(format!("ancestors: give at most {ANCESTORS_MAX} commits"));
        }
        let is_sha = |sha: &String| (4..=64).contains(&sha.len()) && sha.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if manifest.ancestors.iter().all(is_sha) {
            Ok(manifest)
        } else {
            Err("ancestors: give commits as hexadecimal digits in lower case".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_whole_or_refused() {
        let question = Question::read("project=main&run=ci%207&name=logs%2Fa.json&kind=scratch&offset=8").unwrap();
        assert_eq!((question.project.as_deref(), question.run.as_deref(), question.offset), (Some("main"), Some("ci 7"), Some(8)));
        let received = question.received();
        assert_eq!((received.name, received.kind), ("logs/a.json", Kind::Scratch));
        assert_eq!(Question::read(""), Ok(Question::default()));
        for wrong in [
            "name=..%2Fa",
            "name=/a",
            "name=a%2F..%2Fb",
            "name=a%0Ab",
            "name=",
            "name=a%5Cb",
            "name=a//b",
            "name=./a",
            "run=",
            "run=latest",
            "run=a%00",
            "kind=x",
            "bundle=a/b",
            "bundle=..",
            "upload=abc",
            "offset=-1",
            "offset=x",
            "unknown=1",
            "name=a&name=b",
        ] {
            assert!(Question::read(wrong).is_err(), "{wrong}");
        }
        assert!(Question::read(&format!("name={}", "x".repeat(513))).is_err());
    }

    #[test]
    fn commits_are_hexadecimal_and_bounded() {
        assert_eq!(Manifest::read(br#"{"ancestors": ["abcd"], "modified": 5}"#).unwrap().modified, Some(5));
        let many = format!("{{\"ancestors\": [{}]}}", vec!["\"abcd\""; 501].join(","));
        for wrong in [&br#"{"ancestors": ["--all"]}"#[..], br#"{"ancestors": ["abc"]}"#, br#"{"other": 1}"#, b"[", many.as_bytes()] {
            assert!(Manifest::read(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
