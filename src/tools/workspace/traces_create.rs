//! `traces_create`: a transcript outside a run is kept until its day (decision 30).
//!
//! Promises: nothing is kept that nobody says to have reviewed, or without a day on which it is deleted; secrets are replaced before anything is
//! written, as when a log is read.
//! Does not: find personal data: whoever sends it says that somebody has looked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::authoring::shown;
use crate::{
    domain::time::Timestamp,
    store::workspace::{Act, Acted, NewTrace, rules},
    telemetry::redaction::Redactor,
    tools::{
        Ctx, ToolError,
        arguments::Bounded,
        uri,
        write::{
            Does, Intent, Write,
            fields::{Name, Pairs, Reviewed},
        },
    },
};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Lines that a trace may come with.
const LINES_MAX: usize = 200;
/// Bytes of its free pairs.
pub(in crate::tools) const METADATA_BYTES_MAX: usize = 64 * 1024;
/// A thousand years.
pub(in crate::tools) const DURATION_MS_MAX: u64 = 31_536_000_000_000;

/// The tool.
pub struct TracesCreate;

/// The trace.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What people call it.
    name: Name<200>,
    /// Its id as its maker has it, unique in the project.
    trace_id: Name<200>,
    /// How it ended, in a word.
    #[serde(default)]
    status: Option<Name<64>>,
    /// Wall time.
    #[serde(default)]
    duration_ms: Option<Bounded<0, DURATION_MS_MAX, 0>>,
    /// Its lines, 200 at most: each one JSON text without line breaks.
    #[serde(default)]
    lines: Option<Vec<String>>,
    /// Free pairs, 64 KiB at most.
    #[serde(default)]
    metadata: Option<Pairs<METADATA_BYTES_MAX>>,
    /// That somebody has looked for personal data in it, and that it may be kept.
    pii_reviewed: Reviewed,
    /// After so many days it is deleted.
    retention_days: Bounded<1, 365, 30>,
}

/// The trace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    trace_id: String,
    /// Where it can be read.
    uri: String,
    /// When it is deleted.
    expires_at: String,
}

/// What is wrong with one line; the same for lines that are added later.
///
/// # Errors
/// [`ToolError::Argument`], with its number from 1.
pub fn checked(lines: &[String]) -> Result<(), ToolError> {
    if lines.len() > LINES_MAX {
        return Err(ToolError::Argument(format!("argument lines: there are {}; at most {LINES_MAX} are taken", lines.len())));
    }
    for (number, line) in lines.iter().enumerate() {
        let wrong = if line.contains(['\n', '\r']) {
            "it has a line break".to_owned()
        } else if let Err(error) = serde_json::from_str::<IgnoredAny>(line) {
            format!("it is no JSON text ({error})")
        } else {
            continue;
        };
        return Err(ToolError::Argument(format!("argument lines: line {}: {wrong}", number + 1)));
    }
    Ok(())
}

/// Lines as they are kept.
#[must_use]
pub fn redacted(lines: Vec<String>, redactor: &Redactor) -> Vec<String> {
    lines.into_iter().map(|line| redactor.redact_json(&line).into_owned()).collect()
}

/// Free pairs as they are kept.
pub(in crate::tools) fn pairs(
    metadata: Option<Pairs<METADATA_BYTES_MAX>>,
    redactor: &Redactor,
) -> Result<serde_json::Map<String, serde_json::Value>, ToolError> {
    let json = serde_json::to_string(&metadata.map(Pairs::into_map).unwrap_or_default());
    let json = json.map_err(|error| ToolError::Internal(error.to_string()))?;
    serde_json::from_str(&redactor.redact_json(&json)).map_err(|error| ToolError::Internal(error.to_string()))
}

/// When it is deleted.
pub(in crate::tools) fn end(now: Timestamp, days: Bounded<1, 365, 30>) -> Timestamp {
    now.plus_millis(i64::try_from(days.get() * DAY_MS).unwrap_or(i64::MAX))
}

impl Write for TracesCreate {
    const NAME: &'static str = "traces_create";
    const TITLE: &'static str = "Keep a trace";
    const DOC: &'static str = "Keeps a transcript outside a run, such as one of production, until its day; somebody must have reviewed it for personal data. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["traces:write"]];
    const DOES: Does = Does::CreateTrace;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let lines = input.lines.as_deref().unwrap_or_default();
        checked(lines)?;
        let id = input.trace_id.get();
        if matches!(id, "." | "..") {
            return Err(ToolError::Argument(format!("argument trace_id: \"{id}\" cannot stand in an address; give another id")));
        }
        if ctx.store.trace(id, ctx.now)?.is_some() {
            return Err(rules::trace_exists(id).into());
        }
        let (days, until) = (input.retention_days.get(), end(ctx.now, input.retention_days).rfc3339());
        Ok(Intent {
            summary: format!("Keep the trace {} ({} lines) for {days} days.", shown(id), lines.len()),
            effects: vec![
                format!("Whoever may read traces of the project can read it until {until}; then it is deleted."),
                "Secrets in it are replaced before it is kept; personal data is not looked for.".to_owned(),
            ],
        })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let lines = input.lines.unwrap_or_default();
        checked(&lines)?;
        let clean = |name: String| ctx.redactor.redact(&name).into_owned();
        Ok(Act::CreateTrace(NewTrace {
            trace_id: input.trace_id.into_string(),
            name: clean(input.name.into_string()),
            status: input.status.map(|status| clean(status.into_string())),
            duration_ms: input.duration_ms.map(Bounded::get),
            lines: redacted(lines, &ctx.redactor),
            metadata: pairs(input.metadata, &ctx.redactor)?,
            expires_at: end(ctx.now, input.retention_days),
        }))
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Trace { trace_id, expires_at } => Some(Done { uri: uri::trace(&trace_id), trace_id, expires_at: expires_at.rfc3339() }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("trace {} is kept until {}: {}", shown(&done.trace_id), done.expires_at, done.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_json_text_and_secrets_are_not_kept() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let said = |given: &[&str]| checked(&lines(given)).map_err(|error| error.to_string());
        assert_eq!(said(&["{\"a\": 1}", "7", "null", "\"x\""]), Ok(()));
        assert!(said(&["{}", "{"]).unwrap_err().starts_with("argument lines: line 2: it is no JSON text"));
        assert!(said(&["{} {}"]).is_err() && said(&[""]).is_err());
        assert_eq!(said(&["{\n}"]).unwrap_err(), "argument lines: line 1: it has a line break");
        assert_eq!(said(&["1"; LINES_MAX + 1]).unwrap_err(), "argument lines: there are 201; at most 200 are taken");
        let secret = "{\"said\": \"ghp_abcdefghijklmnopqrstuvwxyz0123456789\"}";
        assert_eq!(redacted(lines(&[secret]), &Redactor::patterns_only()), ["{\"said\": \"[REDACTED]\"}"]);
    }
}
