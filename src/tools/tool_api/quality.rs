//! `eval.quality.latest`: the newest score of an evaluation, and what it was in the run that it is held against (decision 74).
//!
//! Promises: the newest recorded completed run in which the evaluation was counted; errored, unscored and missing attempts are in no score, and the
//! counts stand beside it. What is judged is what is shown: scores have one decimal, and a fall of 5.0 or more is a regression.
//! Does not: say whether a difference is chance (MCP's `compare` does), or decide anything.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Number, evaluation, pretty};
use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        log::RunStatus,
        outcome::Counts,
        time::Timestamp,
    },
    store::{BaseQuery, CellQuery, Pick, PointQuery, RunPoint},
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum EvalQualityLatest {}

/// A fall of so many tenths of a point is a regression.
const REGRESSION_TENTHS: i64 = 50;
/// Runs that are looked through at once for one of production.
const PAGE: usize = 100;
/// The factor that says where a run's arm was, and its levels for production.
const FACTOR: &str = "environment";
const PRODUCTION: [&str; 2] = ["prod", "production"];

/// What the latest run is held against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum Baseline {
    /// The accepted baseline of the evaluation, else of the project.
    #[default]
    Published,
    /// The counted run before it.
    Previous,
    /// The newest counted run of an arm whose environment is production.
    Production,
}

/// The arguments of `eval.quality.latest`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The evaluation's number.
    #[arg(value_name = "NUMBER")]
    evaluation_id: Number,
    /// What the latest run is held against.
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    #[serde(default)]
    baseline: Baseline,
}

/// The result of `eval.quality.latest`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The evaluation's number.
    evaluation_id: i64,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation_run_id: Option<String>,
    /// Passed over counted, 0 to 100, with one decimal; null where no run has any.
    score: Option<f64>,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    found: Option<Found>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What there is to say where there is a score.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Attempts that the score is over.
    total: u32,
    /// What the score is over, and what is not in it.
    counts: Counts,
    /// When the run was created.
    created_at: Timestamp,
    /// What it is held against.
    baseline: Baseline,
    /// The baseline's score; null where there is none.
    baseline_score: Option<f64>,
    /// The baseline's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_run_id: Option<String>,
    /// What the baseline's score is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_counts: Option<Counts>,
    /// The score less the baseline's.
    regression_delta: Option<f64>,
    /// Whether it fell by 5.0 or more.
    regression_detected: bool,
    /// Whether there is no such baseline, or nothing of the evaluation was counted in it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    baseline_missing: bool,
}

/// A score in tenths of a point: whole numbers, so that what is judged is what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score(i64);

impl Score {
    /// That of `counts`; none where nothing was counted.
    pub(super) fn of(counts: Counts) -> Option<Self> {
        let (passed, counted) = (i64::from(counts.passed), i64::from(counts.counted()));
        // Half a tenth more, so that the division rounds.
        let rounded = passed.saturating_mul(2000).saturating_add(counted).checked_div(counted.saturating_mul(2));
        rounded.map(Self)
    }

    /// The score, 0 to 100.
    pub(super) fn shown(self) -> f64 {
        self.0 as f64 / 10.0
    }

    const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A run in which something of the evaluation was counted.
struct Scored {
    run_id: String,
    counts: Counts,
    score: Score,
}

impl Tool for EvalQualityLatest {
    const NAME: &'static str = "eval.quality.latest";
    const TITLE: &'static str = "Latest quality";
    const ABOUT: &'static str = "An evaluation's newest score against a baseline";
    const DOC: &'static str = "Gives the score of the newest completed recorded run of an evaluation, 0 to 100, and its difference from a baseline: the published (accepted) one, the previous run, or production. A fall of 5 points or more is reported as a regression; whether it is chance is not judged here.";
    const TOOLSETS: &'static [Toolset] = &[];
    const NARROWS: &'static str = "nothing";

    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        let look = Look::of(ctx, &found.id)?;
        let Some(newest) = look.newest() else { return Ok(nothing(found.number)) };
        let Some(latest) = look.scored(&newest.run_id)? else { return Ok(nothing(found.number)) };
        let baseline = match input.baseline {
            Baseline::Published => look.published()?,
            Baseline::Previous => look.previous(newest)?,
            Baseline::Production => look.production(newest)?,
        };
        Ok(Output {
            evaluation_id: found.number,
            evaluation_run_id: Some(latest.run_id.clone()),
            score: Some(latest.score.shown()),
            found: Some(against(input.baseline, &latest, newest.created_at, baseline)),
            ..Output::default()
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        pretty(output)
    }
}

fn nothing(number: i64) -> Output {
    let message = Some("no completed recorded run has a counted attempt of this evaluation yet".to_owned());
    Output { evaluation_id: number, message, ..Output::default() }
}

fn against(word: Baseline, latest: &Scored, created_at: Timestamp, baseline: Option<Scored>) -> Found {
    let delta = baseline.as_ref().map(|baseline| latest.score.less(baseline.score));
    Found {
        total: latest.counts.counted(),
        counts: latest.counts,
        created_at,
        baseline: word,
        baseline_score: baseline.as_ref().map(|baseline| baseline.score.shown()),
        baseline_counts: baseline.as_ref().map(|baseline| baseline.counts),
        regression_delta: delta.map(Score::shown),
        regression_detected: delta.is_some_and(|delta| delta.0 <= -REGRESSION_TENTHS),
        baseline_missing: baseline.is_none(),
        baseline_run_id: baseline.map(|baseline| baseline.run_id),
    }
}

/// The recorded completed runs of one evaluation.
struct Look<'a> {
    ctx: &'a Ctx,
    evaluation: &'a str,
    /// The newest counted cell of each arm.
    series: Vec<(CellKey, RunPoint)>,
}

impl<'a> Look<'a> {
    fn of(ctx: &'a Ctx, evaluation: &'a str) -> Result<Self, ToolError> {
        let points = ctx.store.points(&PointQuery {
            evaluation_contains: Some(evaluation),
            keys: None,
            grain: Grain::Evaluation,
            counted: true,
            statuses: &[RunStatus::Completed],
            pick: Pick::Newest,
        })?;
        let own = points.into_iter().filter(|point| point.cell.key.evaluation == evaluation);
        Ok(Self { ctx, evaluation, series: own.map(|point| (point.cell.key, point.run)).collect() })
    }

