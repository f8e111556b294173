//! The workspace of the plain model: lists and maps, looked through from end to end.
//!
//! Promises: a refused act leaves what was there as it was, since it worked on a copy.
//! Does not: hide anything: it has no scope.

mod queue;

use super::{super::workspace::*, *};
use crate::store::workspace::{Outcome, rules};

/// What is kept of the workspace.
#[derive(Clone, Default)]
pub(super) struct Desk {
    authored: BTreeMap<String, Made>,
    /// In the order in which they were queued.
    queue: Vec<Waiting>,
    trail: Vec<AuditRow>,
    /// By identity, tool and key: the digest, what was done, and when.
    remembered: BTreeMap<[String; 3], (String, Acted, Timestamp)>,
    /// By handle: when it ends.
    approvals: BTreeMap<String, Timestamp>,
    traces: BTreeMap<String, Trace>,
    connections: BTreeMap<String, Connection>,
    /// The oldest first.
    baselines: Vec<BaselineRow>,
}

/// What was made here of an evaluation.
#[derive(Clone)]
struct Made {
    name: Option<String>,
    description: Option<String>,
    family: Option<String>,
    threshold: Option<f64>,
    status: EvaluationStatus,
    created_at: Timestamp,
    created_by: String,
    lock: Option<Lock>,
    cases: Vec<AuthoredCase>,
}

/// A run of the queue, with its evaluation as it was then.
#[derive(Clone)]
struct Waiting {
    run: Queued,
    threshold: Option<f64>,
    family: Option<String>,
    cases: Vec<AuthoredCase>,
}

type Did = std::result::Result<Acted, ActFault>;

