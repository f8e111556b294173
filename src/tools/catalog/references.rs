//! `references`: published and human scores beside what the arms score now.
//!
//! Promises: ours is each arm's newest counted cell in a recorded completed run, with its interval over cases; the reference is as it is declared.
//! Does not: say who is better: a published score was measured elsewhere.

use std::collections::BTreeMap;

use super::{
    blocks::{Blocks, Cell as Value, Table, rounded},
    datasets::Input,
    kept,
    standings::PASS,
};
use crate::{
    domain::{
        cell::{Cell, Grain},
        declared::Reference,
        log::RunStatus,
        outcome::round3,
    },
    stats::{self, Interval},
    store::{CellQuery, Pick, Point, PointQuery},
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum References {}

impl Tool for References {
    const NAME: &'static str = "references";
    const TITLE: &'static str = "References";
    const ABOUT: &'static str = "Published and human scores beside ours";
    const DOC: &'static str = "Lists the reference scores of runlore.toml beside what each arm scores now, with the 95% interval over cases and whether the reference lies in it.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let declared = ctx.store.declared()?.reference;
        let mut out = Blocks::of::<Self>();
        if declared.is_empty() {
            let how = "No reference is declared; a [[reference]] in runlore.toml has evaluation, metric, value, kind, source and n.";
            out.lines([how.to_owned()]);
            return Ok(out);
        }
        let columns = [
            "evaluation",
            "metric",
            "reference",
            "kind",
            "source",
            "reference_n",
            "arm",
            "ours",
            "low",
            "high",
            "n",
            "difference",
            "within",
            "run",
        ];
        let mut table = Table::new("References", &columns);
        for reference in &declared {
            let source = reference.source.as_deref().unwrap_or_default();
            if kept(input.filter.as_deref(), &[&reference.evaluation, &reference.metric, source]) {
                rows(ctx, reference, &mut table)?;
            }
        }
        out.long_table(ctx, table, "filter");
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

/// What an arm scores now.
struct Ours {
    mean: f64,
    interval: Option<Interval>,
    cases: usize,
}

fn rows(ctx: &Ctx, reference: &Reference, table: &mut Table) -> Result<(), ToolError> {
    let head = || -> [Value; 6] {
        [
            reference.evaluation.clone().into(),
            reference.metric.clone().into(),
            reference.value.into(),
            reference.kind.clone().into(),
            reference.source.clone().into(),
            reference.n.into(),
        ]
    };
    let points = newest(ctx, &reference.evaluation)?;
    if points.is_empty() {
        table.row(head());
    }
    for Point { cell, run } in points {
        let ours = ours(ctx, &reference.metric, &cell)?;
        let ends = ours.as_ref().and_then(|ours| ours.interval);
        let mean = ours.as_ref().map(|ours| ours.mean);
        table.row(head().into_iter().chain([
            cell.key.arm.into(),
            mean.map(round3).into(),
            ends.map(|ends| round3(ends.low)).into(),
            ends.map(|ends| round3(ends.high)).into(),
            ours.as_ref().map(|ours| ours.cases).into(),
            mean.map_or(Value::Null, |mean| rounded(mean - reference.value)),
            ends.map(|ends| ends.contains(reference.value)).into(),
            run.run_id.into(),
        ]));
    }
    Ok(())
}

/// The newest counted cell of each arm.
fn newest(ctx: &Ctx, evaluation: &str) -> Result<Vec<Point>, ToolError> {
    let points = ctx.store.points(&PointQuery {
        evaluation_contains: Some(evaluation),
        keys: None,
        grain: Grain::Evaluation,
        counted: true,
        statuses: &[RunStatus::Completed],
        pick: Pick::Newest,
    })?;
    Ok(points.into_iter().filter(|point| point.cell.key.evaluation == evaluation).collect())
}

fn ours(ctx: &Ctx, metric: &str, cell: &Cell) -> Result<Option<Ours>, ToolError> {
    if metric != PASS {
        let scores = ctx.store.scores(&cell.run_id, Some(&cell.key.evaluation), Some(metric))?;
        let of_arm = scores.iter().filter(|score| score.arm == cell.key.arm && score.n > 0);
        let means: Vec<f64> = of_arm.map(|score| score.sum / score.n as f64).collect();
        let mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
        return Ok(mean.map(|mean| Ours { mean, interval: stats::student_t(&means), cases: means.len() }));
    }
    let cases = ctx.store.cells(&CellQuery {
        runs: vec![cell.run_id.clone()],
        evaluation: Some(cell.key.evaluation.clone()),
        grain: Grain::Case,
        ..CellQuery::default()
    })?;
    let mut counted = BTreeMap::<Option<String>, (u64, u64)>::new();
    for case in cases.into_iter().filter(|case| case.key.arm == cell.key.arm && case.counts.counted() > 0) {
        counted.insert(case.key.case, (case.counts.passed.into(), case.counts.counted().into()));
    }
    let counted: Vec<(u64, u64)> = counted.into_values().collect();
    let mean = cell.counts.rate().map(crate::domain::outcome::Rate::value);
    Ok(mean.map(|mean| Ours { mean, interval: stats::clustered_rate(&counted), cases: counted.len() }))
}
