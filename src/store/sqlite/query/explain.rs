//! What is wrong with a question, in a sentence: where, and what was probably meant.
//!
//! Promises: the position in characters and the nearest open name; nothing of the store's own SQL.
//! Does not: correct the question.

use rusqlite::Error;

use super::{super::open, Denials};
use crate::domain::{attempt::shorten, text::clean};

/// Bytes of the question that a sentence repeats.
const NEAR_BYTES: usize = 40;
/// Names less alike than this are not worth a guess.
const ALIKE_MIN: f64 = 0.6;

pub(super) fn sentence(error: &Error, sql: &str, denials: &Denials) -> String {
    let (message, offset) = match error {
        Error::SqlInputError { msg, offset, .. } => (msg.as_str(), usize::try_from(*offset).ok()),
        Error::SqliteFailure(_, Some(message)) => (message.as_str(), None),
        Error::MultipleStatement => return "there is more than one statement; give one SELECT or WITH".to_owned(),
        _ => return "the query cannot be run".to_owned(),
    };
    let place = offset.and_then(|offset| near(sql, offset)).unwrap_or_default();
    let guess = missing(message).and_then(|(what, name)| meant(what, name, sql, denials)).unwrap_or_default();
    format!("{}{place}{guess}", clean(&shorten(message, 200)))
}

/// Where in the question, and what stands there.
fn near(sql: &str, offset: usize) -> Option<String> {
    let (before, after) = sql.split_at_checked(offset)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    Some(format!(" at line {line}, column {column}, near \"{}\"", clean(&shorten(after.lines().next().unwrap_or_default(), NEAR_BYTES))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Table,
    Column,
}

/// The name that was not found.
fn missing(message: &str) -> Option<(What, &str)> {
    let rest = |prefix: &str| message.strip_prefix(prefix).map(|name| name.rsplit('.').next().unwrap_or(name));
    rest("no such table: ").map(|name| (What::Table, name)).or_else(|| rest("no such column: ").map(|name| (What::Column, name)))
}

/// The nearest open name.
fn meant(what: What, name: &str, sql: &str, denials: &Denials) -> Option<String> {
    let objects = open::objects().ok()?;
    let names: Vec<String> = match what {
        What::Table => denials.open().iter().cloned().collect(),
        // Of the tables that the question names, else of all.
        What::Column => {
            let lower = sql.to_lowercase();
            let named: Vec<_> = objects.iter().filter(|object| lower.contains(&object.name)).collect();
            let from = if named.is_empty() { objects.iter().collect() } else { named };
            from.into_iter().flat_map(|object| object.columns.iter().map(|column| column.name.clone())).collect()
        }
    };
    let lower = name.to_lowercase();
    let alike = |other: &String| strsim::jaro_winkler(&lower, other);
    let best = names.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    if alike(best) >= ALIKE_MIN {
        return Some(format!("; did you mean {best}?"));
    }
    Some("; query_schema lists the tables and their columns".to_owned())
}
