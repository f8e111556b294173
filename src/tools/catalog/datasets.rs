//! `datasets`: the evaluations with the datasets that they are run over.
//!
//! Promises: each id in it is taken by `dataset_items`.
//! Does not: show a case.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Table},
    kept,
};
use crate::{
    store::Dataset,
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum Datasets {}

/// The arguments of `datasets`, and of other views that list by name.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only what has a name that contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
}

/// The id of an evaluation's dataset: its name, or that of the evaluation where it has none.
pub(super) fn id_of(dataset: &Dataset) -> &str {
    dataset.info.dataset.as_deref().filter(|name| !name.is_empty()).unwrap_or(&dataset.info.id)
}

impl Tool for Datasets {
    const NAME: &'static str = "datasets";
    const TITLE: &'static str = "Datasets";
    const ABOUT: &'static str = "The evaluations and the datasets that they are run over";
    const DOC: &'static str = "Lists each evaluation's dataset: its id, digest and number of cases, how many the newest run tried, and the evaluation's family and runs.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let columns = ["dataset", "evaluation", "family", "cases", "digest", "tried", "runs", "threshold", "last_run", "last"];
        let mut table = Table::new("Datasets", &columns);
        for dataset in &ctx.store.datasets()? {
            let info = &dataset.info;
            if !kept(input.filter.as_deref(), &[id_of(dataset), &info.id]) {
                continue;
            }
            table.row([
                id_of(dataset).into(),
                info.id.clone().into(),
                info.family.clone().into(),
                info.dataset_cases.map_or(dataset.tried, u64::from).into(),
                info.dataset_digest.clone().into(),
                dataset.tried.into(),
                dataset.runs.into(),
                info.threshold.into(),
                dataset.newest.run_id.clone().into(),
                dataset.newest.created_at.into(),
            ]);
        }
        let mut out = Blocks::of::<Self>();
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
