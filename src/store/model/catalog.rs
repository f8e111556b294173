//! The catalog of the plain model: everything looked through at each read.
//!
//! Promises: no index, so that reading it is believing it.
//! Does not: hide texts (no handle of the model does), or care how long it takes.

use std::collections::{BTreeMap, BTreeSet};

use super::{KeptLog, Model, State, World, world::ModelRun};
use crate::{
    domain::{
        cell::Cell,
        outcome::{Counts, Outcome},
        words::{Look, each_text},
    },
    store::{
        ArmTotal, Catalog, Dataset, Error, FileState, Found, FoundIn, Hit, Item, ItemText, Kind, Place, Result, Round, RunPoint, Score,
        SearchQuery, Totals,
    },
};

fn point(run: &ModelRun) -> RunPoint {
    RunPoint { run_id: run.run.run_id.clone(), created_at: run.run.created_at }
}

/// Oldest first.
fn by_age(world: &World) -> Vec<&ModelRun> {
    let mut runs: Vec<&ModelRun> = world.runs.values().collect();
    runs.sort_by_key(|run| (run.run.created_at, run.run.run_id.clone()));
    runs
}

fn tried(run: &ModelRun, evaluation: &str) -> BTreeSet<String> {
    run.cells.iter().filter(|cell| cell.key.evaluation == evaluation).filter_map(|cell| cell.key.case.clone()).collect()
}

/// The logs that count, oldest first.
fn logs(state: &State) -> Vec<&KeptLog> {
    let counting = state.files.values().filter(|file| matches!(file.row.state, FileState::Log(_)));
    let mut logs: Vec<&KeptLog> = counting.filter_map(|file| file.log.as_ref()).collect();
    logs.sort_by_key(|log| (log.header.created_at, log.header.log_id.clone()));
    logs
}

fn texts(state: &State, evaluation: &str, case: &str) -> ItemText {
    let mut out = ItemText::default();
    for attempt in logs(state).iter().flat_map(|log| &log.attempts) {
        if attempt.evaluation == evaluation && attempt.case == case && (attempt.input.is_some() || attempt.target.is_some()) {
            out = ItemText { input: attempt.input.clone(), target: attempt.target.clone() };
        }
    }
    out
}

fn group(state: &State, evaluation: &str, case: &str) -> Option<String> {
    let of = |log: &&KeptLog| {
        let mut attempts = log.attempts.iter().filter(|attempt| attempt.evaluation == evaluation && attempt.case == case);
        attempts.find_map(|attempt| attempt.group.clone())
    };
    logs(state).iter().rev().find_map(of)
}

fn nothing(place: Place) -> Hit {
    Hit { place, run: None, attempt: None, evaluation: None, case: None, outcome: None, cost_usd: None, line: None, snippet: None }
}

impl Catalog for Model {
    fn totals(&self) -> Result<Totals> {
        let mut out = Totals::default();
        for run in by_age(&self.world()) {
            match run.run.kind {
                Kind::Recorded => (out.recorded, out.counts) = (out.recorded + 1, out.counts.plus(run.run.counts)),
                Kind::Scratch => out.scratch += 1,
            }
            out.oldest = out.oldest.or(Some(run.run.created_at));
            out.newest = Some(run.run.created_at);
        }
        Ok(out)
    }

    fn datasets(&self) -> Result<Vec<Dataset>> {
        let world = self.world();
        let mut out = BTreeMap::<String, Dataset>::new();
        for run in by_age(&world) {
            for evaluation in &run.evaluations {
                let (id, info) = (evaluation.info.id.clone(), evaluation.info.clone());
                let runs = out.get(&id).map_or(0, |held| held.runs) + 1;
                let tried = tried(run, &id).len() as u64;
                out.insert(id, Dataset { number: evaluation.number, info, runs, tried, newest: point(run) });
            }
        }
        Ok(out.into_values().collect())
    }

    fn items(&self, evaluation: &str) -> Result<Vec<Item>> {
        let (world, state) = (self.world(), self.state());
        let cases: BTreeSet<String> = world.runs.values().flat_map(|run| tried(run, evaluation)).collect();
        let item = |case: String| {
            let texts = texts(&state, evaluation, &case);
            let chars = |text: Option<String>| text.map(|text| text.chars().count() as u64);
            Item { group: group(&state, evaluation, &case), input_chars: chars(texts.input), target_chars: chars(texts.target), case }
        };
        Ok(cases.into_iter().map(item).collect())
    }

    fn item_text(&self, evaluation: &str, case: &str) -> Result<Option<ItemText>> {
        let (world, state) = (self.world(), self.state());
        let there = world.runs.values().any(|run| tried(run, evaluation).contains(case));
        Ok(there.then(|| texts(&state, evaluation, case)))
    }

