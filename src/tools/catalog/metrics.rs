//! `metrics`: what is measured: each evaluation's checks with their means over cases, in its newest run (decision 67).
//!
//! Promises: the mean is over cases, each by the mean of its attempts' scores; `pass` is the pass rate by the same rule.
//! Does not: add up runs; `query_check_rates` does.

use std::collections::BTreeMap;

use super::{
    blocks::{Blocks, Table},
    datasets::Input,
    kept,
    standings::PASS,
};
use crate::{
    domain::{
        cell::{Cell, Grain},
        outcome::{Rate, round3},
    },
    store::{CellQuery, Dataset, Score},
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum Metrics {}

/// Evaluations whose scores are added up for one answer.
const EVALUATIONS_MAX: usize = 500;

impl Tool for Metrics {
    const NAME: &'static str = "metrics";
    const TITLE: &'static str = "Metrics";
    const ABOUT: &'static str = "What is measured: checks and scores, with their means";
    const DOC: &'static str = "Lists what each evaluation measures: pass and its checks, with the mean over cases per arm in the newest run that holds it. goals and references name these metrics.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let columns = ["metric", "kind", "evaluation", "arm", "mean", "cases", "n", "answered", "passed", "run"];
        let mut table = Table::new("Metrics", &columns);
        let datasets = ctx.store.datasets()?;
        let named = |dataset: &Dataset, metric: &str| kept(input.filter.as_deref(), &[metric, &dataset.info.id]);
        for dataset in datasets.iter().take(EVALUATIONS_MAX) {
            let mut rows = Vec::new();
            if named(dataset, PASS) {
                rows.extend(passes(ctx, dataset)?);
            }
            rows.extend(checks(ctx, dataset)?.into_iter().filter(|row| named(dataset, &row.metric)));
            for row in rows {
                table.row([
                    row.metric.into(),
                    row.kind.into(),
                    dataset.info.id.clone().into(),
                    row.arm.into(),
                    row.mean.map(round3).into(),
                    row.cases.into(),
                    row.n.into(),
                    row.answered.into(),
                    row.passed.into(),
                    dataset.newest.run_id.clone().into(),
                ]);
            }
        }
        let mut out = Blocks::of::<Self>();
        out.long_table(ctx, table, "filter");
        if datasets.len() > EVALUATIONS_MAX {
            out.lines([format!("Only the first {EVALUATIONS_MAX} of {} evaluations were looked at.", datasets.len())]);
        }
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

/// What one arm scored in one metric.
struct Mean {
    metric: String,
    kind: String,
    arm: String,
    mean: Option<f64>,
    cases: u64,
    n: u64,
    answered: u64,
    passed: u64,
}

fn passes(ctx: &Ctx, dataset: &Dataset) -> Result<Vec<Mean>, ToolError> {
    let cells = ctx.store.cells(&CellQuery {
        runs: vec![dataset.newest.run_id.clone()],
        evaluation: Some(dataset.info.id.clone()),
        grain: Grain::Case,
        ..CellQuery::default()
    })?;
    let mut by_arm = BTreeMap::<String, Vec<Cell>>::new();
    cells.into_iter().for_each(|cell| by_arm.entry(cell.key.arm.clone()).or_default().push(cell));
    let mean = |(arm, cells): (String, Vec<Cell>)| {
        let rates: Vec<f64> = cells.iter().filter_map(|cell| cell.counts.rate().map(Rate::value)).collect();
        let (n, passed) =
            cells.iter().fold((0, 0), |(n, passed), cell| (n + u64::from(cell.counts.counted()), passed + u64::from(cell.counts.passed)));
        Mean {
            metric: PASS.to_owned(),
            kind: "rate".to_owned(),
            arm,
            mean: mean(&rates),
            cases: rates.len() as u64,
            n,
            answered: n,
            passed,
        }
    };
    Ok(by_arm.into_iter().map(mean).collect())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn checks(ctx: &Ctx, dataset: &Dataset) -> Result<Vec<Mean>, ToolError> {
    let mut by_check = BTreeMap::<(String, String), Vec<Score>>::new();
    for score in ctx.store.scores(&dataset.newest.run_id, Some(&dataset.info.id), None)? {
        by_check.entry((score.check.clone(), score.arm.clone())).or_default().push(score);
    }
    let of = |((metric, arm), scores): ((String, String), Vec<Score>)| {
        let means: Vec<f64> = scores.iter().filter(|score| score.n > 0).map(|score| score.sum / score.n as f64).collect();
        let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum();
        let kind = scores.first().map(|score| score.kind.clone()).unwrap_or_default();
        Mean {
            metric,
            kind,
            arm,
            mean: mean(&means),
            cases: means.len() as u64,
            n: sum(|score| score.n),
            answered: sum(|score| score.answered),
            passed: sum(|score| score.passed),
        }
    };
    Ok(by_check.into_iter().map(of).collect())
}
