//! `runlore warm`: all that later calls only read is worked out now (decision 41): the index of logs, helper tables, p values, words.
//!
//! Promises: an image whose build ends with it answers from a read-only disk as quickly as it ever will.
//! Does not: serve, or change what any answer says.

use clap::Command;

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session, block_on},
};
use crate::{
    auth::Caller,
    gate::{Call, Gate},
    store::{Change, Store},
    tools::{self, ToolError},
};

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new("warm").about("Works out now what later calls only read: the index, views, goals' p values, words to search")
}

/// Warms; the exit code.
///
/// # Errors
/// [`CliError`], where something could not be worked out or written.
pub fn run(place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let session = Session::open(place)?;
    if session.read_only() {
        return Err(CliError::Refused("the project takes no writes; warm it where it does, before it is copied".to_owned()));
    }
    session.index_now(&Bar::new(output.watched()))?;
    let refused = |error: crate::store::Error| CliError::Refused(ToolError::from(error).to_string());
    session.store().apply(Change::Refresh).map_err(refused)?;
    let steps = words(session.store()).map_err(refused)?;
    let gate = Gate::new(session.settings(output.style(), false));
    for name in ["goals", "overview"] {
        let entry = tools::find(name).ok_or_else(|| CliError::Refused(format!("there is no view {name}")))?;
        let call = Call::local(entry, serde_json::Map::new(), Caller::local());
        block_on(gate.call(call))?.map_err(|refusal| CliError::Refused(refusal.to_string()))?;
    }
    output.say(&format!("Warm: the index, the views and the goals are worked out, and the words of all logs are read ({steps} steps)."));
    Ok(0)
}

/// Brings all texts into the index of words; how many steps that took.
fn words(store: &dyn Store) -> crate::store::Result<u64> {
    let mut steps = 1;
    while store.apply(Change::SearchIndex)?.left {
        steps += 1;
    }
    Ok(steps)
}
