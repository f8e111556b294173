//! The queue of the plain model: a list in the order of asking.
//!
//! Promises: each state of a run is also a log, as in every store.
//! Does not: look at a clock.

use super::*;

impl State {
    /// Why a log from outside is not taken.
    pub(in super::super) fn reserved(&self, change: &LogChange<'_>) -> Option<String> {
        if change.file.path.starts_with(rules::QUEUE) {
            return Some(rules::kept_for_queue());
        }
        let queued = |id: &&String| self.desk.queue.iter().any(|waiting| waiting.run.run_id == **id);
        [&change.header.run_key, &change.header.log_id].into_iter().find(queued).map(|id| rules::kept_for_worker(id))
    }

    pub(super) fn start(&mut self, deed: &Deed, new: NewRun) -> Did {
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
        let spent = runs
            .filter_map(|run| run.max_cost_usd.map(|max| rules::reserved(max, run.tries, run.status, run.cost_usd)))
            .fold(0.0, |sum, cost| sum + cost);
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

    pub(super) fn cancel(&mut self, deed: &Deed, run_id: &str) -> Did {
        let place = self.desk.queue.iter().position(|waiting| waiting.run.run_id == run_id).ok_or_else(|| rules::not_queued(run_id))?;
        let run = &mut self.desk.queue[place].run;
        match run.status {
            RunStatus::Pending => self.finish(place, RunStatus::Cancelled, deed.at, None),
            status if status.ended() => return Err(rules::has_ended(run)),
            _ => run.cancelling = true,
        }
        Ok(Acted::Run { run_id: run_id.to_owned(), status: self.desk.queue[place].run.status })
    }

    pub(in super::super) fn queue(&mut self, change: QueueChange<'_>) -> Result<Applied> {
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
                RunStatus::Running => run.lease_until.is_some_and(|until| until <= now || until > now.plus_millis(rules::LEASE_MS_MAX)),
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
                (run.lease_until, run.tries, run.done) = (Some(now.plus_millis(lease_ms)), tries + 1, 0);
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
