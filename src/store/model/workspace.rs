//! The workspace of the plain model: lists and maps, looked through from end to end.
//!
//! Promises: a refused act leaves what was there as it was, since it worked on a copy.
//! Does not: hide anything: it has no scope.

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

impl State {
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

    pub(super) fn synced(&mut self, id: &str, health: Health) -> Applied {
        self.sweep(health.at);
        let Some(connection) = self.desk.connections.get_mut(id) else { return Applied::default() };
        connection.asked_at = connection.asked_at.filter(|asked| *asked > health.at);
        connection.health = Some(health);
        Applied { changed: true, ..Applied::default() }
    }
}

/// The queue.
impl State {
    /// Why a log from outside is not taken.
    pub(super) fn reserved(&self, change: &LogChange<'_>) -> Option<String> {
        if change.file.path.starts_with(rules::QUEUE) {
            return Some(rules::kept_for_queue());
        }
        let queued = |id: &&String| self.desk.queue.iter().any(|waiting| waiting.run.run_id == **id);
        [&change.header.run_key, &change.header.log_id].into_iter().find(queued).map(|id| rules::kept_for_worker(id))
    }

    fn start(&mut self, deed: &Deed, new: NewRun) -> Did {
        let mut logs = self.files.values().filter(|file| matches!(file.row.state, FileState::Log(_))).filter_map(|file| file.log.as_ref());
        if self.world().runs.contains_key(&new.run_id)
            || logs.any(|log| log.header.log_id == new.run_id || log.header.run_key == new.run_id)
            || self.desk.queue.iter().any(|waiting| waiting.run.run_id == new.run_id)
        {
            return Err(rules::run_exists(&new.run_id));
        }
        let held = self.here(&new.evaluation)?;
        rules::may_start(&held.id, held.status, held.lock.as_ref(), held.cases)?;
        let open = self.desk.queue.iter().filter(|waiting| !waiting.run.status.ended()).count() as u64;
        let runs = self.desk.queue.iter().map(|waiting| &waiting.run).filter(|run| run.created_at >= new.budget.since);
        let spent = runs.filter_map(|run| run.max_cost_usd).fold(0.0, |sum, cost| sum + cost);
        rules::fits(&new.budget, open, spent, new.max_cost_usd)?;
        let run = Queued {
            run_id: new.run_id.clone(),
            evaluation: new.evaluation,
            arm: new.arm.unwrap_or_else(|| rules::DEFAULT_ARM.to_owned()),
            environment: new.environment,
            max_cost_usd: new.max_cost_usd,
            cost_usd: None,
            status: RunStatus::Pending,
            created_by: deed.actor.principal.clone(),
            created_at: deed.at,
            started_at: None,
            ended_at: None,
            worker: None,
            lease_until: None,
            tries: 0,
            cancelling: false,
            done: 0,
            total: held.cases,
            error: None,
        };
        let cases = self.desk.authored.get(&run.evaluation).map(|made| made.cases.clone()).unwrap_or_default();
        let waiting = Waiting { run, threshold: held.threshold, family: held.family, cases };
        self.show(&waiting, &mut std::iter::empty()).unwrap();
        self.desk.queue.push(waiting);
        Ok(Acted::Run { run_id: new.run_id, status: RunStatus::Pending })
    }

    fn cancel(&mut self, deed: &Deed, run_id: &str) -> Did {
        let place = self.desk.queue.iter().position(|waiting| waiting.run.run_id == run_id).ok_or_else(|| rules::not_queued(run_id))?;
        let run = &mut self.desk.queue[place].run;
        match run.status {
            RunStatus::Pending => self.finish(place, RunStatus::Cancelled, deed.at, None),
            status if status.ended() => return Err(rules::has_ended(run)),
            _ => run.cancelling = true,
        }
        Ok(Acted::Run { run_id: run_id.to_owned(), status: self.desk.queue[place].run.status })
    }

