//! What the kept logs amount to: runs with their arms, evaluations, attempts and cells.
//!
//! Promises: a function of the logs and the declarations alone, so the order in which they came cannot matter.
//! Does not: keep anything.

use crate::domain::attempt::Attempt;
use std::collections::{BTreeMap, BTreeSet};

use super::{super::*, KeptLog};
use crate::{
    domain::{
        cell,
        extras::Pair,
        grouping::{self, AttemptStub, LogStub},
        key, planned,
        signature::{self, Signature},
    },
    transcript::Packed,
};

pub(super) struct World {
    pub runs: BTreeMap<String, ModelRun>,
    /// By log id.
    pub run_of: BTreeMap<String, String>,
}

pub(super) struct ModelRun {
    pub run: Run,
    pub arms: Vec<RunArm>,
    pub evaluations: Vec<RunEvaluation>,
    pub ancestors: Vec<String>,
    /// In the order of the port.
    pub attempts: Vec<KeptAttempt>,
    pub cells: Vec<Cell>,
    pub extras: RunExtras,
    pub analyses: Vec<Analysis>,
    pub groups: Groups,
}

pub(super) struct KeptAttempt {
    pub row: AttemptRow,
    pub transcript: Packed,
    pub signature: Option<Signature>,
    task: String,
    label: (String, Option<String>),
}

pub(super) fn stub(log: &KeptLog) -> LogStub {
    LogStub {
        log_id: log.header.log_id.clone(),
        run_key: log.header.run_key.clone(),
        pinned: log.pinned,
        task_id: log.header.task_id.clone(),
        created_at: log.header.created_at,
        status: log.header.status,
    }
}

fn age(log: &KeptLog) -> (Timestamp, String) {
    (log.header.created_at, log.header.log_id.clone())
}

fn task(log: &KeptLog) -> String {
    log.header.task_id.clone().unwrap_or_else(|| log.header.log_id.clone())
}

impl World {
    pub(super) fn of(
        mut logs: Vec<KeptLog>,
        records: Vec<KeptLog>,
        declared: &Declared,
        numbers: &BTreeMap<String, i64>,
        evaluations: &[String],
    ) -> Self {
        logs.sort_by_key(age);
        let stubs: Vec<LogStub> = logs.iter().map(stub).collect();
        let ids: Vec<String> = grouping::runs(&stubs).into_iter().map(str::to_owned).collect();
        let mut by_run: BTreeMap<String, Vec<&KeptLog>> = BTreeMap::new();
        for (log, id) in logs.iter().zip(&ids) {
            by_run.entry(id.clone()).or_default().push(log);
        }
        let run_of = logs.iter().zip(&ids).map(|(log, id)| (log.header.log_id.clone(), id.clone())).collect();
        let run = |(id, logs): (String, Vec<&KeptLog>)| {
            let number = numbers.get(&id).copied().unwrap_or(0);
            let beside: Vec<&KeptLog> = records.iter().filter(|record| record.header.run_key == id).collect();
            (id.clone(), run(id, number, &logs, &beside, declared, evaluations))
        };
        Self { runs: by_run.into_iter().map(run).collect(), run_of }
    }

    pub(super) fn newest_first(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.runs.values().map(|run| run.run.clone()).collect();
        runs.sort_by(|a, b| (b.created_at, &b.run_id).cmp(&(a.created_at, &a.run_id)));
        runs
    }

    pub(super) fn recorded_cells(&self) -> impl Iterator<Item = (&Run, &Cell)> {
        self.runs.values().filter(|run| run.run.kind == Kind::Recorded).flat_map(|run| run.cells.iter().map(|cell| (&run.run, cell)))
    }
}

