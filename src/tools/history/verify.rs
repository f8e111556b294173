//! `verify`: computes an evidence again from the store, so that a number quoted elsewhere can be checked.
//!
//! Promises: the same computation as `compare`'s, over the runs that the handle names; equal means every figure, as it was shown.
//! Does not: trust the figures in a handle, or choose other runs where one is gone.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compare::{
    self, Whole,
    handle::{self, Compared, Figures},
};
use crate::{
    domain::{cell::Grain, compare::Pair, time::Timestamp},
    store::Selector,
    tools::{
        Ctx, Tool, ToolError, arguments,
        render::{self, Style},
    },
};

/// The tool.
pub enum Verify {}

/// The arguments of `verify`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The handle of an evidence, as compare gave it.
    pub handle: String,
}

/// The result of `verify`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Whether every figure is as it was.
    pub equal: bool,
    /// What was compared.
    pub of: Of,
    /// The figures in the handle.
    pub then: Figures,
    /// The same, computed now; null where that cannot be.
    pub now: Option<Figures>,
    /// What is not as it was: names of figures, `runs` where others are compared by now, `row` where there is none any more.
    pub changed: Vec<String>,
    /// Runs that are not in the store.
    pub gone: Vec<String>,
    /// What else should be known.
    pub note: Option<String>,
}

/// What an evidence is about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Of {
    /// The newer run; null for a suite of several.
    pub head: Option<String>,
    /// The older run.
    pub base: Option<String>,
    /// The evaluation; null for the suite of all.
    pub evaluation: Option<String>,
    /// The case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
}

impl Tool for Verify {
    const NAME: &'static str = "verify";
    const TITLE: &'static str = "Verify a number";
    const ABOUT: &'static str = "Whether a quoted evidence of compare still holds; exits with 1 where not";
    const DOC: &'static str = "Computes the evidence behind a handle of compare again and says whether every figure is the same, or what changed. Use it to check a number quoted in a pull request.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "handle";
    type Input = Input;
    type Output = Output;

    /// The evidence is `compare`'s.
    fn output_schema() -> serde_json::Map<String, serde_json::Value> {
        arguments::shallow_schema::<Output>()
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let (compared, then) = handle::read(&input.handle)?;
        let gone = gone(ctx, &compared)?;
        let (now, mut changed) = if gone.is_empty() { again(ctx, &compared)? } else { (None, Vec::new()) };
        changed.extend(now.iter().flat_map(|now| differ(&then, now)));
        let (evaluation, case, arm) = compared.row.map_or((None, None, None), |(id, case, arm)| (Some(id), case, arm));
        let of = Of { head: compared.head, base: compared.base, evaluation, case, arm };
        Ok(Output { equal: now.is_some() && changed.is_empty(), of, then, now, changed, gone, note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let Of { head, base, evaluation, case, arm } = &output.of;
        let name: Vec<&str> = [evaluation, case, arm].into_iter().flatten().map(String::as_str).collect();
        let name = if name.is_empty() { "all shared cases".to_owned() } else { name.join(" / ") };
        let sides = head.iter().zip(base).map(|(head, base)| format!(", {head} against {base}")).collect::<String>();
        let mut lines = vec![render::clean(&format!("{}: {name}{sides}", if output.equal { "equal" } else { "NOT EQUAL" }))];
        lines.extend(output.gone.iter().map(|run| format!("run {} is gone", render::clean(run))));
        let shown = |figures: &Figures, name: &str| named(figures).get(name).map_or_else(|| "-".to_owned(), Value::to_string);
        lines.extend(output.changed.iter().map(|name| match &output.now {
            Some(now) if name != "runs" => format!("{name}: {} -> {}", shown(&output.then, name), shown(now, name)),
            _ => format!("{name}: no longer the same"),
        }));
        if output.equal {
            lines.push(render::clean(&named(&output.then).to_string()));
        }
        lines.extend(output.note.clone());
        lines.join("\n")
    }
}

/// Runs that the handle names and the store does not have.
fn gone(ctx: &Ctx, compared: &Compared) -> Result<Vec<String>, ToolError> {
    let mut gone = Vec::new();
    for run in [&compared.head, &compared.base].into_iter().flatten() {
        if ctx.store.select(&Selector::Id(run), 1)?.is_empty() {
            gone.push(run.clone());
        }
    }
    Ok(gone)
}

/// The figures now, and whether the row or its runs are other ones.
fn again(ctx: &Ctx, compared: &Compared) -> Result<(Option<Figures>, Vec<String>), ToolError> {
    let whole = whole(ctx, compared)?;
    let family = whole.family().map(|family| family.size);
    let Some(key) = &compared.row else {
        let now = whole.suite().map(|suite| Figures::of(&suite.clone().shown(), None));
        let gone = if now.is_none() { vec!["row".to_owned()] } else { Vec::new() };
        return Ok((now, gone));
    };
    let found = whole.rows.into_iter().find(|(row, _)| (&row.id, &row.case, &row.arm) == (&key.0, &key.1, &key.2));
    let Some((evidence, pair)) = found.and_then(|(row, pair)| Some((row.evidence?, pair))) else {
        return Ok((None, vec!["row".to_owned()]));
    };
    let others = if runs(&pair) == (compared.head.as_deref(), compared.base.as_deref()) { Vec::new() } else { vec!["runs".to_owned()] };
    Ok((Some(Figures::of(&evidence.shown(), family)), others))
}

fn runs(pair: &Pair) -> (Option<&str>, Option<&str>) {
    (pair.head.as_ref().map(|cell| cell.run_id.as_str()), pair.base.as_ref().map(|cell| cell.run_id.as_str()))
}

fn whole(ctx: &Ctx, compared: &Compared) -> Result<Whole, ToolError> {
    let by = if compared.row.as_ref().is_some_and(|(_, case, _)| case.is_some()) { Grain::Case } else { Grain::Evaluation };
    let plain =
        compare::Input { head: None, base: None, since: None, filter: compared.filter.clone(), by, all: true, margin: None, cursor: None };
    let input =
        compare::Input { margin: compared.margin.map(arguments::Hundredths::new).transpose().map_err(ToolError::Argument)?, ..plain };
    match compared.since {
        Some((instant, until)) => compare::since_instant(ctx, &input, Timestamp::from_millis(instant), until.map(Timestamp::from_millis)),
        None => compare::two_runs(ctx, &compare::Input { head: compared.head.clone(), base: compared.base.clone(), ..input }),
    }
}

fn named(figures: &Figures) -> Value {
    serde_json::to_value(figures).unwrap_or_default()
}

/// The names of the figures that differ.
fn differ(then: &Figures, now: &Figures) -> Vec<String> {
    let (Value::Object(then), Value::Object(now)) = (named(then), named(now)) else { return Vec::new() };
    then.into_iter().filter(|(name, value)| now.get(name) != Some(value)).map(|(name, _)| name).collect()
}
