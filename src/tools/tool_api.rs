//! The tools of the HTTP tool API (S-tenant; decisions 72 and 74): a second list beside [`ENTRIES`](super::ENTRIES), whose tools are called over
//! that API and nowhere else.
//!
//! Promises: an entry is of the same kind as every other and goes down the same list of calls; none is in `tools/list`, on the command line, or
//! found by [`find`](super::find). An evaluation is named by its number, the only name that the contract has.
//! Does not: know HTTP.

pub mod get;
pub mod list;
pub mod quality;
pub mod run;
pub mod span;
pub mod testcase;
pub mod trace;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Ctx, Entry, ToolError, arguments::Bounded};
use crate::{
    domain::time::Timestamp,
    store::workspace::{Authored, AuthoredQuery, EvaluationStatus},
};

/// The tools, in the order that the list has them.
pub static ENTRIES: &[Entry] = &[
    Entry::of::<quality::EvalQualityLatest>(),
    Entry::of::<get::EvalGet>(),
    Entry::of::<list::EvalList>(),
    Entry::writes::<run::EvalRun>(),
    Entry::writes::<testcase::EvalTestcaseAdd>(),
    Entry::writes::<trace::TraceCreate>(),
    Entry::writes::<span::TraceSpanCreate>(),
];

/// The tool whose effect takes minutes: its call answers at once.
pub const LONG_RUNNING: &str = "eval.run";

/// The entry of this name, to the letter.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// An evaluation's number: whole, from 1, and exact in every client's numbers.
pub type Number = Bounded<1, 9_007_199_254_740_991, 1>;

/// An evaluation, as the tool API shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Its number: what `evaluationId` takes.
    pub id: i64,
    /// Its id everywhere else.
    pub key: String,
    /// What people call it; its id where nobody has said.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// The rate from which it passes, 0 to 1.
    pub threshold: Option<f64>,
    /// Where it stands.
    pub status: EvaluationStatus,
    /// Whether nothing of it may be changed.
    pub locked: bool,
    /// Cases that were made here.
    pub test_case_count: u64,
    /// Runs that hold it.
    pub run_count: u64,
    /// When it was made, or first seen in a run.
    pub created_at: Timestamp,
    /// Who made it here.
    pub created_by: Option<String>,
}

impl From<Authored> for Evaluation {
    fn from(authored: Authored) -> Self {
        Self {
            id: authored.number,
            name: authored.name.unwrap_or_else(|| authored.id.clone()),
            key: authored.id,
            description: authored.description,
            family: authored.family,
            threshold: authored.threshold,
            status: authored.status,
            locked: authored.lock.is_some(),
            test_case_count: authored.cases,
            run_count: authored.runs,
            created_at: authored.created_at,
            created_by: authored.created_by,
        }
    }
}

/// The evaluation of this number. Another project's is not there.
///
/// # Errors
/// [`ToolError::NotFound`], and as the store.
pub fn evaluation(ctx: &Ctx, number: Number) -> Result<Authored, ToolError> {
    let wanted = i64::try_from(number.get()).ok();
    let query = AuthoredQuery { number: wanted, limit: 1, ..AuthoredQuery::default() };
    let found = if wanted.is_some() { ctx.store.authored(&query)?.0 } else { Vec::new() };
    found.into_iter().next().ok_or_else(|| ToolError::NotFound(format!("argument evaluationId: there is no evaluation {number}")))
}

/// A result as the text beside it: the same JSON, for people (decision 72).
fn pretty<T: Serialize>(output: &T) -> String {
    serde_json::to_string_pretty(output).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn none_of_them_is_a_tool_of_mcp_and_each_has_a_schema() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert!(
                tools::find(entry.name).is_none() && entry.toolsets.is_empty() && (!entry.released || entry.effect.writes()),
                "{}",
                entry.name
            );
            assert!(ENTRIES.iter().skip(index + 1).all(|other| other.name != entry.name), "{}", entry.name);
            assert_eq!(find(entry.name).map(|found| found.name), Some(entry.name));
            assert_eq!((entry.input_schema)()["type"], "object", "{}", entry.name);
            assert!(tools::argument_names(entry).iter().all(|name| !name.contains('_')), "{}", entry.name);
            assert!(!tools::argument_names(entry).is_empty(), "{}", entry.name);
        }
        assert!(find("eval_list").is_none() && find("eval.List").is_none());
    }

    #[test]
    fn no_release_writes() {
        for entry in ENTRIES.iter().filter(|entry| entry.effect.writes()) {
            assert!(["eval.run", "eval.testcase.add", "trace.create", "trace.span.create"].contains(&entry.name), "{}", entry.name);
        }
    }
}
