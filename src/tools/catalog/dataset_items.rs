//! `dataset_items`: the cases of a dataset, with how each stands now; one case's texts where asked for.
//!
//! Promises: ids are looked up, so `openai/gsm8k` is one and nothing maps to a path (decision 69); texts only to whom may read them.
//! Does not: show attempts; `inspect` does.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Cell, Profile, Spread, Table, rate},
    datasets::id_of,
    kept, sees_text,
};
use crate::{
    domain::{
        attempt::shorten,
        cell::{CellKey, Grain},
        outcome::Counts,
    },
    store::{Item, Pick, Point, PointQuery},
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::Bounded,
        render::{self, Style},
    },
};

/// The tool.
pub enum DatasetItems {}

/// The arguments of `dataset_items`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The dataset, or an evaluation, by its id.
    pub dataset: String,
    /// This case alone, with its input and target.
    #[arg(long, value_name = "CASE")]
    #[serde(default)]
    pub item: Option<String>,
    /// Only cases whose id or group contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// How many cases.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 500, 20>,
    /// The first case, from 0.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub offset: Bounded<0, 4_294_967_295, 0>,
}

impl Tool for DatasetItems {
    const NAME: &'static str = "dataset_items";
    const VERB: &'static str = "dataset-items";
    const TITLE: &'static str = "Dataset items";
    const ABOUT: &'static str = "The cases of a dataset and how each stands";
    const DOC: &'static str = "Lists the cases of a dataset by id, each with its group and its newest counted result per arm in a recorded run; result.profile says what they are like.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const TEXT_ARGUMENTS: &'static [&'static str] = &["item"];
    const NARROWS: &'static str = "filter, limit and offset";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let evaluations = evaluations(ctx, &input.dataset)?;
        let mut all: Vec<(String, Item)> = Vec::new();
        for evaluation in evaluations {
            all.extend(ctx.store.items(&evaluation)?.into_iter().map(|item| (evaluation.clone(), item)));
        }
        let profile = profile(&all);
        let wanted = |(_, item): &(String, Item)| {
            let group = item.group.as_deref().unwrap_or_default();
            input.item.as_ref().is_none_or(|case| item.case == *case) && kept(input.filter.as_deref(), &[&item.case, group])
        };
        all.retain(wanted);
        if let Some(case) = input.item.as_ref().filter(|_| all.is_empty()) {
            let sentence = format!("argument item: \"{}\" is no case of \"{}\"", shown(case), shown(&input.dataset));
            return Err(ToolError::NotFound(sentence));
        }
        let total = all.len();
        let page: Vec<(String, Item)> = all.into_iter().skip(input.offset.count()).take(input.limit.count()).collect();
        let mut out = Blocks::of::<Self>();
        out.table(table(ctx, &page)?);
        let last = input.offset.count().saturating_add(page.len());
        if total > last {
            out.lines([format!("{} more of {total} cases; go on with offset {last}.", total - last)]);
        }
        if input.item.is_some() && sees_text(ctx) {
            texts(ctx, &page, &mut out)?;
        }
        out.profile(profile);
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

fn shown(id: &str) -> String {
    render::clean(&shorten(id, 120))
}

/// The evaluations that `name` means: the one of that id, else those of the dataset of that id.
fn evaluations(ctx: &Ctx, name: &str) -> Result<Vec<String>, ToolError> {
    let all = ctx.store.datasets()?;
    if all.iter().any(|dataset| dataset.info.id == name) {
        return Ok(vec![name.to_owned()]);
    }
    let found: Vec<String> = all.iter().filter(|dataset| id_of(dataset) == name).map(|dataset| dataset.info.id.clone()).collect();
    if found.is_empty() {
        return Err(ToolError::NotFound(format!("argument dataset: there is no dataset \"{}\"; datasets lists them", shown(name))));
    }
    Ok(found)
}

fn profile(all: &[(String, Item)]) -> Profile {
    let groups: BTreeSet<(&String, &String)> =
        all.iter().filter_map(|(evaluation, item)| Some((evaluation, item.group.as_ref()?))).collect();
    Profile {
        cases: all.len(),
        groups: groups.len(),
        ungrouped: all.iter().filter(|(_, item)| item.group.is_none()).count(),
        input_chars: Spread::of(all.iter().filter_map(|(_, item)| item.input_chars)),
        target_chars: Spread::of(all.iter().filter_map(|(_, item)| item.target_chars)),
    }
}

/// How each case of the page stands: one row for each arm that has counted it.
fn table(ctx: &Ctx, page: &[(String, Item)]) -> Result<Table, ToolError> {
    let mut table = Table::new("Items", &["evaluation", "item", "group", "arm", "passed", "counted", "rate", "run", "last"]);
    let arms: Vec<String> = ctx.store.arm_totals()?.into_iter().map(|arm| arm.info.name).collect();
    let key = |evaluation: &String, case: &String, arm: &String| CellKey {
        evaluation: evaluation.clone(),
        case: Some(case.clone()),
        arm: arm.clone(),
    };
    let keys: Vec<CellKey> =
        page.iter().flat_map(|(evaluation, item)| arms.iter().map(move |arm| key(evaluation, &item.case, arm))).take(KEYS_MAX).collect();
    let query =
        PointQuery { evaluation_contains: None, keys: Some(&keys), grain: Grain::Case, counted: true, statuses: &[], pick: Pick::Newest };
    let mut points = BTreeMap::<(String, String), Vec<Point>>::new();
    for point in ctx.store.points(&query)? {
        let place = (point.cell.key.evaluation.clone(), point.cell.key.case.clone().unwrap_or_default());
        points.entry(place).or_default().push(point);
    }
    for (evaluation, item) in page {
        let head = || [evaluation.clone().into(), item.case.clone().into(), item.group.clone().into()].into_iter();
        let found = points.remove(&(evaluation.clone(), item.case.clone())).unwrap_or_default();
        if found.is_empty() {
            table.row(head());
        }
        for Point { cell, run } in found {
            let Counts { passed, .. } = cell.counts;
            let tail: [Cell; 6] = [
                cell.key.arm.into(),
                passed.into(),
                cell.counts.counted().into(),
                rate(cell.counts),
                run.run_id.into(),
                run.created_at.into(),
            ];
            table.row(head().chain(tail));
        }
    }
    Ok(table)
}

/// Cases and arms that are looked up for one page.
const KEYS_MAX: usize = 20_000;

fn texts(ctx: &Ctx, page: &[(String, Item)], out: &mut Blocks) -> Result<(), ToolError> {
    for (evaluation, item) in page {
        let Some(text) = ctx.store.item_text(evaluation, &item.case)? else { continue };
        for (what, text) in [("Input", text.input), ("Target", text.target)] {
            out.titled(&format!("{what} of {evaluation} / {}", item.case), [text.unwrap_or_else(|| "(none is kept)".to_owned())]);
        }
    }
    Ok(())
}
