//! What the writes of evaluations, cases and runs share: ids, cases, and what is known of an evaluation beforehand.
//!
//! Promises: an evaluation that is locked is refused with who locked it and why, before leave is asked for as well as after.
//! Does not: hold what only the transaction of the write can hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{attempt::shorten, text::clean},
    store::workspace::{ActFault, Authored, AuthoredQuery, NewCase},
    tools::{Ctx, ToolError, arguments::Text, write::fields::Name},
};

/// Characters of an id.
const ID_CHARS_MAX: usize = 200;
/// Characters of a case's input, and of what is right.
const CASE_CHARS_MAX: usize = 32_768;

/// An evaluation's id.
pub type EvaluationId = Name<ID_CHARS_MAX>;
/// A case's id.
pub type CaseId = Name<ID_CHARS_MAX>;
/// What a case asks, or what is right.
pub type CaseText = Text<CASE_CHARS_MAX>;

/// A case of a new evaluation.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its id, unique in the evaluation.
    pub id: CaseId,
    /// What is asked.
    pub input: CaseText,
    /// What is right.
    #[serde(default)]
    pub expected: Option<CaseText>,
}

impl Case {
    /// As the store takes it.
    #[must_use]
    pub fn into_new(self) -> NewCase {
        let expected = self.expected.map(|text| text.get().to_owned());
        NewCase { id: Some(self.id.into_string()), input: self.input.get().to_owned(), expected, metadata: None }
    }
}

/// A name in a sentence.
#[must_use]
pub fn shown(name: &str) -> String {
    format!("\"{}\"", clean(&shorten(name, 200)))
}

/// The evaluation of this id, where there is one.
///
/// # Errors
/// As every read.
pub fn found(ctx: &Ctx, id: &str) -> Result<Option<Authored>, ToolError> {
    let (found, _) = ctx.store.authored(&AuthoredQuery { id: Some(id), limit: 1, ..AuthoredQuery::default() })?;
    Ok(found.into_iter().next())
}

/// The same, where it may be changed or started.
///
/// # Errors
/// [`ToolError`] where there is none or it is locked.
pub fn unlocked(ctx: &Ctx, id: &str) -> Result<Authored, ToolError> {
    let evaluation =
        found(ctx, id)?.ok_or_else(|| ToolError::NotFound(format!("argument evaluation: there is no evaluation {}", shown(id))))?;
    match &evaluation.lock {
        Some(lock) => {
            let (by, reason) = (lock.by.clone(), Some(lock.reason.clone()).filter(|reason| !reason.is_empty()));
            Err(ToolError::Said(ActFault::Locked { evaluation: evaluation.id, by, reason }.to_string()))
        }
        None => Ok(evaluation),
    }
}
