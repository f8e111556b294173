//! The files beside a run record: transcripts and analyses.
//!
//! Promises: only names that were found are opened; every file has a cap; what is no JSON is kept as a JSON text, so that each line of a
//! transcript and each analysis is JSON for whoever reads it.
//! Does not: interpret either.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
};

use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};

use crate::{
    domain::{
        extras::{Analysis, AnalysisSource},
        run_record::TranscriptFile,
        time::Timestamp,
    },
    importers::{
        Item, Limits,
        beside::{ANALYSES, Beside, TRANSCRIPTS},
        nan::strict,
    },
    telemetry::redaction::Redactor,
    transcript::{Packed, Packer},
};

/// Analyses of one run.
const ANALYSES_MAX: usize = 1000;
/// Bytes of one analysis: it is answered whole.
const ANALYSIS_BYTES_MAX: u64 = 1024 * 1024;

/// The transcript in `file`, and what could not be kept of it.
pub(super) fn transcript(
    beside: &dyn Beside,
    file: &TranscriptFile,
    limits: &Limits,
    redactor: &Redactor,
) -> Result<(Packed, Option<String>), String> {
    let name = file.file.as_str();
    let shown = name.escape_debug();
    if !name.starts_with(TRANSCRIPTS) || !beside.names().iter().any(|other| other == name) {
        return Err(format!("names the transcript {shown}; there is no such file in {TRANSCRIPTS} beside the record"));
    }
    let unreadable = |error: std::io::Error| format!("names the transcript {shown}, which cannot be read: {}", error.kind());
    let opened = beside.open(name).map_err(unreadable)?;
    let mut bytes = BufReader::new(opened.take(limits.entry_bytes_max.saturating_add(1)));
    let (mut packer, mut line, mut left, mut number) = (Packer::new(redactor), Vec::new(), limits.entry_bytes_max, 0_u64);
    while bytes.read_until(b'\n', &mut line).map_err(unreadable)? > 0 {
        let Some(rest) = left.checked_sub(line.len() as u64) else {
            let limit = limits.entry_bytes_max;
            return Ok((
                packer.finish(),
                Some(format!("has more than {limit} bytes of transcript in {shown}; what is beyond them was left out")),
            ));
        };
        left = rest;
        packer.line(&json(&mut line));
        line.clear();
        number += 1;
        if file.messages == Some(number) {
            packer.end_of_conversation();
        }
    }
    if file.messages.is_none_or(|messages| messages > number) {
        packer.end_of_conversation();
    }
    Ok((packer.finish(), None))
}

/// A line of a file as one line of JSON.
fn json(line: &mut Vec<u8>) -> String {
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    let text = String::from_utf8_lossy(&strict(std::mem::take(line))).into_owned();
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() { text } else { Value::String(text).to_string() }
}

/// The analyses beside the record.
pub(super) fn analyses(
    beside: &dyn Beside,
    limits: &Limits,
    redactor: &Redactor,
    otherwise: Timestamp,
    ready: &mut VecDeque<Item>,
) -> Vec<Analysis> {
    let found: Vec<&String> = beside.names().iter().filter(|name| name.starts_with(ANALYSES)).collect();
    if found.len() > ANALYSES_MAX {
        ready.push_back(Item::Complaint(format!("of its {} analyses no more than {ANALYSES_MAX} are kept", found.len())));
    }
    let mut out = Vec::new();
    for name in found.into_iter().take(ANALYSES_MAX) {
        match analysis(beside, name, limits, redactor, otherwise) {
            Ok(analysis) => out.extend(analysis),
            Err(why) => ready.push_back(Item::Complaint(format!("analysis {}: {why}", name.escape_debug()))),
        }
    }
    out
}

/// The analysis in a file; none for a file that stands elsewhere.
fn analysis(
    beside: &dyn Beside,
    name: &str,
    limits: &Limits,
    redactor: &Redactor,
    otherwise: Timestamp,
) -> Result<Option<Analysis>, String> {
    let place = name.strip_prefix(ANALYSES).unwrap_or(name);
    let (source, file) = match place.split_once('/') {
        None => (AnalysisSource::Saved, place),
        Some(("saved", file)) => (AnalysisSource::Saved, file),
        Some(("cached", file)) => (AnalysisSource::Cached, file),
        Some(_) => return Ok(None),
    };
    if file.contains('/') {
        return Ok(None);
    }
    let max = ANALYSIS_BYTES_MAX.min(limits.entry_bytes_max);
    let unreadable = |error: std::io::Error| format!("it cannot be read: {}", error.kind());
    let mut bytes = Vec::new();
    beside.open(name).map_err(unreadable)?.take(max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max {
        return Err(format!("it takes more than {max} bytes, the most that it may"));
    }
    let (doc, said) = document(file, bytes, redactor)?;
    let created_at = said.or_else(|| beside.modified(name)).unwrap_or(otherwise);
    Ok(Some(Analysis { file: redactor.redact(file).into_owned(), source, created_at, doc }))
}

/// The document as JSON text, and when it says that it was written.
fn document(file: &str, bytes: Vec<u8>, redactor: &Redactor) -> Result<(Box<RawValue>, Option<Timestamp>), String> {
    let text = String::from_utf8_lossy(&strict(bytes)).into_owned();
    let text = text.trim_end();
    if !file.ends_with(".json") {
        let doc =
            RawValue::from_string(Value::String(redactor.redact(text).into_owned()).to_string()).map_err(|error| error.to_string())?;
        return Ok((doc, None));
    }
    let text = redactor.redact_json(text);
    #[derive(serde::Deserialize)]
    struct Said {
        #[serde(rename = "createdAt")]
        created_at: Option<String>,
    }
    let said = serde_json::from_str::<Said>(&text).ok().and_then(|said| Timestamp::parse(&said.created_at?));
    let doc = RawValue::from_string(text.into_owned()).map_err(|error| format!("it is no JSON: {error}"))?;
    Ok((doc, said))
}
