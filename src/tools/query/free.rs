//! `query`: one SELECT or WITH over the open tables and views (decision 63).
//!
//! Promises: rows are arrays in the order of the columns; `truncated` is true only when more rows exist; a refusal says where and what was
//! probably meant.
//! Does not: change anything.

use clap::{ArgMatches, Args, FromArgMatches as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    store::{Query as Question, QueryFault, Rows},
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        arguments::Bounded,
        render::{self, Grid, Style},
    },
};

/// The tool.
pub enum Query {}

/// The arguments of `query`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One SELECT or WITH, in SQLite's SQL (on the command line, a table or view alone too).
    pub sql: String,
    /// How many rows.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 1000, 100>,
}

/// The result of `query` and of every `query_<view>`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Output {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows, each in the order of the columns. Integers beyond 2^53 are texts, blobs {"base64": ...}.
    pub rows: Vec<Vec<Value>>,
    /// Whether more rows exist.
    pub truncated: bool,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl From<Rows> for Output {
    fn from(rows: Rows) -> Self {
        Self { columns: rows.columns, rows: rows.rows, truncated: rows.truncated, note: None }
    }
}

impl Tool for Query {
    const NAME: &'static str = "query";
    const TITLE: &'static str = "SQL over the run history";
    const ABOUT: &'static str = "One SELECT over the history's open tables and views";
    const DOC: &'static str = "Runs one SELECT or WITH (SQLite) over the run history. query_schema lists the tables, views and columns. Rates count attempts: cases are the unit of evidence, which compare has.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Query];
    const WEIGHT: Weight = Weight::Heavy;
    const RELEASED: bool = true;
    const NARROWS: &'static str = "limit and the columns of the SELECT";
    type Input = Input;
    type Output = Output;

    /// On the command line a table or view may be named alone.
    fn words(matches: &ArgMatches) -> Result<Input, clap::Error> {
        let mut input = Input::from_arg_matches(matches)?;
        if !input.sql.is_empty() && input.sql.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            input.sql = format!("SELECT * FROM {}", input.sql);
        }
        Ok(input)
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        ask(ctx, Question { sql: input.sql, values: Vec::new(), limit: input.limit.count() })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        table(output, style)
    }
}

/// Asks the store.
///
/// # Errors
/// [`ToolError`], whose text is for the caller.
pub fn ask(ctx: &Ctx, question: Question) -> Result<Output, ToolError> {
    ctx.store.query(&question).map(Output::from).map_err(|fault| match fault {
        QueryFault::Store(why) => ToolError::Internal(why),
        QueryFault::Cancelled => crate::store::Error::Cancelled.into(),
        QueryFault::Busy | QueryFault::Late(_) | QueryFault::Memory(_) | QueryFault::Refused(_) => ToolError::Argument(fault.to_string()),
    })
}

/// Rows as a table for people.
#[must_use]
pub fn table(output: &Output, style: &Style) -> String {
    let heads: Vec<&str> = output.columns.iter().map(String::as_str).collect();
    let mut grid = Grid::new(style, &heads);
    for row in output.rows.iter().take(render::ROWS_SHOWN) {
        grid.row(row.iter().map(|value| shown(value).into()));
    }
    let mut out = grid.text();
    let more = output.rows.len().saturating_sub(render::ROWS_SHOWN);
    if output.rows.is_empty() {
        out.push_str("\nno rows");
    } else if more > 0 {
        out.push_str(&format!("\n... and {more} more rows here"));
    }
    if output.truncated {
        out.push_str("\nmore rows exist; raise limit or narrow the question");
    }
    out.extend(output.note.iter().map(|note| format!("\n{note}")));
    out.push('\n');
    out
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => render::one_line(&crate::domain::attempt::shorten(text, 120)).to_string(),
        other => other.to_string(),
    }
}
