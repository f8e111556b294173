//! What the writes of evaluations, cases and runs share: ids, cases, and what is known of an evaluation beforehand.
//!
//! Promises: what is known beforehand to come to nothing is refused in the words of the store (`rules`), before leave is asked for as well as after.
//! Does not: hold what only the transaction of the write can hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{attempt::shorten, text::clean},
    store::workspace::{Authored, AuthoredQuery, NewCase, rules},
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

/// The same, which is to be there.
///
/// # Errors
/// [`ToolError::NotFound`] where there is none.
pub fn here(ctx: &Ctx, id: &str) -> Result<Authored, ToolError> {
    found(ctx, id)?.ok_or_else(|| rules::no_evaluation(id).into())
}
