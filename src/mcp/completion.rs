//! Completion: what an argument of a prompt or of a resource's template can be, from how it begins (`completion/complete`).
//!
//! Promises: at most 100 values, those that begin with what was typed before those that hold it, runs newest first; how many there are in all.
//! One call down the gate's list, so that its rates hold for it. What a caller may not read is not completed for him: it is not there.
//! Does not: guess, or give any text of a case or an attempt: ids and keys only.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    core::{Asker, Core},
    faults::Fault,
    prompts, resources,
    results::{self, Hints, quoted},
};
use crate::{
    auth::Caller,
    domain::attempt::shorten,
    store::Named,
    tools::{self, Answer, Ctx, Entry, ToolError, uri},
};

/// As many as the protocol lets one answer have.
const VALUES: usize = 100;

/// The call. Its answer's JSON is the result.
pub static COMPLETE: Entry =
    Entry { name: "completion/complete", scopes: &[&["eval:read"]], cacheable: true, canonical: Ok, run: found, ..tools::UNKNOWN };

/// What an argument is a name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run's id.
    Run,
    /// An evaluation's id.
    Evaluation,
    /// An attempt's key, of the run that the argument `runId` names.
    Attempt,
}

impl Kind {
    const ALL: [(Self, &'static str); 3] = [(Self::Run, "run"), (Self::Evaluation, "evaluation"), (Self::Attempt, "attempt")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// The result of `completion/complete`.
///
/// # Errors
/// [`Fault`]: an unknown template or argument, parameters of another type, or what the gate refuses.
pub async fn complete(core: &Core, params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    let argument = object(params, "argument")?;
    let (name, value) = (text(argument, "params.argument", "name")?, text(argument, "params.argument", "value")?);
    let kind = kind(core, object(params, "ref")?, name, &asker.caller)?;
    let mut asked = Map::from_iter([("kind".to_owned(), kind.map_or("nothing", Kind::word).into()), ("value".to_owned(), value.into())]);
    if let (Some(Kind::Attempt), Some(run)) = (kind, known(params, "runId")?) {
        asked.insert("runId".to_owned(), run.into());
    }
    match core.ask(&COMPLETE, asked, asker).await {
        Ok(answer) => Ok(results::placed(answer.json.get(), asker.era, Hints::None)),
        Err(refusal) => Err(Fault::refused(&refusal, &asker.request_id)),
    }
}

fn object<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a Map<String, Value>, Fault> {
    params.get(name).and_then(Value::as_object).ok_or_else(|| Fault::parameters(format!("params.{name} must be an object")))
}

fn text<'a>(map: &'a Map<String, Value>, place: &str, name: &str) -> Result<&'a str, Fault> {
    map.get(name).and_then(Value::as_str).ok_or_else(|| Fault::parameters(format!("{place}.{name} must be a text")))
}

/// What the client knows already of another argument.
fn known<'a>(params: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    let value = params.get("context").and_then(|context| context.get("arguments")?.get(name)).filter(|value| !value.is_null());
    let wrong = || Fault::parameters(format!("params.context.arguments.{name} must be a text"));
    value.map(|value| value.as_str().ok_or_else(wrong)).transpose()
}

/// What the argument `name` of the reference is a name of. None for a prompt that is not there: it completes to nothing, since the conformance
/// suite asks every server to complete a prompt that only its fixtures have (decision 14).
fn kind(core: &Core, reference: &Map<String, Value>, name: &str, caller: &Caller) -> Result<Option<Kind>, Fault> {
    let (what, arguments) = match text(reference, "params.ref", "type")? {
        "ref/prompt" => {
            let prompt = text(reference, "params.ref", "name")?;
            let Some(known) = prompts::find(prompt) else { return Ok(None) };
            (prompt, Some(known.arguments.iter().map(|one| (one.name, Some(one.kind))).collect::<Vec<_>>()))
        }
        "ref/resource" => {
            let template = text(reference, "params.ref", "uri")?;
            let plain = uri::canonical(template);
            let known = resources::templates(core, caller).find(|known| Some(known.uri) == plain.as_deref());
            (template, known.map(|known| variables(known.uri)))
        }
        _ => return Err(Fault::parameters("params.ref.type must be ref/prompt or ref/resource")),
    };
    let what = quoted(&shorten(what, 200));
    let arguments = arguments.ok_or_else(|| Fault::parameters(format!("params.ref: there is no resource template {what}")))?;
    let found = arguments.iter().find(|(own, _)| *own == name);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = arguments.iter().map(|(own, _)| *own).collect();
        let name = quoted(&shorten(name, 80));
        Fault::parameters(format!("params.argument.name: {what} has no argument {name}; it has {}", names.join(", ")))
    })
}

/// A trace's id is its maker's own, and is completed to nothing.
fn variables(template: &str) -> Vec<(&'static str, Option<Kind>)> {
    [("runId", Some(Kind::Run)), ("attempt", Some(Kind::Attempt)), ("traceId", None)]
        .into_iter()
        .filter(|(name, _)| template.contains(&format!("{{{name}}}")))
        .collect()
}

/// The values. Attempts of no known run are none.
fn found(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let kind = Kind::ALL.iter().find(|(_, word)| Some(*word) == text("kind")).map(|(kind, _)| *kind);
    let of = match (kind, text("runId")) {
        (Some(Kind::Run), _) => Some(Named::Runs),
        (Some(Kind::Evaluation), _) => Some(Named::Evaluations),
        (Some(Kind::Attempt), Some(run)) => Some(Named::Attempts(run)),
        _ => None,
    };
    let part = text("value").unwrap_or_default();
    let (values, total) = of.map(|of| ctx.store.names(of, part, VALUES)).transpose()?.unwrap_or_default();
    let result = json!({"completion": {"hasMore": total > values.len() as u64, "total": total, "values": values}});
    let json = serde_json::value::to_raw_value(&result).map_err(|error| ToolError::Internal(error.to_string()))?;
    Ok(Answer { json, text: String::new(), lasting: true })
}

#[cfg(test)]
mod tests;
