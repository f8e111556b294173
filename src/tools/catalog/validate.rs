//! `validate`: what is wrong with the store, the sources and the declarations, and where.
//!
//! Promises: every complaint names the thing and what would be right; an answer without complaints says what was looked at.
//! Does not: mend anything, or stand where texts are hidden: a public copy is not a whole project (decision 35).

use std::collections::BTreeSet;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Table},
    standings::{PASS, evaluations_of},
};
use crate::{
    domain::declared::{Declared, matches},
    store::{Dataset, FileState},
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum Validate {}

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

impl Tool for Validate {
    const NAME: &'static str = "validate";
    const TITLE: &'static str = "Validate";
    const ABOUT: &'static str = "What is wrong with the store, the logs and runlore.toml";
    const DOC: &'static str = "Checks the store, the logs and the declarations of runlore.toml, and says what is wrong where: broken logs, remarks, names that match nothing.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read"], &["traces:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "nothing: mend some of it first";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, _: Input) -> Result<Blocks, ToolError> {
        let mut faults = Faults::default();
        for sentence in ctx.store.integrity()? {
            faults.add("store", "history.db", &sentence);
        }
        let files = ctx.store.files(None)?;
        for file in &files {
            if let FileState::Broken(reason) = &file.state {
                faults.add("log", &file.stamp.path, reason);
            }
        }
        for (path, remarks) in ctx.store.remarks()? {
            remarks.iter().for_each(|remark| faults.add("remark", &path, remark));
        }
        let (declared, datasets) = (ctx.store.declared()?, ctx.store.datasets()?);
        declarations(ctx, &declared, &datasets, &mut faults)?;
        let mut out = Blocks::of::<Self>();
        let logs = files.iter().filter(|file| matches!(file.state, FileState::Log(_))).count();
        let looked = format!(
            "Looked at the store, {} files ({logs} logs), {} evaluations and {} declarations.",
            files.len(),
            datasets.len(),
            declared.source.len() + declared.evaluation.len() + declared.arm.len() + declared.goal.len() + declared.reference.len()
        );
        let count = faults.0.len();
        let found = match count {
            0 => "Nothing is wrong.".to_owned(),
            1 => "1 complaint.".to_owned(),
            _ => format!("{count} complaints."),
        };
        out.lines([looked, found]);
        if count > 0 {
            out.long_table(ctx, faults.table(), "mending some first");
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

/// What is wrong: kind, where, what.
#[derive(Default)]
struct Faults(Vec<[String; 3]>);

impl Faults {
    fn add(&mut self, kind: &str, place: &str, what: &str) {
        self.0.push([kind.to_owned(), place.to_owned(), what.to_owned()]);
    }

    fn table(self) -> Table {
        let mut table = Table::new("Complaints", &["kind", "where", "what"]);
        self.0.into_iter().for_each(|fault| table.row(fault.map(Into::into)));
        table
    }
}

fn declarations(ctx: &Ctx, declared: &Declared, datasets: &[Dataset], faults: &mut Faults) -> Result<(), ToolError> {
    let ids: Vec<String> = datasets.iter().map(|dataset| dataset.info.id.clone()).collect();
    let arms: Vec<String> = ctx.store.arm_totals()?.into_iter().map(|arm| arm.info.name).collect();
    let none = |pattern: &str, names: &[String]| !names.iter().any(|name| matches(pattern, name));
    for rule in declared.evaluation.iter().filter(|rule| none(&rule.id, &ids)) {
        faults.add("declaration", &format!("[[evaluation]] id = \"{}\"", rule.id), "no evaluation of any run matches; datasets lists them");
    }
    for rule in &declared.arm {
        // A renamed arm is known by its declared name alone.
        let named = rule.name.as_ref().is_some_and(|name| arms.contains(name));
        if !named && none(&rule.matches, &arms) {
            faults.add("declaration", &format!("[[arm]] match = \"{}\"", rule.matches), "no arm of any run matches; arms lists them");
        }
    }
    goals(ctx, declared, (&ids, &arms), datasets, faults)?;
    references(ctx, declared, datasets, faults)
}

fn goals(
    ctx: &Ctx,
    declared: &Declared,
    (ids, arms): (&[String], &[String]),
    datasets: &[Dataset],
    faults: &mut Faults,
) -> Result<(), ToolError> {
    let mut seen = BTreeSet::new();
    for goal in &declared.goal {
        let place = format!("[[goal]] id = \"{}\"", goal.id);
        if !seen.insert(&goal.id) {
            faults.add("goal", &place, "the id stands twice; give each goal its own");
        }
        if goal.arm == goal.versus {
            faults.add("goal", &place, "arm and versus are the same; name two");
        }
        for arm in [&goal.arm, &goal.versus].into_iter().filter(|arm| !arms.contains(arm)) {
            faults.add("goal", &place, &format!("no run has the arm \"{arm}\"; arms lists them"));
        }
        for pattern in goal.evaluations.iter().filter(|pattern| !ids.iter().any(|id| matches(pattern, id))) {
            faults.add("goal", &place, &format!("no evaluation matches \"{pattern}\"; datasets lists them"));
        }
        if !(-1.0..=1.0).contains(&goal.margin) && goal.metric == PASS {
            faults.add("goal", &place, &format!("margin = {} of a pass rate; give one from -1 to 1", goal.margin));
        }
        let over: Vec<&String> = evaluations_of(goal, ids).collect();
        if !over.is_empty() && !measured(ctx, &goal.metric, &over, datasets)? {
            faults.add("goal", &place, &format!("no newest run of its evaluations has the metric \"{}\"; metrics lists them", goal.metric));
        }
    }
    Ok(())
}

/// Evaluations in whose newest run a metric is looked for.
const LOOKED_AT: usize = 50;

/// Whether the newest run of one of these evaluations has the metric.
fn measured(ctx: &Ctx, metric: &str, over: &[&String], datasets: &[Dataset]) -> Result<bool, ToolError> {
    if metric == PASS {
        return Ok(true);
    }
    for dataset in datasets.iter().filter(|dataset| over.contains(&&dataset.info.id)).take(LOOKED_AT) {
        if !ctx.store.scores(&dataset.newest.run_id, Some(&dataset.info.id), Some(metric))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn references(ctx: &Ctx, declared: &Declared, datasets: &[Dataset], faults: &mut Faults) -> Result<(), ToolError> {
    for reference in &declared.reference {
        let place = format!("[[reference]] evaluation = \"{}\" metric = \"{}\"", reference.evaluation, reference.metric);
        if reference.metric == PASS && !(0.0..=1.0).contains(&reference.value) {
            faults.add("reference", &place, &format!("value = {} of a pass rate; give one from 0 to 1", reference.value));
        }
        if !datasets.iter().any(|dataset| dataset.info.id == reference.evaluation) {
            faults.add("reference", &place, "no run holds the evaluation; datasets lists them");
        } else if !measured(ctx, &reference.metric, &[&reference.evaluation], datasets)? {
            faults.add("reference", &place, "its newest run has no such metric; metrics lists them");
        }
    }
    Ok(())
}