    pub(super) fn queue(&mut self, change: QueueChange<'_>) -> Result<Applied> {
        let applied = |queue, changed| Ok(Applied { changed, queue: Some(queue), ..Applied::default() });
        match change {
            QueueChange::Claim { worker, now, lease_ms, tries_max } => {
                self.sweep(now);
                let (outcome, changed) = self.claim(worker, now, lease_ms, tries_max);
                applied(outcome, changed)
            }
            QueueChange::Beat { run_id, worker, now, lease_ms, done, cost_usd } => {
                let Some(place) = self.ours(run_id, worker) else { return applied(QueueOutcome::Lost, false) };
                let run = &mut self.desk.queue[place].run;
                run.lease_until = Some(now.plus_millis(lease_ms));
                run.done = done.min(run.total);
                run.cost_usd = cost_usd.or(run.cost_usd);
                applied(if run.cancelling { QueueOutcome::Cancelling } else { QueueOutcome::Ours }, false)
            }
            QueueChange::End { run_id, worker, now, end } => {
                let Some(place) = self.ours(run_id, worker) else { return applied(QueueOutcome::Lost, false) };
                self.end(place, now, end)
            }
        }
    }

    fn end(&mut self, place: usize, now: Timestamp, end: RunEnd<'_>) -> Result<Applied> {
        let mut waiting = self.desk.queue[place].clone();
        waiting.run.cost_usd = end.cost_usd.or(waiting.run.cost_usd);
        match end.status {
            RunStatus::Completed => {
                close(&mut waiting.run, RunStatus::Completed, now, None);
                let run = waiting.run.clone();
                let mut results = rules::Results::new(&run, &waiting.cases, end.attempts);
                let applied = self.show(&waiting, &mut results)?;
                waiting.run.done = results.done();
                self.desk.queue[place] = waiting;
                return Ok(Applied { changed: true, queue: Some(QueueOutcome::Ours), ..applied });
            }
            RunStatus::Failed | RunStatus::Cancelled => {
                let unsaid = (end.status == RunStatus::Failed).then(rules::unsaid);
                self.desk.queue[place] = waiting;
                self.finish(place, end.status, now, end.error.or(unsaid));
            }
            other => return Err(Error::Internal(format!("a run cannot end as {}", other.word()))),
        }
        Ok(Applied { changed: true, queue: Some(QueueOutcome::Ours), ..Applied::default() })
    }

    fn ours(&self, run_id: &str, worker: &str) -> Option<usize> {
        let ours = |run: &Queued| run.run_id == run_id && run.status == RunStatus::Running && run.worker.as_deref() == Some(worker);
        self.desk.queue.iter().position(|waiting| ours(&waiting.run))
    }

    fn claim(&mut self, worker: &str, now: Timestamp, lease_ms: i64, tries_max: u32) -> (QueueOutcome, bool) {
        let mut changed = false;
        for place in 0..self.desk.queue.len() {
            let run = &mut self.desk.queue[place].run;
            let free = match run.status {
                RunStatus::Pending => true,
                RunStatus::Running => run.lease_until.is_some_and(|until| until <= now),
                _ => false,
            };
            if !free {
                continue;
            }
            changed = true;
            let tries = run.tries;
            if run.cancelling {
                self.finish(place, RunStatus::Cancelled, now, None);
            } else if run.status == RunStatus::Running && tries >= tries_max {
                self.finish(place, RunStatus::Failed, now, Some(rules::lost(tries)));
            } else {
                (run.status, run.started_at, run.worker) = (RunStatus::Running, Some(now), Some(worker.to_owned()));
                (run.lease_until, run.tries, run.done, run.cost_usd) = (Some(now.plus_millis(lease_ms)), tries + 1, 0, None);
                let waiting = self.desk.queue[place].clone();
                self.show(&waiting, &mut std::iter::empty()).unwrap();
                let evaluation = self.known(&waiting.run.evaluation).unwrap();
                return (QueueOutcome::Claimed(Box::new(Claimed { run: waiting.run, evaluation, cases: waiting.cases })), true);
            }
        }
        (QueueOutcome::Idle, changed)
    }

    fn finish(&mut self, place: usize, status: RunStatus, now: Timestamp, error: Option<String>) {
        close(&mut self.desk.queue[place].run, status, now, error);
        let waiting = self.desk.queue[place].clone();
        self.show(&waiting, &mut std::iter::empty()).unwrap();
    }

    fn show(&mut self, waiting: &Waiting, attempts: &mut dyn Iterator<Item = std::result::Result<Attempt, String>>) -> Result<Applied> {
        let (file, header) = rules::log_of(&waiting.run, waiting.threshold, waiting.family.as_deref());
        self.log(LogChange { file, kind: Kind::Recorded, header, extras: Extras::default(), pinned: true, ancestors: vec![], attempts })
    }
}

fn close(run: &mut Queued, status: RunStatus, now: Timestamp, error: Option<String>) {
    (run.status, run.ended_at, run.error) = (status, Some(now), error);
    (run.lease_until, run.cancelling) = (None, false);
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
