//! The store of a call that is about no project: every read says that there is none.
//!
//! Promises: holds nothing, so nothing of anybody's can be read through it.
//! Does not: pretend to be an empty project.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Applied, AttemptQuery, AttemptRow, Base, BaseQuery, Beginning, Cancel, Cause, CellQuery, Change, Error, FileRow, Groups, Lines, Named,
    Object, Point, PointQuery, ProjectionPage, ProjectionQuery, Query, QueryFault, Result, Rows, Run, RunArm, RunEvaluation, RunExtras,
    RunPoint, RunQuery, Selector, Store, Streak,
    workspace::{
        AuditQuery, AuditRow, Authored, AuthoredCase, AuthoredQuery, BaselineRow, Connection, Queued, Remembered, Trace, Workspace,
    },
};
use crate::domain::{
    cell::{Cell, CellKey, Grain},
    declared::Declared,
    extras::Analysis,
    time::Timestamp,
};

/// No store.
#[derive(Debug, Clone, Copy)]
pub struct Absent;

fn none<T>() -> Result<T> {
    Err(Error::Internal("a call that is about no project asked for one".to_owned()))
}

impl super::survey::Survey for Absent {
    fn figures(&self, _: &str) -> Result<BTreeMap<String, crate::domain::figures::Figures>> {
        none()
    }

    fn ranked(&self, _: &[super::survey::Document], _: &[String], _: usize) -> Result<(Vec<super::survey::Hit>, u64)> {
        none()
    }
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

impl Workspace for Absent {
    fn authored(&self, _: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)> {
        none()
    }

    fn authored_cases(&self, _: &str, _: u64, _: usize) -> Result<(Vec<AuthoredCase>, u64)> {
        none()
    }

    fn queued(&self, _: &[String]) -> Result<BTreeMap<String, Queued>> {
        none()
    }

    fn audit(&self, _: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)> {
        none()
    }

    fn baselines(&self, _: Option<&str>) -> Result<Vec<BaselineRow>> {
        none()
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        none()
    }

    fn trace(&self, _: &str, _: Timestamp) -> Result<Option<Trace>> {
        none()
    }

    fn remembered(&self, _: &str, _: &str, _: &str, _: Timestamp) -> Result<Option<Remembered>> {
        none()
    }
}
