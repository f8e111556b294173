//! Results of lm-evaluation-harness, of 0.4 and before, with the samples that stand beside them (FORMATS.md 3).
//!
//! Promises: one log a results file, one evaluation a task, one attempt a doc however many filters judged it; memory is the results and one
//! doc, beside some bytes a line of the samples; a line that cannot be read is named in a complaint, and the rest stands.
//! Does not: touch the disk; take groups for tasks (they are averages of tasks), or the local time in a file's name for a time.

mod arm;
mod evaluation;
mod header;
mod items;
mod judge;
mod places;
mod results;
mod row;
mod sample;
#[cfg(test)]
mod tests;

use self::{
    header::Head,
    items::{Context, Items},
    results::{Members, members, sha256},
};
use super::{Input, Limits, Opened, Refused, beside::Beside};
use crate::{domain::extras::Extras, telemetry::redaction::Redactor};

/// Why a file of samples is no log.
pub(super) const SAMPLES_ALONE: &str = "samples of lm-eval; they are read with the results file beside them";

/// Opens a results file.
pub(super) fn open<'a>(
    mut input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let (json, replaced) = members(&mut input, limits)?;
    let results = Members::read(&json)?;
    let own = if results.has_own_id() { String::new() } else { sha256(&mut input)? };
    let Head { header, tasks, mut complaints } = Head::of(&results, &own, beside, limits, redactor);
    if replaced {
        complaints.insert(0, "bytes of the results that are no UTF-8 were replaced".to_owned());
    }
    let arm = header.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let items = Items::new(beside, Context { limits, redactor, arm }, tasks, complaints);
    Ok(Opened { header, extras: Extras::default(), items: Box::new(items) })
}
