//! The calls behind resources: rows like those of the registry, in no list of tools.
//!
//! A read is a call of one of these through the gate, rather than a way of its own past the store: rates, scopes, the deadline, the blocking
//! pool, redaction, metrics and the audit line then hold because there is only one list, and not because two were kept alike.
//!
//! Promises: a body is what the tool gives, whole; it is cut nowhere: over `limits.resource_bytes` it is a refusal that names the tool which
//! gives it in parts, and no more than that much (and one chunk) of it was held. Names with a slash cannot be a tool's.
//! Does not: know who may read: the rows say it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    domain::{decision, outcome::Counts, time::Timestamp},
    store::{Run, RunPoint, RunQuery, Selector},
    tools::{self, Answer, Ctx, Entry, ToolError, Weight, cursor::List, history::show, uri},
};

/// Runs of one page of `resources/list`.
const PAGE: usize = 100;
/// What an attempt takes of a run's record at least: a run of so many that they cannot fit is not read to find that out.
const ATTEMPT_BYTES_MIN: u64 = 128;

/// `resources/list`. Its answer's JSON is the result.
pub static LIST: Entry = Entry {
    name: "resources/list",
    of_project: true,
    scopes: &[&["eval:read"]],
    cacheable: true,
    canonical: Ok,
    run: list,
    ..tools::UNKNOWN
};
/// `resources/read` of a run. Its answer's text is the body.
pub static RUN: Entry = Entry { name: "resources/run", run, ..LIST };
/// `resources/read` of a transcript. Heavy, so that few of these texts are held at once.
pub static TRANSCRIPT: Entry =
    Entry { name: "resources/transcript", scopes: &[&["eval:read"], &["traces:read"]], weight: Weight::Heavy, run: transcript, ..LIST };
/// `resources/read` of a trace. Not kept: it is gone when its day comes, whatever else happens.
pub static TRACE: Entry = Entry { name: "resources/trace", scopes: &[&["traces:read"]], cacheable: false, run: trace, ..LIST };

/// `resources/read` of the decision contract's schema: about no project, for whoever may call.
pub static DECISION_CONTRACT: Entry =
    Entry { name: "resources/decision-contract", of_project: false, scopes: &[], run: decision_contract, ..LIST };

/// Whether the thing that was to be read is there; else the answer's text says what may be the reason.
#[must_use]
pub fn is_there(answer: &Answer) -> bool {
    answer.json.get() == "true"
}

fn body(ctx: &Ctx, text: String) -> Result<Answer, ToolError> {
    // What is larger than a tool's answer may be would push those out of the cache.
    Ok(Answer { json: raw(&true)?, lasting: text.len() <= ctx.limits.result_bytes, text })
}