fn run(run_id: String, number: i64, logs: &[&KeptLog], beside: &[&KeptLog], declared: &Declared, evaluations: &[String]) -> ModelRun {
    let arms = arms(logs, declared);
    let groups = groups(logs);
    let mut attempts = attempts(logs, declared, arms.len() > 1);
    for KeptAttempt { row, .. } in &mut attempts {
        if let Some(rest) = &mut row.rest {
            rest.group = groups.get(&row.evaluation).and_then(|cases| cases.get(&row.case)).cloned();
        }
    }
    let infos = infos(logs, declared);
    let mut cells = Vec::new();
    for info in infos.values() {
        cells.extend(cells_of(&run_id, info, logs, declared, &attempts));
    }
    let at_evaluations = cells.iter().filter(|cell| cell.key.case.is_none());
    let counts = at_evaluations.fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
    let number_of = |id: &str| evaluations.iter().position(|other| other == id).map_or(0, |place| place as i64 + 1);
    let recorded = logs.iter().any(|log| log.kind == Kind::Recorded);
    let ends: Vec<Option<Timestamp>> = logs.iter().map(|log| log.header.completed_at).collect();
    let run = Run {
        run_id,
        number,
        kind: if recorded { Kind::Recorded } else { Kind::Scratch },
        status: grouping::status(&logs.iter().map(|log| stub(log)).collect::<Vec<_>>()),
        created_at: logs[0].header.created_at,
        started_at: logs.iter().filter_map(|log| log.header.started_at).min(),
        completed_at: if ends.contains(&None) { None } else { ends.into_iter().flatten().max() },
        git: logs[0].header.git.clone(),
        round: logs.iter().find_map(|log| log.header.round.clone()),
        counts,
    };
    let evaluations = infos.into_values().map(|info| RunEvaluation { number: number_of(&info.id), info }).collect();
    ModelRun {
        run,
        arms,
        evaluations,
        ancestors: logs[0].ancestors.clone(),
        extras: extras(logs, &attempts),
        analyses: analyses(&[logs, beside].concat()),
        attempts,
        cells,
        groups,
    }
}

/// In a log the first word on a case, and of the logs, oldest first, the last.
fn groups(logs: &[&KeptLog]) -> Groups {
    let mut out = Groups::new();
    for log in logs {
        for attempt in log.attempts.iter().rev() {
            if let Some(group) = &attempt.group {
                out.entry(attempt.evaluation.clone()).or_default().insert(attempt.case.clone(), group.clone());
            }
        }
    }
    out
}

/// The arms by declared name, each as the newest log has it (of several in one log, the last by name).
fn arms(logs: &[&KeptLog], declared: &Declared) -> Vec<RunArm> {
    let mut newest: BTreeMap<String, ArmInfo> = BTreeMap::new();
    for log in logs {
        let mut arms = log.header.arms.clone();
        arms.sort_by(|a, b| a.name.cmp(&b.name));
        for info in arms {
            newest.insert(declared.arm_name(&info.name).to_owned(), info);
        }
    }
    let arm = |(name, info): (String, ArmInfo)| {
        let role = declared.role(&info.name).or_else(|| declared.role(&name)).map(|role| role.word().to_owned()).or(info.role);
        RunArm { info: ArmInfo { name, role, factors: info.factors } }
    };
    newest.into_iter().map(arm).collect()
}

fn infos(logs: &[&KeptLog], declared: &Declared) -> BTreeMap<String, EvaluationInfo> {
    let mut newest: BTreeMap<String, EvaluationInfo> = BTreeMap::new();
    for info in logs.iter().flat_map(|log| &log.header.evaluations) {
        let mut info = info.clone();
        info.threshold = declared.threshold(&info.id).or(info.threshold);
        info.family = declared.family(&info.id).map(str::to_owned).or(info.family);
        newest.insert(info.id.clone(), info);
    }
    newest
}

