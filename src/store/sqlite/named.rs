//! Names that somebody has begun to type: of runs, evaluations, attempts.
//!
//! Promises: read off one index, names only; no more than `limit` of them are held, whatever there are.
//! Does not: read what bears the names.

use rusqlite::{Connection, Params};

use super::names;
use crate::store::{Named, Result};

/// What was found so far.
struct Found {
    part: String,
    limit: usize,
    /// Those that begin with the part.
    first: Vec<String>,
    /// Those that hold it elsewhere.
    then: Vec<String>,
    total: u64,
}

impl Found {
    fn see(&mut self, name: String) {
        let place = if self.part.is_empty() { Some(0) } else { name.to_lowercase().find(&self.part) };
        let Some(place) = place else { return };
        self.total += 1;
        let list = if place == 0 { &mut self.first } else { &mut self.then };
        if list.len() < self.limit {
            list.push(name);
        }
    }

    fn read(&mut self, connection: &Connection, sql: &str, values: impl Params) -> Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            self.see(row.get(0)?);
        }
        Ok(())
    }

    fn in_order(mut self) -> (Vec<String>, u64) {
        self.first.append(&mut self.then);
        self.first.truncate(self.limit);
        (self.first, self.total)
    }
}

pub(super) fn read(connection: &Connection, of: Named<'_>, part: &str, limit: usize) -> Result<(Vec<String>, u64)> {
    let mut found = Found { part: part.to_lowercase(), limit, first: Vec::new(), then: Vec::new(), total: 0 };
    match of {
        Named::Runs => found.read(connection, "SELECT run_id FROM runs_m ORDER BY created_at DESC, run_id DESC", [])?,
        Named::Evaluations => {
            // An evaluation keeps its number when its last run is gone.
            let held = "EXISTS (SELECT 1 FROM run_evaluations_m r WHERE r.eval_no = e.eval_no)";
            found.read(connection, &format!("SELECT e.id FROM evaluations_m e WHERE {held} ORDER BY e.id"), [])?;
        }
        Named::Attempts(run) => {
            if let Some(run_no) = names::run_no(connection, run)? {
                found.read(connection, "SELECT key FROM attempts_m WHERE run_no = ?1 AND key IS NOT NULL ORDER BY key", [run_no])?;
            }
        }
    }
    Ok(found.in_order())
}