    fn arm_totals(&self) -> Result<Vec<ArmTotal>> {
        let world = self.world();
        let mut out = BTreeMap::<String, ArmTotal>::new();
        for run in by_age(&world) {
            for arm in &run.arms {
                let runs = out.get(&arm.info.name).map_or(0, |held| held.runs) + 1;
                let of = |cell: &&Cell| cell.key.arm == arm.info.name && cell.key.case.is_none();
                let recorded = || world.recorded_cells().map(|(_, cell)| cell).filter(of);
                let evaluations = recorded().map(|cell| &cell.key.evaluation).collect::<BTreeSet<_>>().len() as u64;
                let counts = recorded().fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
                let total = ArmTotal { info: arm.info.clone(), runs, evaluations, counts, newest: point(run) };
                out.insert(arm.info.name.clone(), total);
            }
        }
        Ok(out.into_values().collect())
    }

    fn rounds(&self) -> Result<Vec<Round>> {
        let world = self.world();
        let mut out = BTreeMap::<String, Round>::new();
        for run in by_age(&world) {
            let Some(round) = run.run.round.clone() else { continue };
            let first =
                Round { round: round.clone(), runs: 0, unended: 0, counts: Counts::default(), oldest: point(run), newest: point(run) };
            let held = out.entry(round).or_insert(first);
            held.runs += 1;
            held.unended += u64::from(!run.run.status.ended());
            held.counts = held.counts.plus(run.run.counts);
            held.newest = point(run);
        }
        let mut out: Vec<Round> = out.into_values().collect();
        out.sort_by(|a, b| (b.newest.created_at, &b.newest.run_id).cmp(&(a.newest.created_at, &a.newest.run_id)));
        Ok(out)
    }

