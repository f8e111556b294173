//! `project_plan`: what is worth doing next, computed from the state of the project.
//!
//! Promises: advisory; every item has its evidence (numbers, runs) and the call that shows it or does it; nothing is listed that the state does not
//! show, and nothing is said to be real beyond what the paired test says. A plan of nothing is an empty list.
//! Does not: do any of it.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    domain::{outcome::Counts, time::Timestamp},
    stats::Word,
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        arguments::{Bounded, Hundredths},
        render::{self, Grid, Style},
    },
};

mod baselines;
mod evaluations;
pub mod results;
mod state;

use state::State;

/// The tool.
pub enum ProjectPlan {}

/// The arguments of `project_plan`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The difference of pass rates that is looked for: evaluations that cannot show it at 80% power are named.
    #[arg(long, value_name = "SHARE", default_value_t)]
    #[serde(default)]
    pub difference: Hundredths<1, 100, 10>,
    /// How many items.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
}

/// The result of `project_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Always true: nothing here is a decision.
    pub advisory: bool,
    /// The most urgent first.
    pub items: Vec<Item>,
    /// How many are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What else should be known.
    pub note: Option<String>,
}

/// What is worth doing something about. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It got worse against the baseline, or against the run before.
    Regressed,
    /// The baseline's run is no longer in the project.
    BaselineGone,
    /// It was made here and has no case.
    WithoutCases,
    /// It has cases and no run.
    NeverRun,
    /// The same case both passed and failed in one run.
    Flaky,
    /// Too few cases or attempts for the difference that is looked for.
    TooFew,
    /// The newest runs leave it out.
    NotRunLately,
    /// Many runs are newer than the baseline, or its commit is not among those of the newest run.
    BaselineStale,
    /// No run was accepted as a baseline.
    NoBaseline,
}

impl Kind {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::BaselineGone => "baseline_gone",
            Self::WithoutCases => "without_cases",
            Self::NeverRun => "never_run",
            Self::Flaky => "flaky",
            Self::TooFew => "too_few",
            Self::NotRunLately => "not_run_lately",
            Self::BaselineStale => "baseline_stale",
            Self::NoBaseline => "no_baseline",
        }
    }

    /// Whether it says that something is out of date.
    #[must_use]
    pub const fn stale(self) -> bool {
        matches!(self, Self::BaselineGone | Self::NotRunLately | Self::BaselineStale)
    }
}

/// One thing that is worth doing something about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its place: 1 is the most urgent.
    pub priority: usize,
    /// What it is.
    pub kind: Kind,
    /// The evaluation that it is about; null for the whole project.
    pub evaluation: Option<String>,
    /// The arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// In a sentence.
    pub why: String,
    /// The facts behind it.
    pub evidence: Evidence,
    /// The call that shows it, or does it.
    pub next: Next,
}

/// The facts behind an item. What does not belong to it is absent.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The run that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// When that run was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Its counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// The run that it was held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_run_id: Option<String>,
    /// That run's counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_counts: Option<Counts>,
    /// The mean difference over the cases that both counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// What the paired test says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Word>,
    /// The chance that two attempts of a case disagree, at the mean of the cases counted twice or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip_rate: Option<f64>,
    /// Cases that it is about, or that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<u64>,
    /// Cases that it would take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases_needed: Option<u64>,
    /// Attempts at each of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_needed: Option<u64>,
    /// Runs since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_since: Option<u64>,
}

/// A call worth making next.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Next {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// A call of `tool` with these arguments.
fn call<const N: usize>(tool: &'static str, arguments: [(&str, Value); N]) -> Next {
    Next { tool, arguments: arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}

impl Item {
    fn new(kind: Kind, evaluation: Option<&str>, why: String, evidence: Evidence, next: Next) -> Self {
        Self { priority: 0, kind, evaluation: evaluation.map(str::to_owned), arm: None, why, evidence, next }
    }
}

/// Every item but those that compare, the most urgent first: what `project_inspect` says is stale.
///
/// # Errors
/// As the store.
pub fn stale(ctx: &Ctx) -> Result<Vec<Item>, ToolError> {
    let state = State::read(ctx)?;
    let items = baselines::items(ctx, &state)?.into_iter().chain(evaluations::items(&state));
    Ok(ordered(items.filter(|item| item.kind.stale()).collect()))
}

fn ordered(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by(|a, b| (a.kind, &a.evaluation, &a.arm).cmp(&(b.kind, &b.evaluation, &b.arm)));
    items.iter_mut().zip(1..).for_each(|(item, place)| item.priority = place);
    items
}

impl Tool for ProjectPlan {
    const NAME: &'static str = "project_plan";
    const VERB: &'static str = "project-plan";
    const TITLE: &'static str = "What to do next";
    const ABOUT: &'static str = "What is worth doing next, each with its evidence and the next call";
    const DOC: &'static str = "Lists what is worth doing next, the most urgent first, each with its evidence and the next call: evaluations that regressed, are flaky, have no cases or no run, have too few cases for the difference looked for, and baselines that are stale. Advisory: it decides nothing.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let state = State::read(ctx)?;
        let mut items = results::items(ctx, &state, input.difference)?;
        items.extend(baselines::items(ctx, &state)?);
        items.extend(evaluations::items(&state));
        let mut items = ordered(items);
        let total = items.len();
        items.truncate(input.limit.count());
        let note = (total == 0).then(|| state.nothing());
        Ok(Output { advisory: true, returned: items.len(), complete: items.len() == total, items, total, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        if output.items.is_empty() {
            return note.trim_start().to_owned();
        }
        let mut grid = Grid::new(style, &["#", "what", "evaluation", "why", "next"]);
        for item in output.items.iter().take(render::ROWS_SHOWN) {
            let arguments = item.next.arguments.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ");
            grid.row([
                item.priority.to_string().into(),
                item.kind.word().into(),
                render::named(item.evaluation.as_deref().unwrap_or("(project)"), None, item.arm.as_deref()).into(),
                item.why.clone().into(),
                format!("{} {{{arguments}}}", item.next.tool).into(),
            ]);
        }
        let more = render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64);
        format!("Advisory, computed from the state of the project:\n{}{more}{note}", grid.text())
    }
}