fn absent(ctx: &Ctx) -> Result<Answer, ToolError> {
    Ok(Answer { json: raw(&false)?, text: ctx.note.clone().unwrap_or_default(), lasting: true })
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, ToolError> {
    serde_json::value::to_raw_value(value).map_err(|error| ToolError::Internal(error.to_string()))
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn by_id(ctx: &Ctx, arguments: &Map<String, Value>) -> Result<Option<Run>, ToolError> {
    let Some(id) = text(arguments, "runId") else { return Ok(None) };
    Ok(ctx.store.select(&Selector::Id(id), 1)?.into_iter().next())
}

fn list(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let pages = List::of(ctx, LIST.name, &json!({}));
    let place = pages.place::<(i64, String)>(text(&arguments, "cursor"))?;
    let before = place.map(|(millis, run_id)| RunPoint { run_id, created_at: Timestamp::from_millis(millis) });
    let (mut runs, _) = ctx.store.runs(&RunQuery { before, limit: PAGE + 1, ..RunQuery::default() })?;
    let more = runs.len() > PAGE;
    runs.truncate(PAGE);
    let mut result = json!({"resources": runs.iter().map(listed).collect::<Vec<Value>>()});
    if let (Some(last), true, Some(map)) = (runs.last(), more, result.as_object_mut()) {
        map.insert("nextCursor".to_owned(), pages.at(&(last.created_at.millis(), &last.run_id)).into());
    }
    Ok(Answer { json: raw(&result)?, text: String::new(), lasting: true })
}

/// A run as a resource. A program that knows only names shows the title.
fn listed(run: &Run) -> Value {
    let title = format!("{} {} {}", run.run_id, run.created_at.rfc3339(), run.kind.word());
    json!({"uri": uri::run(&run.run_id), "name": run.run_id, "title": title, "mimeType": "application/json"})
}

fn run(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let Some(run) = by_id(ctx, &arguments)? else { return absent(ctx) };
    let max = ctx.limits.resource_bytes;
    if attempts(run.counts) * ATTEMPT_BYTES_MIN > max as u64 {
        return Err(large_record(max));
    }
    let mut record = show::whole(ctx, run)?;
    if let Some(said) = &ctx.note {
        record.note = Some(record.note.map_or_else(|| said.clone(), |own| format!("{own} {said}")));
    }
    let mut capped = Capped { bytes: Vec::new(), max };
    // Writing it fails only where it is too large.
    serde_json::to_writer(&mut capped, &record).map_err(|_| large_record(max))?;
    body(ctx, String::from_utf8(capped.bytes).map_err(|error| ToolError::Internal(error.to_string()))?)
}

/// Those with a record; the missing ones have none.
fn attempts(counts: Counts) -> u64 {
    [counts.passed, counts.failed, counts.infra, counts.unscored].into_iter().map(u64::from).sum()
}

fn large_record(max: usize) -> ToolError {
    ToolError::Said(format!(
        "this run's record takes more than {max} bytes, the most that a resource may have; the tool show gives it in parts: use its arguments filter and limit, attempts: false, or format: md"
    ))
}

/// Takes no more than `max` bytes.
struct Capped {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Capped {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + part.len() > self.max {
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn decision_contract(_: &Ctx, _: Map<String, Value>) -> Result<Answer, ToolError> {
    Ok(Answer { json: raw(&true)?, text: decision::SCHEMA.to_owned(), lasting: true })
}

fn transcript(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let (Some(run), Some(attempt)) = (by_id(ctx, &arguments)?, text(&arguments, "attempt")) else { return absent(ctx) };
    let max = ctx.limits.resource_bytes;
    match ctx.store.transcript_text(&run.run_id, attempt, max)? {
        // An attempt whose log kept none has no transcript to read.
        None => absent(ctx),
        Some(found) if found.total == 0 => absent(ctx),
        Some(found) if found.lines < found.total => Err(ToolError::Said(format!(
            "this transcript's {} lines take more than {max} bytes, the most that a resource may have; the tool transcript gives them in pages: use its arguments offset and limit",
            found.total
        ))),
        Some(found) => body(ctx, found.text),
    }
}

/// A trace, as its reader gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceRecord<'a> {
    trace_id: &'a str,
    name: &'a str,
    status: Option<&'a str>,
    duration_ms: Option<u64>,
    metadata: &'a Map<String, Value>,
    created_at: String,
    created_by: &'a str,
    expires_at: String,
    /// Each as it was sent, but for secrets.
    lines: Vec<&'a RawValue>,
}

fn trace(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let Some(found) = text(&arguments, "traceId").map(|id| ctx.store.trace(id, ctx.now)).transpose()?.flatten() else { return absent(ctx) };
    let lines: Result<Vec<&RawValue>, _> = found.lines.iter().map(|line| serde_json::from_str(line)).collect();
    let record = TraceRecord {
        trace_id: &found.trace_id,
        name: &found.name,
        status: found.status.as_deref(),
        duration_ms: found.duration_ms,
        metadata: &found.metadata,
        created_at: found.created_at.rfc3339(),
        created_by: &found.created_by,
        expires_at: found.expires_at.rfc3339(),
        lines: lines.map_err(|error| ToolError::Internal(format!("a line of a trace is no JSON text: {error}")))?,
    };
    let max = ctx.limits.resource_bytes;
    let mut capped = Capped { bytes: Vec::new(), max };
    let large = |_| ToolError::Said(format!("this trace takes more than {max} bytes, the most that a resource may have"));
    serde_json::to_writer(&mut capped, &record).map_err(large)?;
    body(ctx, String::from_utf8(capped.bytes).map_err(|error| ToolError::Internal(error.to_string()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::run_record::AttemptRecord;

    #[test]
    fn no_attempt_takes_less_than_is_reckoned_with() {
        let least: AttemptRecord = serde_json::from_str(r#"{"attempt": "e#1", "arm": "m", "n": 1, "outcome": "fail"}"#).unwrap();
        let bytes = serde_json::to_string(&least).unwrap().len() as u64;
        assert!(bytes >= ATTEMPT_BYTES_MIN, "{bytes}");
    }

    #[test]
    fn what_is_written_stops_at_the_cap() {
        let mut capped = Capped { bytes: Vec::new(), max: 4 };
        assert!(capped.write_all(b"four").is_ok() && capped.write_all(b"!").is_err());
        assert_eq!(capped.bytes, b"four");
    }
}