    /// The newest run in which anything was counted.
    fn newest(&self) -> Option<&RunPoint> {
        self.series.iter().map(|(_, run)| run).max_by(|a, b| (a.created_at, &a.run_id).cmp(&(b.created_at, &b.run_id)))
    }

    fn published(&self) -> Result<Option<Scored>, ToolError> {
        let rows = self.ctx.store.baselines(Some(self.evaluation))?;
        let mut standing = rows.into_iter().filter(|row| row.superseded_at.is_none() && row.present).collect::<Vec<_>>();
        // The evaluation's own comes before the project's.
        standing.sort_by_key(|row| row.evaluation.is_none());
        let Some(row) = standing.into_iter().next() else { return Ok(None) };
        self.scored(&row.run_id)
    }

    fn previous(&self, newest: &RunPoint) -> Result<Option<Scored>, ToolError> {
        self.before(newest.clone(), 1)?.first().map_or(Ok(None), |run| self.scored(&run.run_id))
    }

    fn production(&self, newest: &RunPoint) -> Result<Option<Scored>, ToolError> {
        let (mut page, mut more) = (vec![newest.clone()], true);
        loop {
            if let Some(run_id) = self.first_of_production(&page)? {
                return self.scored(&run_id);
            }
            let Some(last) = page.last().cloned().filter(|_| more) else { return Ok(None) };
            page = self.before(last, PAGE)?;
            more = page.len() == PAGE;
        }
    }

    /// The counted runs before this one, newest first.
    fn before(&self, run: RunPoint, limit: usize) -> Result<Vec<RunPoint>, ToolError> {
        let keys: Vec<CellKey> = self.series.iter().map(|(key, _)| key.clone()).collect();
        let bases = self.ctx.store.bases(&BaseQuery { keys: &keys, before: run, shas: None, limit })?;
        Ok(bases.into_iter().map(|base| RunPoint { run_id: base.run.run_id, created_at: base.run.created_at }).collect())
    }

    /// The first of `runs` in which an arm of production has a counted cell.
    fn first_of_production(&self, runs: &[RunPoint]) -> Result<Option<String>, ToolError> {
        let ids: Vec<String> = runs.iter().map(|run| run.run_id.clone()).collect();
        let arms = self.ctx.store.arms(&ids)?;
        let cells = self.cells(ids)?;
        let of_production = |cell: &&Cell| {
            let arms = arms.get(&cell.run_id).into_iter().flatten();
            let mut named = arms.filter(|arm| arm.info.name == cell.key.arm);
            cell.verdict.counted()
                && named.any(|arm| arm.info.factors.get(FACTOR).is_some_and(|level| PRODUCTION.contains(&level.as_str())))
        };
        let held: Vec<&str> = cells.iter().filter(of_production).map(|cell| cell.run_id.as_str()).collect();
        Ok(runs.iter().map(|run| run.run_id.clone()).find(|id| held.contains(&id.as_str())))
    }

    fn cells(&self, runs: Vec<String>) -> Result<Vec<Cell>, ToolError> {
        let query = CellQuery { runs, evaluation: Some(self.evaluation.to_owned()), grain: Grain::Evaluation, ..CellQuery::default() };
        Ok(self.ctx.store.cells(&query)?)
    }

    /// The score over all arms; none where nothing was counted.
    fn scored(&self, run_id: &str) -> Result<Option<Scored>, ToolError> {
        let cells = self.cells(vec![run_id.to_owned()])?;
        let counts = cells.iter().fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
        Ok(Score::of(counts).map(|score| Scored { run_id: run_id.to_owned(), counts, score }))
    }
}

#[cfg(test)]
mod tests;
