//! `baseline_lineage`: which runs were accepted as the reference, by whom and why, and what took their place.
//!
//! Promises: newest first; each acceptance stands for ever, whether its run is still there or not.
//! Does not: accept one: `runlore baseline accept` does, which no tool can.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::time::Timestamp,
    store::workspace::BaselineRow,
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::Bounded,
        cursor::List,
        render::{self, Grid, Style},
    },
};

/// The tool.
pub enum BaselineLineage {}

/// The arguments of `baseline_lineage`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only acceptances for this evaluation and for the whole project.
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    pub evaluation: Option<String>,
    /// How many acceptances a page has.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `baseline_lineage`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Newest first.
    pub baselines: Vec<Baseline>,
    /// How many are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for the next page.
    pub next_cursor: Option<String>,
    /// What else should be known.
    pub note: Option<String>,
}

/// An acceptance.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// The run.
    pub run_id: String,
    /// The evaluation; null for the whole project.
    pub evaluation: Option<String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// By whom.
    pub accepted_by: String,
    /// Why.
    pub note: Option<String>,
    /// The run that was the reference before.
    pub replaces: Option<String>,
    /// When another took its place; null for the reference of today.
    pub superseded_at: Option<Timestamp>,
    /// Whether the run is still in the project.
    pub present: bool,
}

impl From<BaselineRow> for Baseline {
    fn from(row: BaselineRow) -> Self {
        let BaselineRow { run_id, evaluation, accepted_at, accepted_by, note, replaces, superseded_at, present } = row;
        Self { run_id, evaluation, accepted_at, accepted_by, note, replaces, superseded_at, present }
    }
}

impl Tool for BaselineLineage {
    const NAME: &'static str = "baseline_lineage";
    const VERB: &'static str = "baseline-lineage";
    const TITLE: &'static str = "Baselines and their lineage";
    const ABOUT: &'static str = "Which runs were accepted as baselines, by whom, when and why";
    const DOC: &'static str = "Lists the runs that were accepted as baselines, newest first: who accepted them, when, why, what each replaced, and whether it still holds.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read", "runs:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "evaluation and limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let after = list.place::<Place>(input.cursor.as_deref())?;
        let mut rows = ctx.store.baselines(input.evaluation.as_deref())?;
        let total = rows.len();
        if let Some(after) = after {
            let at = rows.iter().position(|row| place(row) == after).map_or(total, |at| at + 1);
            rows.drain(..at);
        }
        let complete = rows.len() <= input.limit.count();
        rows.truncate(input.limit.count());
        let next_cursor = rows.last().filter(|_| !complete).map(|last| list.at(&place(last)));
        let note = (total == 0).then(|| "No run was accepted as a baseline; `runlore baseline accept RUN` accepts one.".to_owned());
        Ok(Output { returned: rows.len(), baselines: rows.into_iter().map(Into::into).collect(), total, complete, next_cursor, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        if output.baselines.is_empty() {
            return note.trim_start().to_owned();
        }
        let mut grid = Grid::new(style, &["accepted (UTC)", "for", "run", "by", "holds", "why"]);
        for one in output.baselines.iter().take(render::ROWS_SHOWN) {
            grid.row([
                render::short_time(one.accepted_at).into(),
                one.evaluation.clone().unwrap_or_else(|| "(project)".to_owned()).into(),
                one.run_id.clone().into(),
                one.accepted_by.clone().into(),
                held(one).into(),
                render::one_line(one.note.as_deref().unwrap_or("-")).into(),
            ]);
        }
        grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64) + &note
    }
}

fn held(one: &Baseline) -> String {
    match (one.superseded_at, one.present) {
        (None, true) => "yes".to_owned(),
        (None, false) => "its run is gone".to_owned(),
        (Some(at), _) => format!("until {}", render::short_time(at)),
    }
}

/// An acceptance's place in the list.
type Place = (i64, Option<String>, String);

fn place(row: &BaselineRow) -> Place {
    (row.accepted_at.millis(), row.evaluation.clone(), row.run_id.clone())
}