fn attempts(logs: &[&KeptLog], declared: &Declared, several_arms: bool) -> Vec<KeptAttempt> {
    let all: Vec<(&KeptLog, &Attempt)> = logs.iter().flat_map(|log| log.attempts.iter().map(|attempt| (*log, attempt))).collect();
    let apart: BTreeSet<String> = logs.iter().filter(|log| log.header.arms.len() > 1).map(|log| task(log)).collect();
    let arm_apart = |log: &KeptLog, attempt: &Attempt| if apart.contains(&task(log)) { attempt.arm.clone() } else { String::new() };
    let stub = |(row, (log, attempt)): (usize, &(&KeptLog, &Attempt))| AttemptStub {
        row: row as i64,
        task: format!("{}\n{}\n{}", task(log), attempt.evaluation, arm_apart(log, attempt)),
        log_age: age(log),
        uuid: attempt.uuid.clone(),
        case: attempt.case.clone(),
        epoch: attempt.epoch,
    };
    let gone = grouping::superseded(&all.iter().enumerate().map(stub).collect::<Vec<_>>());
    let mut left: Vec<(usize, (&KeptLog, &Attempt))> =
        all.into_iter().enumerate().filter(|(row, _)| !gone.contains(&(*row as i64))).collect();
    let arm = |attempt: &Attempt| declared.arm_name(&attempt.arm).to_owned();
    // Logs come oldest first, so the row stands for the log's age and the place in its file.
    left.sort_by_key(|(row, (_, attempt))| (attempt.evaluation.clone(), attempt.case.clone(), arm(attempt), attempt.epoch, *row));
    let mut n: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    let mut out: Vec<KeptAttempt> = Vec::new();
    for (_, (log, attempt)) in left {
        let n = n.entry((attempt.evaluation.clone(), attempt.case.clone(), arm(attempt))).or_default();
        *n += 1;
        out.push(kept(log, attempt, arm(attempt), *n, several_arms));
    }
    let mut keys: Vec<String> = out.iter().map(|kept| kept.row.key.clone()).collect();
    key::distinct(&mut keys);
    out.iter_mut().zip(keys).for_each(|(kept, key)| kept.row.key = key);
    out
}

fn kept(log: &KeptLog, attempt: &Attempt, arm: String, n: u32, several_arms: bool) -> KeptAttempt {
    let row = AttemptRow {
        key: key::attempt_key(&attempt.evaluation, &attempt.case, several_arms.then_some(arm.as_str()), n),
        evaluation: attempt.evaluation.clone(),
        case: attempt.case.clone(),
        arm,
        n,
        outcome: attempt.outcome,
        score: attempt.score,
        checks: attempt.checks.clone(),
        usage: attempt.usage.clone(),
        cost_usd: attempt.cost_usd,
        duration_ms: attempt.duration_ms,
        started_at: attempt.started_at,
        error: attempt.error.clone(),
        limit: attempt.limit.clone(),
        retries: attempt.retries,
        lines: attempt.transcript.lines,
        messages: attempt.transcript.messages,
        rest: Some(Box::new(AttemptRest {
            uuid: attempt.uuid.clone(),
            working_ms: attempt.working_ms,
            input: attempt.input.clone(),
            target: attempt.target.clone(),
            group: None,
            output: attempt.output.clone(),
            answers: attempt.answers.clone(),
            skill_reads: attempt.skill_reads.clone(),
            context: attempt.context,
        })),
    };
    KeptAttempt {
        row,
        transcript: attempt.transcript.clone(),
        signature: signature::of(attempt),
        task: task(log),
        label: label(log, attempt),
    }
}

/// What tells an attempt that pairs name from those of other logs.
fn label(log: &KeptLog, attempt: &Attempt) -> (String, Option<String>) {
    (log.header.log_id.clone(), attempt.label.clone())
}

fn extras(logs: &[&KeptLog], attempts: &[KeptAttempt]) -> RunExtras {
    let mut out = RunExtras::together(logs.iter().map(|log| log.header.clone()).collect());
    for log in logs {
        log.extras.skill_files.iter().for_each(|file| out.add_skill_file(file.clone()));
        for pair in &log.extras.pairs {
            let key = |name: &String| {
                let wanted = (log.header.log_id.clone(), Some(name.clone()));
                attempts.iter().find(|kept| kept.label == wanted).map(|kept| kept.row.key.clone())
            };
            if let (Some(a), Some(b)) = (key(&pair.a), key(&pair.b)) {
                out.pairs.push(Pair { a, b, ..pair.clone() });
            }
        }
    }
    out
}

