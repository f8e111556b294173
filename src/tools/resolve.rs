//! Run references to runs, and attempt names to attempts, for every tool that takes one.
//!
//! Promises: one reading everywhere (decision 56); a name that means several things is refused with the candidates.
//! Does not: guess.

use super::{Ctx, ToolError};
use crate::{
    domain::{
        attempt::shorten,
        reference::{Reference, ReferenceError, sha_prefix},
    },
    store::{AttemptRow, Run, Selector},
};

/// How many candidates an ambiguous name lists.
const CANDIDATES: usize = 5;

/// The run that `text` means.
///
/// # Errors
/// [`ToolError::Reference`] for none, several, or malformed.
pub fn run(ctx: &Ctx, text: &str) -> Result<Run, ToolError> {
    match Reference::parse(text)? {
        Reference::Latest(back) => {
            let found = ctx.store.select(&Selector::Latest(back), 1)?;
            found
                .into_iter()
                .next()
                .ok_or_else(|| if back == 0 { ReferenceError::Empty.into() } else { ReferenceError::NoMatch(text.to_owned()).into() })
        }
        Reference::Name(name) => by_name(ctx, &name),
    }
}

fn by_name(ctx: &Ctx, name: &str) -> Result<Run, ToolError> {
    if let Some(run) = ctx.store.select(&Selector::Id(name), 1)?.into_iter().next() {
        return Ok(run);
    }
    let mut prefixed = ctx.store.select(&Selector::IdPrefix(name), CANDIDATES + 1)?;
    if prefixed.len() > 1 {
        let more = prefixed.len() > CANDIDATES;
        let candidates = prefixed.into_iter().take(CANDIDATES).map(|run| run.run_id).collect();
        return Err(ReferenceError::Ambiguous { reference: name.to_owned(), candidates, more }.into());
    }
    if let Some(run) = prefixed.pop() {
        return Ok(run);
    }
    let by_sha = match sha_prefix(name) {
        Some(sha) => ctx.store.select(&Selector::ShaPrefix(&sha), 1)?.into_iter().next(),
        None => None,
    };
    by_sha.ok_or_else(|| ReferenceError::NoMatch(shorten(name, 120)).into())
}

/// The attempt of `run` that `name` means: its key, or `<evaluation>#<n>` where that is one attempt.
///
/// # Errors
/// [`ToolError::NotFound`] for none or several, with what would be right.
pub fn attempt(ctx: &Ctx, run: &str, name: &str) -> Result<AttemptRow, ToolError> {
    let mut found = ctx.store.find_attempts(run, name)?;
    if found.len() > 1 {
        let shown: Vec<&str> = found.iter().take(CANDIDATES).map(|attempt| attempt.key.as_str()).collect();
        return Err(ToolError::NotFound(format!(
            "\"{}\" means several attempts of run {run}: {}; give the whole key",
            shorten(name, 120),
            shown.join(", ")
        )));
    }
    found.pop().ok_or_else(|| {
        ToolError::NotFound(format!(
            "run {run} has no attempt \"{}\"; keys are <evaluation>[/<case>][@<arm>]#<n>, as failures and show give them",
            shorten(name, 120)
        ))
    })
}
