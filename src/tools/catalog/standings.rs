//! How the declared goals stand: their cases read, tested and judged together, for the views that show goals.
//!
//! Promises: each side of a goal is, for each evaluation, its newest counted cell in a recorded completed run; what was measured in two ways is left
//! out and counted. A p that takes long is asked of the store first and kept there (decision 42).
//! Does not: show anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        comparable::{self, Side},
        declared::{Declared, Goal, matches},
        goal::{self, Judged, Standing, Tested},
        hex::hex,
        log::{EvaluationInfo, RunStatus},
        outcome::{Counts, Rate},
    },
    stats::{PairedCase, Recall, Wanted, sign_flip},
    store::{CellQuery, Groups, Named, Pick, PointQuery, RunArm, Store},
    tools::{Ctx, ToolError},
};

/// The metric that is the pass rate.
pub const PASS: &str = "pass";

/// A goal with how it stands.
#[derive(Debug, Clone)]
pub struct Stands {
    /// As it is declared.
    pub goal: Goal,
    /// Evaluations that are compared.
    pub evaluations: usize,
    /// Evaluations of the goal that one side has not counted.
    pub untried: usize,
    /// Evaluations that both tried, but not measured in the same way.
    pub apart: usize,
    /// What the cases say.
    pub tested: Option<Tested>,
    /// What is made of it.
    pub judged: Judged,
}

/// All declared goals, in the order of the file.
///
/// # Errors
/// As the store.
pub fn read(ctx: &Ctx) -> Result<Vec<Stands>, ToolError> {
    let declared = ctx.store.declared()?;
    if declared.goal.is_empty() {
        return Ok(Vec::new());
    }
    let mut sides = Sides::read(ctx, &declared)?;
    let mut out = Vec::with_capacity(declared.goal.len());
    for goal in declared.goal {
        out.push(sides.stands(ctx, goal)?);
    }
    let margins: Vec<f64> = out.iter().map(|stands| stands.goal.margin).collect();
    let tested: Vec<(&Tested, f64)> =
        out.iter().zip(margins).filter_map(|(stands, margin)| Some((stands.tested.as_ref()?, margin))).collect();
    let mut judged = goal::judge(&tested).into_iter();
    let found: Vec<Judged> = out
        .iter()
        .map(|stands| if stands.tested.is_some() { judged.next().unwrap_or_else(|| untested(stands)) } else { untested(stands) })
        .collect();
    out.iter_mut().zip(found).for_each(|(stands, judged)| stands.judged = judged);
    Ok(out)
}

fn untested(stands: &Stands) -> Judged {
    let (standing, reason) = match (stands.apart, stands.evaluations + stands.untried) {
        (0, 0) => (Standing::NoData, "no evaluation matches".to_owned()),
        (0, _) => (Standing::NoData, "no case was counted on both sides".to_owned()),
        (apart, _) => (Standing::NotComparable, format!("{apart} evaluations were measured in two ways")),
    };
    Judged { standing, adjusted_p: None, reason: Some(reason) }
}

/// The evaluations that the goal is over.
pub fn evaluations_of<'a>(goal: &'a Goal, all: &'a [String]) -> impl Iterator<Item = &'a String> {
    all.iter().filter(|id| goal.evaluations.is_empty() || goal.evaluations.iter().any(|pattern| matches(pattern, id)))
}

fn key(evaluation: &str, arm: &str) -> CellKey {
    CellKey { evaluation: evaluation.to_owned(), case: None, arm: arm.to_owned() }
}

/// Things by evaluation, then arm: looked up by what is borrowed.
type ByArm<T> = HashMap<String, HashMap<String, T>>;

fn of_arm<'a, T>(all: &'a ByArm<T>, evaluation: &str, arm: &str) -> Option<&'a T> {
    all.get(evaluation)?.get(arm)
}

/// What all goals are tested on.
struct Sides {
    evaluations: Vec<String>,
    /// The newest counted cell of each evaluation and arm.
    newest: ByArm<Cell>,
    runs: HashMap<String, RunParts>,
}

/// What a run says, read once.
struct RunParts {
    infos: HashMap<String, EvaluationInfo>,
    arms: Vec<RunArm>,
    groups: Groups,
    /// By metric, as goals ask for it: scores of an evaluation and arm, by case.
    scores: HashMap<String, ByArm<Vec<CaseScore>>>,
}