/// How many attempts of each case by each arm of a run ended how.
type Tally = BTreeMap<(String, String, String, &'static str), u64>;

impl State {
    /// Takes a log, unless it would change a reference of today.
    pub(super) fn kept_as_accepted(&mut self, change: LogChange<'_>) -> Result<Applied> {
        let before = self.clone();
        let tally = |state: &Self, run: &str| -> Option<Tally> {
            let mut tally = Tally::new();
            for KeptAttempt { row, .. } in &state.world().runs.get(run)?.attempts {
                *tally.entry((row.evaluation.clone(), row.case.clone(), row.arm.clone(), row.outcome.word())).or_default() += 1;
            }
            Some(tally)
        };
        let applied = self.log(change)?;
        let today = before.desk.baselines.iter().filter(|row| row.superseded_at.is_none());
        let changed =
            today.map(|row| &row.run_id).find(|run| tally(&before, run).is_some_and(|held| tally(self, run).unwrap_or_default() != held));
        if let Some(run) = changed {
            let why = rules::kept_as_accepted(run);
            *self = before;
            return Err(Error::Import(why));
        }
        Ok(applied)
    }

    pub(super) fn deed(&mut self, deed: &Deed, act: Act) -> Applied {
        self.sweep(deed.at);
        let outcome = self.outcome(deed, act);
        let (word, detail) = match &outcome {
            Outcome { done: Ok(acted), repeated: true } => ("repeated", acted.to_string()),
            Outcome { done: Ok(acted), .. } => ("ok", acted.to_string()),
            Outcome { done: Err(fault), .. } => ("refused", fault.to_string()),
        };
        self.put_row(deed, word, detail);
        Applied { changed: word == "ok", outcome: Some(outcome), ..Applied::default() }
    }

    pub(super) fn refused(&mut self, deed: &Deed, outcome: &str, reason: String) -> Applied {
        self.sweep(deed.at);
        if let Some(approval) = &deed.approval {
            self.desk.approvals.entry(approval.handle.clone()).or_insert(approval.expires_at);
        }
        self.put_row(deed, outcome, reason);
        Applied::default()
    }

    fn put_row(&mut self, deed: &Deed, outcome: &str, detail: String) {
        self.desk.trail.push(AuditRow {
            number: self.desk.trail.len() as i64 + 1,
            at: deed.at,
            actor: deed.actor.principal.clone(),
            role: deed.actor.role.to_string(),
            tool: deed.tool.clone(),
            digest: deed.digest.clone(),
            outcome: outcome.to_owned(),
            detail,
            address: deed.actor.address.map(|address| address.to_string()),
            request_id: deed.actor.request_id.clone(),
        });
    }

    fn sweep(&mut self, now: Timestamp) {
        let since = |kept: i64| Timestamp::from_millis(now.millis() - kept);
        self.desk.approvals.retain(|_, ends| *ends >= since(rules::EXPIRED_KEPT_MS));
        self.desk.remembered.retain(|_, (_, _, at)| *at >= since(REMEMBERED_MS));
        self.desk.traces.retain(|_, trace| trace.expires_at > now);
    }

    fn outcome(&mut self, deed: &Deed, act: Act) -> Outcome {
        let key = deed.idempotency_key.clone().map(|key| [deed.actor.identity.clone(), deed.tool.clone(), key]);
        if let Some((digest, acted, _)) = key.as_ref().and_then(|key| self.desk.remembered.get(key)) {
            let done = if *digest == deed.digest { Ok(acted.clone()) } else { Err(ActFault::KeyReused) };
            return Outcome { repeated: done.is_ok(), done };
        }
        let fault = match &deed.approval {
            Some(approval) if self.desk.approvals.contains_key(&approval.handle) => Some(ActFault::ApprovalUsed),
            Some(approval) if approval.expires_at <= deed.at => Some(ActFault::ApprovalExpired),
            _ => None,
        };
        if let Some(fault) = fault {
            return Outcome { done: Err(fault), repeated: false };
        }
        let before = (self.desk.clone(), self.evaluations.clone());
        let done = self.act(deed, act);
        if let Ok(acted) = &done {
            self.desk.approvals.extend(deed.approval.iter().map(|approval| (approval.handle.clone(), approval.expires_at)));
            self.desk.remembered.extend(key.map(|key| (key, (deed.digest.clone(), acted.clone(), deed.at))));
        } else {
            (self.desk, self.evaluations) = before;
        }
        Outcome { done, repeated: false }
    }

    fn act(&mut self, deed: &Deed, act: Act) -> Did {
        match act {
            Act::CreateEvaluation(new) => self.create(deed, new),
            Act::AddCase { evaluation, case } => {
                let held = self.here(&evaluation)?;
                rules::may_grow(&evaluation, held.status, held.lock.as_ref())?;
                self.make_ours(deed, &evaluation);
                let case = self.put_case(deed, &evaluation, case)?;
                Ok(Acted::Case { evaluation, case })
            }
            Act::SetStatus { evaluation, status } => {
                let held = self.here(&evaluation)?;
                rules::unlocked(&evaluation, held.lock.as_ref())?;
                self.make_ours(deed, &evaluation).status = status;
                Ok(Acted::Evaluation { evaluation, number: held.number, status })
            }
            Act::SetLock { evaluation, reason } => self.set_lock(deed, evaluation, reason),
            Act::StartRun(new) => self.start(deed, new),
            Act::CancelRun { run_id } => self.cancel(deed, &run_id),
            Act::CreateTrace(new) => self.create_trace(deed, new),
            Act::AddLines { trace_id, lines } => self.add_lines(&trace_id, &lines),
            Act::AcceptBaseline { run_id, evaluation, note } => self.accept(deed, run_id, evaluation, note),
            Act::ForgetRun { run_id } => self.forget(&run_id),
            other => self.desk.connect(deed, other),
        }
    }

    fn create(&mut self, deed: &Deed, new: NewEvaluation) -> Did {
        if self.known(&new.id).is_some() {
            return Err(rules::evaluation_exists(&new.id));
        }
        if !self.evaluations.contains(&new.id) {
            self.evaluations.push(new.id.clone());
        }
        let status = EvaluationStatus::Draft;
        let (created_at, created_by) = (deed.at, deed.actor.principal.clone());
        let NewEvaluation { id, name, description, family, threshold, cases } = new;
        let made = Made { name, description, family, threshold, status, created_at, created_by, lock: None, cases: vec![] };
        self.desk.authored.insert(id.clone(), made);
        for case in cases {
            self.put_case(deed, &id, case)?;
        }
        Ok(Acted::Evaluation { number: self.number_of(&id), evaluation: id, status })
    }

    fn set_lock(&mut self, deed: &Deed, evaluation: String, reason: Option<String>) -> Did {
        let held = self.here(&evaluation)?;
        if reason.is_some() {
            rules::unlocked(&evaluation, held.lock.as_ref())?;
        } else if held.lock.is_none() {
            return Err(rules::not_locked(&evaluation));
        }
        let lock = reason.map(|reason| Lock { by: deed.actor.principal.clone(), at: deed.at, reason });
        self.make_ours(deed, &evaluation).lock = lock;
        Ok(Acted::Evaluation { evaluation, number: held.number, status: held.status })
    }

    fn make_ours(&mut self, deed: &Deed, id: &str) -> &mut Made {
        self.desk.authored.entry(id.to_owned()).or_insert_with(|| Made {
            name: None,
            description: None,
            family: None,
            threshold: None,
            status: EvaluationStatus::Active,
            created_at: deed.at,
            created_by: deed.actor.principal.clone(),
            lock: None,
            cases: Vec::new(),
        })
    }

    fn put_case(&mut self, deed: &Deed, evaluation: &str, case: NewCase) -> std::result::Result<String, ActFault> {
        let Some(made) = self.desk.authored.get_mut(evaluation) else { return Err(rules::no_evaluation(evaluation)) };
        let has = |id: &str| made.cases.iter().any(|case| case.id == id);
        if made.cases.len() as u64 >= rules::CASES_MAX {
            return Err(rules::too_many_cases(evaluation));
        }
        let id = match case.id {
            Some(id) if has(&id) => return Err(rules::case_exists(evaluation, &id)),
            Some(id) => id,
            None => (made.cases.len() + 1..).map(|number| format!("case-{number}")).find(|id| !has(id)).unwrap(),
        };
        made.cases.push(AuthoredCase {
            id: id.clone(),
            input: case.input,
            expected: case.expected,
            metadata: case.metadata.unwrap_or_default(),
            created_at: deed.at,
            created_by: deed.actor.principal.clone(),
        });
        Ok(id)
    }

    fn number_of(&self, id: &str) -> i64 {
        self.evaluations.iter().position(|other| other == id).map_or(0, |place| place as i64 + 1)
    }

    fn here(&self, id: &str) -> std::result::Result<Authored, ActFault> {
        self.known(id).ok_or_else(|| rules::no_evaluation(id))
    }

    /// The evaluation as the workspace has it; none where nothing of it is left but the number.
    fn known(&self, id: &str) -> Option<Authored> {
        let world = self.world();
        let mut seen: Vec<(Timestamp, &str, &EvaluationInfo)> = Vec::new();
        for run in world.runs.values() {
            let of = run.evaluations.iter().filter(|one| one.info.id == id);
            seen.extend(of.map(|one| (run.run.created_at, run.run.run_id.as_str(), &one.info)));
        }
        seen.sort_by_key(|(at, run, _)| (*at, *run));
        let made = self.desk.authored.get(id);
        let newest = seen.last().map(|(.., info)| *info);
        let created_at = made.map(|made| made.created_at).or(seen.first().map(|(at, ..)| *at))?;
        Some(Authored {
            id: id.to_owned(),
            number: self.number_of(id),
            name: made.and_then(|made| made.name.clone()),
            description: made.and_then(|made| made.description.clone()),
            family: made.and_then(|made| made.family.clone()).or(newest.and_then(|info| info.family.clone())),
            threshold: made.and_then(|made| made.threshold).or(newest.and_then(|info| info.threshold)),
            status: made.map_or(EvaluationStatus::Active, |made| made.status),
            authored: made.is_some(),
            created_at,
            created_by: made.map(|made| made.created_by.clone()),
            lock: made.and_then(|made| made.lock.clone()),
            cases: made.map_or(0, |made| made.cases.len() as u64),
            runs: seen.len() as u64,
        })
    }

    fn create_trace(&mut self, deed: &Deed, new: NewTrace) -> Did {
        if self.desk.traces.contains_key(&new.trace_id) {
            return Err(rules::trace_exists(&new.trace_id));
        }
        let NewTrace { trace_id, name, status, duration_ms, lines, metadata, expires_at } = new;
        let (created_at, created_by) = (deed.at, deed.actor.principal.clone());
        let trace = Trace { name, status, duration_ms, metadata, created_at, created_by, expires_at, lines: vec![], trace_id };
        let trace_id = trace.trace_id.clone();
        self.desk.traces.insert(trace_id.clone(), trace);
        self.add_lines(&trace_id, &lines)
    }

    fn add_lines(&mut self, trace_id: &str, lines: &[String]) -> Did {
        let trace = self.desk.traces.get_mut(trace_id).ok_or_else(|| rules::no_trace(trace_id))?;
        trace.lines.extend(lines.iter().map(|line| rules::one_line(line).into_owned()));
        rules::trace_fits(trace_id, trace.lines.len() as u64, rules::bytes_of(&trace.lines))?;
        Ok(Acted::Trace { trace_id: trace_id.to_owned(), expires_at: trace.expires_at })
    }

    fn accept(&mut self, deed: &Deed, run_id: String, evaluation: Option<String>, note: Option<String>) -> Did {
        let world = self.world();
        let run = world.runs.get(&run_id).ok_or_else(|| rules::no_run(&run_id))?;
        if let Some(id) = evaluation.as_ref().filter(|id| !self.evaluations.contains(id)) {
            return Err(rules::no_evaluation(id));
        }
        if run.run.kind != Kind::Recorded {
            return Err(rules::not_recorded(&run_id));
        }
        if run.run.status != RunStatus::Completed {
            return Err(rules::not_completed(&run_id, run.run.status.word()));
        }
        let counts = |cell: &&Cell| cell.counts.passed + cell.counts.failed > 0;
        if !run.cells.iter().filter(counts).any(|cell| evaluation.as_ref().is_none_or(|id| *id == cell.key.evaluation)) {
            return Err(rules::nothing_counted(&run_id, evaluation.as_deref()));
        }
        let mut held = self.desk.baselines.iter_mut().filter(|row| row.evaluation == evaluation && row.superseded_at.is_none());
        let before = held.next();
        let replaces = before.as_ref().map(|row| row.run_id.clone());
        if replaces.as_ref() == Some(&run_id) {
            return Err(rules::is_baseline(&run_id));
        }
        if let Some(row) = before {
            row.superseded_at = Some(deed.at);
        }
        let acted = Acted::Baseline { run_id: run_id.clone(), evaluation: evaluation.clone(), replaces: replaces.clone() };
        let accepted_by = deed.actor.principal.clone();
        let row = BaselineRow { run_id, evaluation, accepted_at: deed.at, accepted_by, note, replaces, superseded_at: None, present: true };
        self.desk.baselines.push(row);
        Ok(acted)
    }

    fn forget(&mut self, run_id: &str) -> Did {
        let world = self.world();
        let run = &world.runs.get(run_id).ok_or_else(|| rules::no_run(run_id))?.run;
        if self.desk.queue.iter().any(|held| held.run.run_id == run_id) {
            return Err(rules::came_by_queue(run_id));
        }
        if !run.status.ended() {
            return Err(rules::not_ended(run_id, run.status.word()));
        }
        if self.desk.baselines.iter().any(|row| row.run_id == run_id && row.superseded_at.is_none()) {
            return Err(rules::holds_as_baseline(run_id));
        }
        let of_run =
            |file: &&File| file.log.as_ref().is_some_and(|log| world.run_of.get(&log.header.log_id).is_some_and(|of| of == run_id));
        let stamps: Vec<FileStamp> = self.files.values().filter(of_run).map(|file| file.row.stamp.clone()).collect();
        if let Some(stamp) = stamps.iter().find(|stamp| rules::is_looked_at(stamp.source.as_deref())) {
            return Err(rules::stands_in_file(run_id, &stamp.path));
        }
        for stamp in stamps {
            self.take(&stamp.path, None);
        }
        Ok(Acted::Forgotten { run_id: run_id.to_owned() })
    }

    pub(super) fn synced(&mut self, id: &str, health: Health) -> Applied {
        self.sweep(health.at);
        let Some(connection) = self.desk.connections.get_mut(id) else { return Applied::default() };
        connection.asked_at = connection.asked_at.filter(|asked| *asked > health.at);
        connection.health = Some(health);
        Applied { changed: true, ..Applied::default() }
    }
}

/// Connections.
impl Desk {
    fn connect(&mut self, deed: &Deed, act: Act) -> Did {
        let did = |connection: String| Ok(Acted::Connection { connection });
        match act {
            Act::CreateConnection { id, kind, name, config } => {
                if self.connections.contains_key(&id) {
                    return Err(rules::connection_exists(&id));
                }
                self.free(&name, &id)?;
                let (created_at, created_by) = (deed.at, deed.actor.principal.clone());
                let (id_, enabled) = (id.clone(), true);
                let one = Connection { id: id_, kind, name, config, enabled, created_at, created_by, asked_at: None, health: None };
                self.connections.insert(id.clone(), one);
                did(id)
            }
            Act::UpdateConnection { connection, name, config, enabled } => {
                self.connection(&connection)?;
                if let Some(name) = &name {
                    self.free(name, &connection)?;
                }
                let held = self.connection(&connection)?;
                held.name = name.unwrap_or(held.name.clone());
                held.config = config.unwrap_or(held.config.clone());
                held.enabled = enabled.unwrap_or(held.enabled);
                did(connection)
            }
            Act::DeleteConnection { connection } => {
                self.connections.remove(&connection).ok_or_else(|| rules::no_connection(&connection))?;
                did(connection)
            }
            Act::SyncConnection { connection } => {
                let held = self.connection(&connection)?;
                if !held.enabled {
                    return Err(rules::connection_off(&connection));
                }
                held.asked_at = Some(deed.at);
                did(connection)
            }
            other => unreachable!("{other:?} is no act on a connection"),
        }
    }

    fn connection(&mut self, id: &str) -> std::result::Result<&mut Connection, ActFault> {
        self.connections.get_mut(id).ok_or_else(|| rules::no_connection(id))
    }

    fn free(&self, name: &str, but: &str) -> std::result::Result<(), ActFault> {
        let held = self.connections.values().any(|one| one.name == name && one.id != but);
        if held { Err(rules::connection_named(name)) } else { Ok(()) }
    }
}

impl Workspace for Model {
    fn authored(&self, query: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)> {
        let state = self.state();
        let fits = |one: &Authored| {
            query.id.is_none_or(|id| id == one.id)
                && query.number.is_none_or(|number| number == one.number)
                && query.status.is_none_or(|status| status == one.status)
                && (contains(&one.id, query.contains) || one.name.as_deref().is_some_and(|name| contains(name, query.contains)))
        };
        let mut all: Vec<Authored> = state.evaluations.iter().filter_map(|id| state.known(id)).filter(fits).collect();
        all.sort_by_key(|one| std::cmp::Reverse((one.created_at, one.number)));
        let total = all.len() as u64;
        Ok((all.into_iter().skip(query.offset as usize).take(query.limit).collect(), total))
    }

    fn authored_cases(&self, evaluation: &str, offset: u64, limit: usize) -> Result<(Vec<AuthoredCase>, u64)> {
        let cases = self.state().desk.authored.get(evaluation).map(|made| made.cases.clone()).unwrap_or_default();
        let total = cases.len() as u64;
        Ok((cases.into_iter().skip(offset as usize).take(limit).collect(), total))
    }

    fn queued(&self, run_ids: &[String]) -> Result<BTreeMap<String, Queued>> {
        let state = self.state();
        let wanted = |run: &&Queued| if run_ids.is_empty() { !run.status.ended() } else { run_ids.contains(&run.run_id) };
        Ok(state.desk.queue.iter().map(|waiting| &waiting.run).filter(wanted).map(|run| (run.run_id.clone(), run.clone())).collect())
    }

    fn audit(&self, query: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)> {
        let fits = |row: &AuditRow| {
            query.actor.is_none_or(|actor| actor == row.actor)
                && query.tool.is_none_or(|tool| tool == row.tool)
                && query.outcome.is_none_or(|outcome| outcome == row.outcome)
                && query.since.is_none_or(|since| row.at >= since)
        };
        let all: Vec<AuditRow> = self.state().desk.trail.iter().rev().filter(|row| fits(row)).cloned().collect();
        let total = all.len() as u64;
        let before = |row: &AuditRow| query.before.is_none_or(|before| row.number < before);
        Ok((all.into_iter().filter(before).take(query.limit).collect(), total))
    }

    fn baselines(&self, evaluation: Option<&str>) -> Result<Vec<BaselineRow>> {
        let state = self.state();
        let world = state.world();
        let of = |row: &&BaselineRow| evaluation.is_none() || row.evaluation.is_none() || row.evaluation.as_deref() == evaluation;
        let shown = |row: &BaselineRow| BaselineRow { present: world.runs.contains_key(&row.run_id), ..row.clone() };
        Ok(state.desk.baselines.iter().rev().filter(of).map(shown).collect())
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        let mut all: Vec<Connection> = self.state().desk.connections.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn trace(&self, trace_id: &str, now: Timestamp) -> Result<Option<Trace>> {
        Ok(self.state().desk.traces.get(trace_id).filter(|trace| trace.expires_at > now).cloned())
    }

    fn remembered(&self, identity: &str, tool: &str, key: &str, since: Timestamp) -> Result<Option<Remembered>> {
        let key = [identity, tool, key].map(str::to_owned);
        let state = self.state();
        let held = state.desk.remembered.get(&key).filter(|(.., at)| *at >= since);
        Ok(held.map(|(digest, acted, _)| Remembered { digest: digest.clone(), acted: acted.clone() }))
    }
}
