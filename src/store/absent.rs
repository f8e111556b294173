//! The store of a call that is about no project: every read says that there is none.
//!
//! Promises: holds nothing, so nothing of anybody's can be read through it.
//! Does not: pretend to be an empty project.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Applied, AttemptQuery, AttemptRow, Base, BaseQuery, Beginning, Cancel, Cause, CellQuery, Change, Error, FileRow, Groups, Lines, Named,
    Object, Point, PointQuery, ProjectionPage, ProjectionQuery, Query, QueryFault, Result, Rows, Run, RunArm, RunEvaluation, RunExtras,
    RunPoint, RunQuery, Selector, Store, Streak,
};
use crate::domain::{
    cell::{Cell, CellKey, Grain},
    declared::Declared,
    extras::Analysis,
};

/// No store.
#[derive(Debug, Clone, Copy)]
pub struct Absent;

fn none<T>() -> Result<T> {
    Err(Error::Internal("a call that is about no project asked for one".to_owned()))
}

impl Store for Absent {
    fn heeding(self: Arc<Self>, _: &Cancel) -> Arc<dyn Store> {
        self
    }

    fn generation(&self) -> Result<u64> {
        none()
    }

    fn apply(&self, _: Change<'_>) -> Result<Applied> {
        none()
    }

    fn files(&self, _: Option<&str>) -> Result<Vec<FileRow>> {
        none()
    }

    fn remarks(&self) -> Result<BTreeMap<String, Vec<String>>> {
        none()
    }

    fn declared(&self) -> Result<Declared> {
        none()
    }

    fn runs(&self, _: &RunQuery) -> Result<(Vec<Run>, u64)> {
        none()
    }

    fn select(&self, _: &Selector<'_>, _: usize) -> Result<Vec<Run>> {
        none()
    }

    fn arms(&self, _: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>> {
        none()
    }

    fn evaluations(&self, _: &str) -> Result<Vec<RunEvaluation>> {
        none()
    }

    fn ancestors(&self, _: &str) -> Result<Vec<String>> {
        none()
    }

    fn cells(&self, _: &CellQuery) -> Result<Vec<Cell>> {
        none()
    }

    fn keys(&self, _: &CellQuery) -> Result<Vec<CellKey>> {
        none()
    }

    fn groups(&self, _: &str) -> Result<Groups> {
        none()
    }

    fn points(&self, _: &PointQuery<'_>) -> Result<Vec<Point>> {
        none()
    }

    fn bases(&self, _: &BaseQuery<'_>) -> Result<Vec<Base>> {
        none()
    }

    fn streaks(&self, _: &RunPoint, _: Grain, _: &[CellKey]) -> Result<Vec<Streak>> {
        none()
    }

    fn attempts(&self, _: &str, _: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>> {
        none()
    }

    fn find_attempts(&self, _: &str, _: &str) -> Result<Vec<AttemptRow>> {
        none()
    }

    fn names(&self, _: Named<'_>, _: &str, _: usize) -> Result<(Vec<String>, u64)> {
        none()
    }

    fn transcript_text(&self, _: &str, _: &str, _: usize) -> Result<Option<Beginning>> {
        none()
    }

    fn causes(&self, _: &str, _: Option<&str>) -> Result<Vec<Cause>> {
        none()
    }

    fn query(&self, _: &Query) -> std::result::Result<Rows, QueryFault> {
        Err(QueryFault::Store("a call that is about no project asked for one".to_owned()))
    }

    fn objects(&self) -> Result<Vec<Object>> {
        none()
    }

    fn extras(&self, _: &str) -> Result<Option<RunExtras>> {
        none()
    }

    fn analyses(&self, _: &str) -> Result<Vec<Analysis>> {
        none()
    }

    fn projections(&self, _: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>> {
        none()
    }

    fn cursor_key(&self) -> Result<[u8; 32]> {
        none()
    }

    fn transcript(&self, _: &str, _: &str, _: u64, _: u64) -> Result<Option<Lines>> {
        none()
    }
}

impl crate::store::Catalog for Absent {}

impl crate::store::workspace::Workspace for Absent {
    fn authored(
        &self,
        _: &crate::store::workspace::AuthoredQuery<'_>,
    ) -> crate::store::Result<(Vec<crate::store::workspace::Authored>, u64)> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn authored_cases(&self, _: &str, _: u64, _: usize) -> crate::store::Result<(Vec<crate::store::workspace::AuthoredCase>, u64)> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn queued(&self, _: &[String]) -> crate::store::Result<std::collections::BTreeMap<String, crate::store::workspace::Queued>> {
        Ok(std::collections::BTreeMap::new())
    }

    fn audit(&self, _: &crate::store::workspace::AuditQuery<'_>) -> crate::store::Result<(Vec<crate::store::workspace::AuditRow>, u64)> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn baselines(&self, _: Option<&str>) -> crate::store::Result<Vec<crate::store::workspace::BaselineRow>> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn connections(&self) -> crate::store::Result<Vec<crate::store::workspace::Connection>> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn trace(&self, _: &str, _: crate::domain::time::Timestamp) -> crate::store::Result<Option<crate::store::workspace::Trace>> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }

    fn remembered(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: crate::domain::time::Timestamp,
    ) -> crate::store::Result<Option<crate::store::workspace::Remembered>> {
        Err(crate::store::Error::Internal("the workspace is not here".to_owned()))
    }
}