impl RunParts {
    fn read(store: &dyn Store, run: &str) -> Result<Self, ToolError> {
        Ok(Self {
            infos: store.evaluations(run)?.into_iter().map(|evaluation| (evaluation.info.id.clone(), evaluation.info)).collect(),
            arms: store.arms(&[run.to_owned()])?.remove(run).unwrap_or_default(),
            groups: store.groups(run)?,
            scores: HashMap::new(),
        })
    }
}

/// The scores of one run in one metric.
fn scores(store: &dyn Store, run: &str, metric: &str) -> Result<ByArm<Vec<CaseScore>>, ToolError> {
    let mut out = ByArm::<Vec<CaseScore>>::new();
    let mut add = |evaluation: String, arm: String, score| out.entry(evaluation).or_default().entry(arm).or_default().push(score);
    if metric == PASS {
        for cell in store.cells(&CellQuery { runs: vec![run.to_owned()], grain: Grain::Case, ..CellQuery::default() })? {
            let (counts, CellKey { evaluation, case, arm }) = (cell.counts, cell.key);
            let mean = counts.rate().map_or(0.0, Rate::value);
            add(evaluation, arm, CaseScore { case: case.unwrap_or_default(), mean, n: counts.counted().into(), counts: Some(counts) });
        }
        return Ok(out);
    }
    for score in store.scores(run, None, Some(metric))?.into_iter().filter(|score| score.n > 0) {
        let found = CaseScore { case: score.case, mean: score.sum / score.n as f64, n: score.n, counts: None };
        add(score.evaluation, score.arm, found);
    }
    Ok(out)
}

impl Sides {
    fn read(ctx: &Ctx, declared: &Declared) -> Result<Self, ToolError> {
        let (evaluations, _) = ctx.store.names(Named::Evaluations, "", usize::MAX)?;
        let keys: BTreeSet<CellKey> = declared
            .goal
            .iter()
            .flat_map(|goal| evaluations_of(goal, &evaluations).flat_map(|id| [key(id, &goal.arm), key(id, &goal.versus)]))
            .collect();
        let keys: Vec<CellKey> = keys.into_iter().collect();
        let points = ctx.store.points(&PointQuery {
            evaluation_contains: None,
            keys: Some(&keys),
            grain: Grain::Evaluation,
            counted: true,
            statuses: &[RunStatus::Completed],
            pick: Pick::Newest,
        })?;
        let mut newest = ByArm::new();
        for point in points {
            let CellKey { evaluation, arm, .. } = point.cell.key.clone();
            newest.entry(evaluation).or_insert_with(HashMap::new).insert(arm, point.cell);
        }
        Ok(Self { evaluations, newest, runs: HashMap::new() })
    }

    /// The newest cells of both arms.
    fn both(&self, goal: &Goal, evaluation: &str) -> Option<(&Cell, &Cell)> {
        of_arm(&self.newest, evaluation, &goal.arm).zip(of_arm(&self.newest, evaluation, &goal.versus))
    }

    /// Reads what the goal's runs say of its metric, where no goal before it asked.
    fn prepare(&mut self, store: &dyn Store, goal: &Goal) -> Result<(), ToolError> {
        let pairs = evaluations_of(goal, &self.evaluations).filter_map(|evaluation| self.both(goal, evaluation));
        let runs: BTreeSet<String> = pairs.flat_map(|(head, base)| [&head.run_id, &base.run_id]).cloned().collect();
        for run in runs {
            if !self.runs.contains_key(&run) {
                self.runs.insert(run.clone(), RunParts::read(store, &run)?);
            }
            if let Some(parts) = self.runs.get_mut(&run).filter(|parts| !parts.scores.contains_key(&goal.metric)) {
                parts.scores.insert(goal.metric.clone(), scores(store, &run, &goal.metric)?);
            }
        }
        Ok(())
    }

    fn stands(&mut self, ctx: &Ctx, goal: Goal) -> Result<Stands, ToolError> {
        let store = &*ctx.store;
        self.prepare(store, &goal)?;
        let (mut untried, mut apart, mut compared) = (0, 0, 0);
        let mut cases = Cases::default();
        for evaluation in evaluations_of(&goal, &self.evaluations) {
            match self.both(&goal, evaluation) {
                None => untried += 1,
                Some((head, base)) if self.measured_apart(head, base) => apart += 1,
                Some((head, base)) => {
                    compared += 1;
                    self.pair(&goal.metric, head, base, &mut cases);
                }
            }
        }
        let recall = |wanted: Wanted<'_>, work_out: &dyn Fn() -> f64| recalled(store, wanted, work_out);
        let recall: &Recall<'_> = &recall;
        let tested = goal::test(&cases.pairs, &cases.shared, goal.margin, recall);
        let judged = Judged { standing: Standing::NoData, adjusted_p: None, reason: None };
        Ok(Stands { goal, evaluations: compared, untried, apart, tested, judged })
    }

