//! What a JSON file is, by its members.
//!
//! Promises: it stops at the first members that tell; what it skips costs a pass over the bytes and no memory; it never judges by a name.
//! Does not: read values, or say that the file is sound.

use super::{
    Input,
    scan::{Scanner, Sink, Stop},
};

/// Members that are looked at before the file is taken for none of ours.
const MEMBERS_MAX: usize = 100;

/// A format of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A log of Inspect AI, or nothing that is known.
    Inspect,
    /// A run record.
    Record,
    /// Results of promptfoo.
    Promptfoo,
    /// Rows of promptfoo's results, a JSON object a line.
    PromptfooRows,
    /// Results of lm-evaluation-harness.
    LmEval,
    /// Samples of lm-evaluation-harness, a JSON object a line.
    LmEvalSamples,
}

/// What has been seen of the file's first object.
#[derive(Default)]
struct Seen {
    run_id: bool,
    schema_version: bool,
    eval: bool,
    status: bool,
    rows: usize,
    samples: usize,
    /// A `results` object whose members are objects, as tasks have them.
    tasks: bool,
    /// `results` as a list, and prompts or a table beside it, as promptfoo's library gives them.
    listed: bool,
    columns: bool,
    /// Something that only lm-eval has beside it.
    harness: usize,
}

/// What `input` holds, which begins with `{`.
pub(super) fn format(input: &mut dyn Input) -> Format {
    let mut scanner = Scanner::new(input);
    // A file that cannot be scanned is reported by the importer of logs, which says where and why.
    look(&mut scanner).ok().flatten().unwrap_or(Format::Inspect)
}

fn look(scanner: &mut Scanner<&mut dyn Input>) -> Result<Option<Format>, Stop> {
    let (mut seen, mut key, mut first) = (Seen::default(), Vec::new(), true);
    scanner.take(b'{')?;
    for _ in 0..MEMBERS_MAX {
        if !scanner.key(first, &mut key)? {
            break;
        }
        first = false;
        let opens = scanner.peek()?;
        if key == b"\"results\"" && opens == Some(b'{') {
            if results(scanner, &mut seen)? {
                return Ok(Some(Format::Promptfoo));
            }
        } else {
            seen.member(&key, opens);
            match seen.told() {
                Some(format) => return Ok(Some(format)),
                None => scanner.value(&mut Sink::skip())?,
            }
        }
        if let Some(format) = seen.told() {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Looks into `results`: whether it is promptfoo's.
fn results(scanner: &mut Scanner<&mut dyn Input>, seen: &mut Seen) -> Result<bool, Stop> {
    let (mut key, mut first, mut others) = (Vec::new(), true, false);
    scanner.take(b'{')?;
    while scanner.key(first, &mut key)? {
        first = false;
        let opens = scanner.peek()?;
        match (key.as_slice(), opens) {
            (b"\"results\"" | b"\"prompts\"", Some(b'[')) | (b"\"table\"", Some(b'{')) => return Ok(true),
            _ => others |= opens != Some(b'{'),
        }
        scanner.value(&mut Sink::skip())?;
    }
    seen.tasks = !first && !others;
    Ok(false)
}

impl Seen {
    fn member(&mut self, key: &[u8], opens: Option<u8>) {
        match key {
            b"\"runId\"" => self.run_id = true,
            b"\"schemaVersion\"" => self.schema_version = true,
            b"\"eval\"" => self.eval = opens == Some(b'{'),
            b"\"version\"" | b"\"status\"" => self.status = true,
            b"\"results\"" => self.listed = opens == Some(b'['),
            b"\"prompts\"" => self.columns |= opens == Some(b'['),
            b"\"table\"" => self.columns |= opens == Some(b'{'),
            b"\"promptIdx\"" | b"\"testIdx\"" | b"\"gradingResult\"" | b"\"testCase\"" => self.rows += 1,
            b"\"doc_id\"" | b"\"resps\"" | b"\"filtered_resps\"" | b"\"doc\"" => self.samples += 1,
            b"\"configs\"" | b"\"versions\"" | b"\"config\"" | b"\"n-shot\"" | b"\"higher_is_better\"" => self.harness += 1,
            _ => {}
        }
    }

    fn told(&self) -> Option<Format> {
        if self.eval && self.status {
            Some(Format::Inspect)
        } else if self.run_id && self.schema_version {
            Some(Format::Record)
        } else if self.listed && self.columns {
            Some(Format::Promptfoo)
        } else if self.rows >= 2 {
            Some(Format::PromptfooRows)
        } else if self.samples >= 2 {
            Some(Format::LmEvalSamples)
        } else if self.tasks && self.harness > 0 {
            Some(Format::LmEval)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn of(text: &str) -> Format {
        format(&mut Cursor::new(text.as_bytes().to_vec()))
    }

    #[test]
    fn members_tell_the_format() {
        let rows = [
            (r#"{"version":2,"status":"success","eval":{}}"#, Format::Inspect),
            (r#"{"runId":"r","schemaVersion":1}"#, Format::Record),
            (r#"{"evalId":"e","results":{"version":3,"timestamp":"t","prompts":[],"results":[]}}"#, Format::Promptfoo),
            (r#"{"results":{"results":[],"timestamp":null}}"#, Format::Promptfoo),
            (r#"{"results":{"version":2,"table":{"head":{}}}}"#, Format::Promptfoo),
            (r#"{"version":3,"results":[{"success":true}],"prompts":[]}"#, Format::Promptfoo),
            (r#"{"table":{},"version":2,"results":[]}"#, Format::Promptfoo),
            (r#"{"promptIdx":0,"testIdx":1,"success":true}"#, Format::PromptfooRows),
            (r#"{"doc_id":0,"doc":{},"resps":[]}"#, Format::LmEvalSamples),
            (r#"{"results":{"a":{"acc":0.5}},"versions":{"a":0},"config":{}}"#, Format::LmEval),
            (r#"{"config":{},"results":{"a":{"acc,none":NaN}}}"#, Format::LmEval),
            (r#"{"results":{},"config":{}}"#, Format::Inspect),
            (r#"{"results":[],"config":{}}"#, Format::Inspect),
            (r#"{"elapsed_time":1,"gpu":"x"}"#, Format::Inspect),
            ("{", Format::Inspect),
        ];
        for (text, format) in rows {
            assert_eq!(of(text), format, "{text}");
        }
    }
}