    fn scores(&self, run: &str, evaluation: Option<&str>, check: Option<&str>) -> Result<Vec<Score>> {
        let world = self.world();
        let mut out = BTreeMap::<(String, String, String, String), Score>::new();
        let of = |kept: &&super::KeptAttempt| {
            evaluation.is_none_or(|id| kept.row.evaluation == id) && matches!(kept.row.outcome, Outcome::Pass | Outcome::Fail)
        };
        for kept in world.runs.get(run).into_iter().flat_map(|run| run.attempts.iter().filter(of)) {
            for found in kept.row.checks.iter().filter(|found| check.is_none_or(|name| found.name == name)) {
                let key = (kept.row.evaluation.clone(), kept.row.case.clone(), kept.row.arm.clone(), found.name.clone());
                let none = Score {
                    evaluation: key.0.clone(),
                    case: key.1.clone(),
                    arm: key.2.clone(),
                    check: key.3.clone(),
                    kind: found.kind.clone(),
                    n: 0,
                    sum: 0.0,
                    answered: 0,
                    passed: 0,
                };
                let score = out.entry(key).or_insert(none);
                if let Some(value) = found.value.or(found.passed.map(|passed| f64::from(u8::from(passed)))) {
                    (score.n, score.sum) = (score.n + 1, score.sum + value);
                }
                score.answered += u64::from(found.passed.is_some());
                score.passed += u64::from(found.passed == Some(true));
                score.kind = score.kind.clone().max(found.kind.clone());
            }
        }
        Ok(out.into_values().collect())
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Found> {
        let mut out = Found::default();
        for place in Place::ALL.into_iter().filter(|place| query.searches(*place, true)) {
            let mut hits = match place {
                Place::Evaluation => evaluations(self, query)?,
                Place::Run => runs(self, query),
                Place::Case => cases(self, query)?,
                Place::Reason | Place::Transcript => attempts(self, query, place)?,
            };
            let more = hits.len() > query.limit;
            hits.truncate(query.limit);
            out.places.insert(place, FoundIn { hits, more });
        }
        Ok(out)
    }

    fn integrity(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

fn evaluations(model: &Model, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
    let mut out = Vec::new();
    for dataset in model.datasets()? {
        let info = &dataset.info;
        let texts: Vec<&str> =
            std::iter::once(&info.id).chain(&info.family).chain(&info.dataset).chain(&info.version).map(String::as_str).collect();
        if query.question.found_in(texts.iter().copied()) {
            let snippet = texts.iter().find_map(|text| query.question.excerpt(text));
            out.push(Hit { evaluation: Some(info.id.clone()), snippet, ..nothing(Place::Evaluation) });
        }
    }
    Ok(out)
}

fn in_time(query: &SearchQuery<'_>, run: &RunPoint) -> bool {
    query.since.is_none_or(|since| run.created_at >= since) && query.until.is_none_or(|until| run.created_at <= until)
}

/// A log's own names, beside its run's.
fn runs(model: &Model, query: &SearchQuery<'_>) -> Vec<Hit> {
    let (world, state) = (model.world(), model.state());
    let mut out = Vec::new();
    for run in by_age(&world).into_iter().rev() {
        let branch = run.run.git.as_ref().and_then(|git| git.branch.clone());
        let own: Vec<String> = std::iter::once(run.run.run_id.clone()).chain(run.run.round.clone()).chain(branch).collect();
        let texts = |log: &KeptLog| -> Vec<String> {
            let header = &log.header;
            let arms = header.arms.iter().map(|arm| arm.name.clone());
            own.iter().cloned().chain([header.log_id.clone()]).chain(header.tags.clone()).chain(arms).collect()
        };
        let of_run = logs(&state).into_iter().filter(|log| world.run_of.get(&log.header.log_id) == Some(&run.run.run_id));
        let found = of_run.map(texts).find(|texts| query.question.found_in(texts.iter().map(String::as_str)));
        if let Some(texts) = found.filter(|_| in_time(query, &point(run))) {
            let snippet = texts.iter().find_map(|text| query.question.excerpt(text));
            out.push(Hit { run: Some(point(run)), snippet, ..nothing(Place::Run) });
        }
    }
    out
}

fn cases(model: &Model, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
    let mut out = Vec::new();
    for dataset in model.datasets()? {
        for item in model.items(&dataset.info.id)? {
            let ItemText { input, target } = model.item_text(&dataset.info.id, &item.case)?.unwrap_or_default();
            let texts: Vec<String> = std::iter::once(item.case.clone()).chain(input).chain(target).collect();
            if query.question.found_in(texts.iter().map(String::as_str)) {
                let snippet = texts.iter().find_map(|text| query.question.excerpt(text));
                let (evaluation, case) = (Some(dataset.info.id.clone()), Some(item.case));
                out.push(Hit { evaluation, case, snippet, ..nothing(Place::Case) });
            }
        }
    }
    Ok(out)
}

fn attempts(model: &Model, query: &SearchQuery<'_>, place: Place) -> Result<Vec<Hit>> {
    let world = model.world();
    let mut out = Vec::new();
    for run in by_age(&world).into_iter().rev() {
        let mut of_run = Vec::new();
        for kept in &run.attempts {
            let row = &kept.row;
            let fits = query.outcome.is_none_or(|outcome| row.outcome == outcome)
                && query.min_cost_usd.is_none_or(|least| row.cost_usd.is_some_and(|cost| cost >= least))
                && in_time(query, &point(run));
            let hit = Hit {
                run: Some(point(run)),
                attempt: Some(row.key.clone()),
                evaluation: Some(row.evaluation.clone()),
                case: Some(row.case.clone()),
                outcome: Some(row.outcome),
                cost_usd: row.cost_usd,
                ..nothing(place)
            };
            let found = if place == Place::Reason { said(kept, query) } else { told(kept, query)? };
            if let Some((line, snippet)) = found.filter(|_| fits) {
                of_run.push(Hit { line, snippet, ..hit });
            }
        }
        of_run.sort_by(|a, b| a.attempt.cmp(&b.attempt));
        out.append(&mut of_run);
    }
    Ok(out)
}

type Where = (Option<u64>, Option<String>);

fn said(kept: &super::KeptAttempt, query: &SearchQuery<'_>) -> Option<Where> {
    let row = &kept.row;
    let mut texts: Vec<String> = Vec::new();
    for check in &row.checks {
        texts.extend([check.reason.clone(), check.label.clone(), check.answer.clone(), Some(check.name.clone())].into_iter().flatten());
    }
    let output = row.rest.as_ref().and_then(|rest| rest.output.clone());
    texts.extend([row.error.clone(), row.limit.clone(), output].into_iter().flatten());
    let found = query.question.found_in(texts.iter().map(String::as_str));
    found.then(|| (None, texts.iter().find_map(|text| query.question.excerpt(text))))
}

fn told(kept: &super::KeptAttempt, query: &SearchQuery<'_>) -> Result<Option<Where>> {
    let lines = kept.transcript.page(0, u64::MAX).map_err(|_| Error::Damaged)?;
    let (mut look, mut place, mut placed) = (Look::new(query.question), (None, None), false);
    for (number, line) in (0..).zip(&lines) {
        each_text(line, |text| {
            look.see(text);
            if !placed
                && let Some((excerpt, whole)) = query.question.found_at(text)
                && (whole || place.1.is_none())
            {
                (place, placed) = ((Some(number), Some(excerpt)), whole);
            }
        });
    }
    Ok(look.all().then_some(place))
}