    fn side<'a>(&'a self, cell: &'a Cell) -> Option<Side<'a>> {
        let run = self.runs.get(&cell.run_id)?;
        let factors = run.arms.iter().find(|arm| arm.info.name == cell.key.arm).map(|arm| &arm.info.factors);
        Some(Side { info: run.infos.get(&cell.key.evaluation)?, factors, cell })
    }

    fn measured_apart(&self, head: &Cell, base: &Cell) -> bool {
        let sides = self.side(head).zip(self.side(base)).filter(|_| head.run_id != base.run_id);
        sides.is_some_and(|(head, base)| !comparable::changed(head, base).is_empty())
    }

    /// Adds the cases of an evaluation that both sides scored.
    fn pair(&self, metric: &str, head: &Cell, base: &Cell, cases: &mut Cases) {
        let side = |cell: &Cell| {
            let scores = self.runs.get(&cell.run_id).and_then(|run| run.scores.get(metric));
            scores.and_then(|scores| of_arm(scores, &cell.key.evaluation, &cell.key.arm)).map_or(&[][..], Vec::as_slice)
        };
        let groups = |cell: &Cell| self.runs.get(&cell.run_id).and_then(|run| run.groups.get(&cell.key.evaluation));
        let (of_head, of_base) = (groups(head), groups(base));
        let group = |case: &str| of_head.and_then(|groups| groups.get(case)).or_else(|| of_base.and_then(|groups| groups.get(case)));
        cases.begin();
        // Both are by case.
        let mut others = side(base).iter().peekable();
        for score in side(head) {
            while others.next_if(|other| other.case < score.case).is_some() {}
            if let Some(other) = others.next_if(|other| other.case == score.case) {
                cases.add(score, other, group(&score.case));
            }
        }
    }
}

/// What one side scored in a case.
struct CaseScore {
    case: String,
    mean: f64,
    n: u64,
    counts: Option<Counts>,
}

/// The pairs of a goal.
#[derive(Default)]
struct Cases {
    pairs: Vec<PairedCase>,
    shared: Vec<(Counts, Counts)>,
    /// The groups of the evaluation at hand: a group is of one evaluation.
    groups: BTreeMap<String, u64>,
    next: u64,
}

impl Cases {
    fn begin(&mut self) {
        self.groups.clear();
    }

    fn add(&mut self, head: &CaseScore, base: &CaseScore, group: Option<&String>) {
        let group = group.map(|name| {
            let next = &mut self.next;
            *self.groups.entry(name.clone()).or_insert_with(|| {
                *next += 1;
                *next
            })
        });
        self.shared.extend(head.counts.zip(base.counts));
        self.pairs.push(PairedCase { head: head.mean, base: base.mean, head_attempts: head.n, base_attempts: base.n, group });
    }
}

/// The p that is kept of the same question, else worked out now and kept.
fn recalled(store: &dyn Store, wanted: Wanted<'_>, work_out: &dyn Fn() -> f64) -> f64 {
    let key = p_key(&wanted);
    if let Some(p) = store.known_p(&key) {
        return p;
    }
    let p = work_out();
    store.keep_p(&key, p);
    p
}

/// SHA-256 of all that a p depends on: test, engine, seed, and the differences to the last bit.
fn p_key(wanted: &Wanted<'_>) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{}\n{}\n{}\n", wanted.way, sign_flip::ENGINE, wanted.seed));
    wanted.differences.iter().for_each(|difference| hash.update(difference.to_bits().to_le_bytes()));
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_a_p_changes_its_key() {
        let wanted = Wanted { way: "sign_flip drawn", differences: &[0.5, -0.25], seed: 1 };
        let key = p_key(&wanted);
        assert!(crate::domain::hex::is_sha256(&key));
        assert_eq!(key, p_key(&wanted));
        for other in [
            Wanted { way: "sign_flip grid", ..wanted },
            Wanted { seed: 2, ..wanted },
            Wanted { differences: &[0.5, 0.25], ..wanted },
            Wanted { differences: &[0.5], ..wanted },
            Wanted { differences: &[0.5, -0.25 + f64::EPSILON], ..wanted },
        ] {
            assert_ne!(key, p_key(&other), "{other:?}");
        }
    }
}