fn analyses(logs: &[&KeptLog]) -> Vec<Analysis> {
    let mut out: Vec<Analysis> = logs.iter().flat_map(|log| log.extras.analyses.clone()).collect();
    out.sort_by(|a, b| (b.created_at, a.source, &a.file).cmp(&(a.created_at, b.source, &b.file)));
    out
}

/// The cells of one evaluation, at both grains.
fn cells_of(run_id: &str, info: &EvaluationInfo, logs: &[&KeptLog], declared: &Declared, attempts: &[KeptAttempt]) -> Vec<Cell> {
    let attempts: Vec<&KeptAttempt> = attempts.iter().filter(|kept| kept.row.evaluation == info.id).collect();
    let mut counts: BTreeMap<(Option<String>, String), Counts> = BTreeMap::new();
    for kept in &attempts {
        counts.entry((None, kept.row.arm.clone())).or_default().add(kept.row.outcome);
        counts.entry((Some(kept.row.case.clone()), kept.row.arm.clone())).or_default().add(kept.row.outcome);
    }
    for (arm, missing) in missing(&info.id, logs, declared, &attempts) {
        counts.entry((None, arm)).or_default().missing += missing;
    }
    let cases: BTreeSet<&str> = attempts.iter().map(|kept| kept.row.case.as_str()).collect();
    let cases = (cases.len() as u32).max(info.dataset_cases.unwrap_or(0));
    let threshold = cell::threshold(info.threshold, cases);
    let cell = |((case, arm), counts): ((Option<String>, String), Counts)| {
        // A case is judged by its own attempts alone.
        let (threshold, declared) = if case.is_some() { (None, false) } else { (threshold, info.threshold.is_some()) };
        Cell {
            key: CellKey { evaluation: info.id.clone(), case, arm },
            run_id: run_id.to_owned(),
            counts,
            threshold,
            several_cases: cases > 1,
            declared,
            verdict: Verdict::judge(counts, threshold),
        }
    };
    counts.into_iter().map(cell).collect()
}

/// Planned attempts without a record, by arm.
fn missing(evaluation: &str, logs: &[&KeptLog], declared: &Declared, attempts: &[&KeptAttempt]) -> Vec<(String, u32)> {
    // Oldest first, so the last log of each task is what stays.
    let last: BTreeMap<String, &KeptLog> = logs.iter().map(|log| (task(log), *log)).collect();
    let mut out = Vec::new();
    for (task, log) in last {
        let Some(info) = log.header.evaluations.iter().find(|info| info.id == evaluation) else { continue };
        let recorded = |arm: &str| attempts.iter().filter(|kept| kept.task == task && kept.row.arm == arm).count() as u32;
        if !info.planned_by_arm.is_empty() {
            let mut planned = BTreeMap::<String, u32>::new();
            info.planned_by_arm.iter().for_each(|(arm, count)| *planned.entry(declared.arm_name(arm).to_owned()).or_default() += count);
            out.extend(
                planned.into_iter().map(|(arm, count)| (arm.clone(), count.saturating_sub(recorded(&arm)))).filter(|(_, left)| *left > 0),
            );
            continue;
        }
        let Some(planned) = info.planned else { continue };
        let tried: BTreeSet<String> = attempts.iter().filter(|kept| kept.task == task).map(|kept| kept.row.arm.clone()).collect();
        let listed = log.header.arms.iter().map(|arm| declared.arm_name(&arm.name).to_owned());
        let arms: BTreeSet<String> =
            if log.header.evaluations.len() == 1 || tried.is_empty() { tried.into_iter().chain(listed).collect() } else { tried };
        let have: Vec<u32> = arms.iter().map(|arm| recorded(arm)).collect();
        out.extend(arms.into_iter().zip(planned::missing(planned, &have)).filter(|(_, count)| *count > 0));
    }
    out
}
