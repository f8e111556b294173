//! `query_schema`: the tables and views that may be asked, with their columns.
//!
//! Promises: told from the store's own schema; columns that the caller may not read are not listed.
//! Does not: list helper tables.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views;
use crate::{
    store,
    tools::{
        Ctx, Tool, ToolError, Toolset,
        render::{self, Style},
    },
};

/// The tool.
pub enum QuerySchema {}

/// The arguments of `query_schema`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only objects whose name contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
}

/// The result of `query_schema`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Output {
    /// The tables and views, by name.
    pub objects: Vec<Object>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A table or view.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// `table` or `view`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What a row of a view is and what its columns mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'static str>,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// TEXT, INTEGER or REAL.
    #[serde(rename = "type")]
    pub kind: String,
}

impl From<store::Object> for Object {
    fn from(object: store::Object) -> Self {
        let column = |column: store::query::Column| Column { name: column.name, kind: column.kind };
        Self {
            about: views::VIEWS.iter().find(|view| view.name == object.name).map(|view| view.doc),
            name: object.name,
            kind: if object.view { "view" } else { "table" },
            columns: object.columns.into_iter().map(column).collect(),
        }
    }
}

impl Tool for QuerySchema {
    const NAME: &'static str = "query_schema";
    const VERB: &'static str = "query-schema";
    const TITLE: &'static str = "Tables of query";
    const ABOUT: &'static str = "The tables, views and columns that query takes";
    const DOC: &'static str =
        "Lists the tables and views that query may read, with their columns and types. Call it once before writing SQL.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Query];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let wanted = input.filter.unwrap_or_default().to_lowercase();
        let objects = ctx.store.objects()?.into_iter().filter(|object| object.name.contains(&wanted)).map(Into::into).collect();
        Ok(Output { objects, note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let mut out = String::new();
        for object in &output.objects {
            let columns: Vec<String> = object.columns.iter().map(|column| render::clean(&column.name)).collect();
            out.push_str(&format!("{} {}({})\n", object.kind, render::clean(&object.name), columns.join(", ")));
        }
        out.extend(output.note.iter().map(|note| format!("{note}\n")));
        out
    }
}
