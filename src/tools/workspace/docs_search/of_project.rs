//! The documents of the project: what evaluations are about, and saved analyses of runs.
//!
//! Promises: analyses only for those who may read transcripts; a bounded number of both, and it says where there are more.
//! Does not: read transcripts, cases or outputs.

use serde_json::Value;

use super::{Doc, Next, Source};
use crate::{
    domain::extras::{Analysis, AnalysisSource},
    store::{RunQuery, workspace::AuthoredQuery},
    tools::{Ctx, ToolError},
};

/// Evaluations whose descriptions are searched: those made or seen last.
const EVALUATIONS: usize = 1000;
/// Newest runs whose analyses are searched.
const RUNS: usize = 200;
/// Bytes of all analyses together: an index of them is made for each search that is not answered from what was kept.
const BYTES: usize = 4 * 1024 * 1024;

/// Adds them; says what was left out.
pub(super) fn add(ctx: &Ctx, docs: &mut Vec<Doc>) -> Result<Option<String>, ToolError> {
    evaluations(ctx, docs)?;
    if !ctx.caller.holds("traces:read") {
        return Ok(None);
    }
    let (runs, total) = ctx.store.runs(&RunQuery { limit: RUNS, ..RunQuery::default() })?;
    let (mut bytes, mut looked) = (0, 0_u64);
    for run in &runs {
        if bytes >= BYTES {
            break;
        }
        for analysis in ctx.store.analyses(&run.run_id)? {
            let doc = of_analysis(&run.run_id, &analysis);
            bytes += doc.text.len();
            docs.push(doc);
        }
        looked += 1;
    }
    Ok((looked < total).then(|| format!("Of {total} runs the analyses of the newest {looked} were searched.")))
}

fn call<const N: usize>(tool: &'static str, arguments: [(&str, &str); N]) -> Option<Next> {
    Some(Next { tool, arguments: arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect() })
}

fn evaluations(ctx: &Ctx, docs: &mut Vec<Doc>) -> Result<(), ToolError> {
    let (all, _) = ctx.store.authored(&AuthoredQuery { limit: EVALUATIONS, ..AuthoredQuery::default() })?;
    for one in all {
        let parts: Vec<&str> = [one.name.as_deref(), one.description.as_deref(), one.family.as_deref()].into_iter().flatten().collect();
        docs.push(Doc {
            source: Source::Evaluation,
            text: parts.join("\n"),
            next: call("evaluations_list", [("filter", &one.id)]),
            title: one.id,
        });
    }
    Ok(())
}

fn of_analysis(run: &str, analysis: &Analysis) -> Doc {
    let mut text = String::new();
    match serde_json::from_str::<Value>(analysis.doc.get()) {
        Ok(value) => texts(&value, &mut text),
        Err(_) => text.push_str(analysis.doc.get()),
    }
    let saved = if analysis.source == AnalysisSource::Saved { "" } else { " (cached)" };
    Doc {
        source: Source::Analysis,
        title: format!("{run}: {}{saved}", analysis.file),
        text,
        next: call("analysis", [("run", run), ("file", &analysis.file)]),
    }
}

/// The texts of a document, and the names that they stand under.
fn texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(list) => list.iter().for_each(|one| texts(one, out)),
        Value::Object(map) => map.iter().for_each(|(name, one)| {
            out.push_str(name);
            out.push_str(": ");
            texts(one, out);
        }),
        Value::Number(number) => {
            out.push_str(&number.to_string());
            out.push('\n');
        }
        Value::Null | Value::Bool(_) => out.push('\n'),
    }
}
