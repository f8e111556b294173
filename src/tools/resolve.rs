//! Run references to runs, and attempt names to attempts, for every tool that takes one.
//!
//! Promises: one reading everywhere (`domain::reference`); `latest` is the newest run whatever runs are called; else an exact id wins, so every
//! other id that a tool returns is taken back; a name that means several things is refused with the candidates.
//! Does not: guess.

use super::{Ctx, ToolError};
use crate::{
    domain::{
        attempt::shorten,
        reference::{Reference, ReferenceError, sha_prefix},
        text::clean,
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
    match Reference::parse(text) {
        Reference::Latest(back) => {
            let none = || if back == 0 { ReferenceError::Empty } else { ReferenceError::none(text) };
            Ok(ctx.store.select(&Selector::Latest(back), 1)?.into_iter().next().ok_or_else(none)?)
        }
        Reference::Name(name) => match by_id(ctx, &name)? {
            Some(run) => Ok(run),
            None => by_beginning(ctx, &name),
        },
    }
}

/// The run of the page before where a cursor says it, whatever its id reads as; else the one that `text` means.
///
/// # Errors
/// As [`run`].
pub fn run_of_page(ctx: &Ctx, id: Option<&str>, text: &str) -> Result<Run, ToolError> {
    let held = id.map(|id| by_id(ctx, id)).transpose()?.flatten();
    held.map_or_else(|| run(ctx, id.unwrap_or(text)), Ok)
}

fn by_id(ctx: &Ctx, id: &str) -> Result<Option<Run>, ToolError> {
    Ok(ctx.store.select(&Selector::Id(id), 1)?.into_iter().next())
}

fn by_beginning(ctx: &Ctx, name: &str) -> Result<Run, ToolError> {
    let mut prefixed = ctx.store.select(&Selector::IdPrefix(name), CANDIDATES + 1)?;
    if prefixed.len() > 1 {
        let candidates: Vec<&str> = prefixed.iter().take(CANDIDATES).map(|run| run.run_id.as_str()).collect();
        return Err(ReferenceError::ambiguous(name, &candidates, prefixed.len() > CANDIDATES).into());
    }
    if let Some(run) = prefixed.pop() {
        return Ok(run);
    }
    let by_sha = match sha_prefix(name) {
        Some(sha) => ctx.store.select(&Selector::ShaPrefix(&sha), 1)?.into_iter().next(),
        None => None,
    };
    by_sha.ok_or_else(|| ReferenceError::none(name).into())
}

/// The attempt of `run` that `name` means: its key, or `<evaluation>#<n>` where that is one attempt.
///
/// # Errors
/// [`ToolError::NotFound`] for none or several, with what would be right.
pub fn attempt(ctx: &Ctx, run: &str, name: &str) -> Result<AttemptRow, ToolError> {
    let mut found = ctx.store.find_attempts(run, name)?;
    if found.len() > 1 {
        let shown: Vec<String> = found.iter().take(CANDIDATES).map(|attempt| clean(&attempt.key)).collect();
        return Err(ToolError::NotFound(format!(
            "\"{}\" means several attempts of run {}: {}; give the whole key",
            clean(&shorten(name, 120)),
            clean(run),
            shown.join(", ")
        )));
    }
    found.pop().ok_or_else(|| {
        ToolError::NotFound(format!(
            "run {} has no attempt \"{}\"; keys are <evaluation>[/<case>][@<arm>]#<n>, as failures and show give them",
            clean(run),
            clean(&shorten(name, 120))
        ))
    })
}
