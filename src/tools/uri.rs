//! The URIs of resources: a run's record and an attempt's transcript (S-history), a trace (decision 30).
//!
//! Promises: ids are percent-encoded, so that each is one segment whatever it holds; what is written here is read back here, and `reeval://` is
//! read too.
//! Does not: look anything up.

use std::fmt::Write as _;

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A run's record.
    Run {
        /// The run's whole id.
        run_id: String,
    },
    /// The schema of the decision contract, which is no project's.
    DecisionContract,
    /// An attempt's transcript.
    Transcript {
        /// The run's whole id.
        run_id: String,
        /// The attempt's whole key.
        attempt: String,
    },
    /// A trace.
    Trace {
        /// Its whole id.
        trace_id: String,
    },
}

/// How a client makes the URI of a run: RFC 6570, whose simple expansion encodes as [`run`] does.
pub const RUN_TEMPLATE: &str = "runlore://runs/{runId}";
/// How a client makes the URI of a transcript.
pub const TRANSCRIPT_TEMPLATE: &str = "runlore://runs/{runId}/transcripts/{attempt}";
/// How a client makes the URI of a trace.
pub const TRACE_TEMPLATE: &str = "runlore://traces/{traceId}";

/// The URI of the decision contract's schema.
pub const DECISION_CONTRACT: &str = "runlore://schemas/decision-contract";

/// The schemes that are read; the first is the one that is written.
const SCHEMES: [&str; 2] = ["runlore", "reeval"];

/// The URI of a run's record.
#[must_use]
pub fn run(run_id: &str) -> String {
    format!("runlore://runs/{}", encoded(run_id))
}

/// The URI of an attempt's transcript.
#[must_use]
pub fn transcript(run_id: &str, attempt: &str) -> String {
    format!("runlore://runs/{}/transcripts/{}", encoded(run_id), encoded(attempt))
}

/// The URI of a trace.
#[must_use]
pub fn trace(trace_id: &str) -> String {
    format!("runlore://traces/{}", encoded(trace_id))
}

/// What `uri` names; none where it is no URI of ours.
#[must_use]
pub fn parse(uri: &str) -> Option<Target> {
    let mut segments = path(uri)?.split('/');
    let segments = (segments.next(), segments.next(), segments.next(), segments.next(), segments.next());
    match segments {
        (Some("runs"), Some(run), None, ..) => Some(Target::Run { run_id: decoded(run)? }),
        (Some("schemas"), Some("decision-contract"), None, ..) => Some(Target::DecisionContract),
        (Some("runs"), Some(run), Some("transcripts"), Some(attempt), None) => {
            Some(Target::Transcript { run_id: decoded(run)?, attempt: decoded(attempt)? })
        }
        (Some("traces"), Some(trace), None, ..) => Some(Target::Trace { trace_id: decoded(trace)? }),
        _ => None,
    }
}

/// `template` with the scheme that is written, where it begins with one that is read.
#[must_use]
pub fn canonical(template: &str) -> Option<String> {
    path(template).map(|path| format!("{}://{path}", SCHEMES[0]))
}

/// What follows a scheme of ours.
fn path(uri: &str) -> Option<&str> {
    let (scheme, path) = uri.split_once("://")?;
    SCHEMES.iter().any(|own| scheme.eq_ignore_ascii_case(own)).then_some(path)
}

/// All but RFC 3986's unreserved characters as `%XX`.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The text of one segment; none where it is empty, no UTF-8, or holds what ends a path or half an escape.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = segment.bytes();
    let mut out = Vec::with_capacity(segment.len());
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => out.push(hex(bytes.next()?)? * 16 + hex(bytes.next()?)?),
            b'?' | b'#' => return None,
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.is_empty())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run_of(id: &str) -> Option<Target> {
        Some(Target::Run { run_id: id.to_owned() })
    }

    #[test]
    fn a_key_is_one_segment_of_the_uri() {
        assert_eq!(transcript("r 1", "a/b%2Fc@m#1é"), "runlore://runs/r%201/transcripts/a%2Fb%252Fc%40m%231%C3%A9");
        assert_eq!(run("a/b c"), "runlore://runs/a%2Fb%20c");
    }

    #[test]
    fn the_contract_has_one_uri() {
        assert_eq!(parse(DECISION_CONTRACT), Some(Target::DecisionContract));
        assert!(parse("runlore://schemas").is_none() && parse("runlore://schemas/decision-contract/x").is_none());
    }

    #[test]
    fn other_spellings_are_read() {
        for uri in ["reeval://runs/a%2fb", "RUNLORE://runs/a%2Fb", "runlore://runs/%61%2F%62"] {
            assert_eq!(parse(uri), run_of("a/b"), "{uri}");
        }
        // What a client did not encode is taken as it is, where it means nothing else.
        assert_eq!(parse("runlore://runs/r 1@é"), run_of("r 1@é"));
        assert_eq!(canonical("reeval://runs/{runId}").as_deref(), Some(RUN_TEMPLATE));
    }

    #[test]
    fn what_is_no_uri_of_ours_names_nothing() {
        for uri in [
            "",
            "runlore://",
            "runlore://runs",
            "runlore://runs/",
            "runlore:runs/a",
            "file://runs/a",
            "runlore://run/a",
            "runlore://runs/a/",
            "runlore://runs/a/transcripts",
            "runlore://runs/a/transcripts/",
            "runlore://runs/a/transcripts/b/c",
            "runlore://runs/a/other/b",
            "runlore://runs//transcripts/b",
            "runlore://runs/%",
            "runlore://runs/%4",
            "runlore://runs/%zz",
            "runlore://runs/%+1",
            "runlore://runs/%FF",
            "runlore://runs/a?b",
            "runlore://runs/a#b",
            "runlore://traces/a/b",
            "runlore://traces/",
        ] {
            assert_eq!(parse(uri), None, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(run_id in "\\PC{1,20}", attempt in "\\PC{1,20}") {
            prop_assert_eq!(parse(&run(&run_id)), run_of(&run_id));
            prop_assert_eq!(parse(&trace(&run_id)), Some(Target::Trace { trace_id: run_id.clone() }));
            prop_assert_eq!(parse(&transcript(&run_id, &attempt)), Some(Target::Transcript { run_id, attempt }));
        }

        #[test]
        fn anything_is_taken_without_a_panic(text in "\\PC{0,40}") {
            let _ = parse(&format!("runlore://runs/{text}"));
        }
    }
}
