//! The workspace's reads.
//!
//! Promises: a handle that may not see texts gets none of cases, descriptions, traces, settings, errors of runs and details of the trail.
//! Does not: write.

use std::collections::BTreeMap;

use super::{Sqlite, authored, baselines, deed, queue, sources, traces, trail};
use crate::{
    domain::time::Timestamp,
    store::{
        Result,
        workspace::{
            AuditQuery, AuditRow, Authored, AuthoredCase, AuthoredQuery, BaselineRow, Connection, Queued, Remembered, Trace, Workspace,
        },
    },
};

impl Workspace for Sqlite {
    fn authored(&self, query: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)> {
        let (mut rows, total) = self.read(|connection| authored::list(connection, query))?;
        if !self.text {
            rows.iter_mut().for_each(|row| row.description = None);
        }
        Ok((rows, total))
    }

    fn authored_cases(&self, evaluation: &str, offset: u64, limit: usize) -> Result<(Vec<AuthoredCase>, u64)> {
        let (mut rows, total) = self.read(|connection| authored::cases(connection, evaluation, offset, limit))?;
        if !self.text {
            for row in &mut rows {
                row.input.clear();
                row.expected = None;
                row.metadata.clear();
            }
        }
        Ok((rows, total))
    }

    fn queued(&self, run_ids: &[String]) -> Result<BTreeMap<String, Queued>> {
        let mut runs = self.read(|connection| queue::read(connection, run_ids))?;
        if !self.text {
            runs.values_mut().for_each(|run| run.error = None);
        }
        Ok(runs)
    }

    fn audit(&self, query: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)> {
        let (mut rows, total) = self.read(|connection| trail::read(connection, query))?;
        if !self.text {
            rows.iter_mut().for_each(|row| row.detail.clear());
        }
        Ok((rows, total))
    }

    fn baselines(&self, evaluation: Option<&str>) -> Result<Vec<BaselineRow>> {
        self.read(|connection| baselines::read(connection, evaluation))
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        let mut rows = self.read(sources::read)?;
        if !self.text {
            rows.iter_mut().for_each(|row| row.config = serde_json::Value::Null);
        }
        Ok(rows)
    }

    fn trace(&self, trace_id: &str, now: Timestamp) -> Result<Option<Trace>> {
        if !self.text {
            return Ok(None);
        }
        self.read(|connection| traces::read(connection, trace_id, now))
    }

    fn remembered(&self, identity: &str, tool: &str, key: &str, since: Timestamp) -> Result<Option<Remembered>> {
        self.read(|connection| deed::remembered(connection, identity, tool, key, since))
    }
}
