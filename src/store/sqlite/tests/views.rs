//! The 18 views over a history that is small enough to be worked out by hand, and the helper tables after any sequence of changes.
//!
//! Promises: every cell is asserted; the arithmetic stands beside it. Interval ends were computed apart from this program, in Python, from the
//! formulas that `stats` cites.
//! Does not: test the statistics themselves (`stats` does, against published values).

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Sqlite, open};
use crate::{
    domain::{
        attempt::{Attempt, Check},
        cell::{CellKey, Grain},
        extras::{Answer, ContextUse, Extras, Pair, Pick, SkillFile, SkillRead},
        log::{ArmInfo, EvaluationInfo, Git, RunStatus},
        outcome::Outcome::{self, Fail, InfraError, Pass},
    },
    store::{
        Change, Kind, Query, RunPoint, RunQuery, Store,
        contract::{
            Log, attempt, evaluation, log,
            random::{Step, step},
        },
        query::Rows,
    },
};

/// The same attempt in each run but for what a test says: 3 tokens in, a run's seconds as duration, checks `match` and, in e1, `tone`.
fn tried(evaluation: &str, arm: &str, case: &str, outcome: Outcome, second: u64) -> Attempt {
    let mut made = Attempt { evaluation: evaluation.into(), arm: arm.into(), ..attempt(case, outcome) };
    made.duration_ms = Some(second * 1000);
    made.usage.output_tokens = (second == 1).then_some(10);
    if evaluation == "e1" && outcome != InfraError {
        let tone = Check { name: "tone".into(), passed: Some(!(second == 1 && arm == "base" && case == "2")), ..made.checks[0].clone() };
        made.checks.push(tone);
    }
    made
}

fn stack(name: &str, role: &str, effort: &str) -> ArmInfo {
    let factors = [("harness", "h"), ("model", "m"), ("effort", effort)].map(|(factor, level)| (factor.to_owned(), level.to_owned()));
    ArmInfo { name: name.into(), role: Some(role.into()), factors: factors.into() }
}

/// A run of one log at a second: e1 by case, both arms; then what else is in it.
fn run(second: i64, base: &[(&str, Outcome)], new: &[(&str, Outcome)], rest: Vec<Attempt>) -> Log {
    let mut log = log(&second.to_string(), second);
    let family = |id: &str| EvaluationInfo { family: Some("f".into()), ..evaluation(id) };
    log.header.evaluations = vec![family("e1"), family("e2"), EvaluationInfo { dataset_cases: Some(1), ..evaluation("g") }];
    log.header.arms = vec![stack("base", "control", "low"), stack("new", "variant", "high")];
    let at = second.unsigned_abs();
    let own = base.iter().map(|(case, outcome)| tried("e1", "base", case, *outcome, at));
    log.with(own.chain(new.iter().map(|(case, outcome)| tried("e1", "new", case, *outcome, at))).chain(rest))
}

/// | run | e1 base 1, 2, 3 | e1 new 1, 2, 3 | e2 base 1, 2 | e2 new 1, 2 | g base |
/// | R1 | P F, F, F | P, P, F | F, F | P, F | P |
/// | R2 | P, F, F | P, P, F | | | P |
/// | R3 | P, P, infra | P, P, P | | | F |
/// R4 is scratch and R5 failed: g base P, and F.
fn history() -> Vec<Log> {
    let g = |outcome, at| tried("g", "base", "", outcome, at);
    let e2 = [("base", "1", Fail), ("base", "2", Fail), ("new", "1", Pass), ("new", "2", Fail)];
    let first = e2.map(|(arm, case, outcome)| tried("e2", arm, case, outcome, 1)).into_iter().chain([g(Pass, 1)]).collect();
    let mut one = run(1, &[("1", Pass), ("1", Fail), ("2", Fail), ("3", Fail)], &[("1", Pass), ("2", Pass), ("3", Fail)], first);
    extras(&mut one);
    let two = run(2, &[("1", Pass), ("2", Fail), ("3", Fail)], &[("1", Pass), ("2", Pass), ("3", Fail)], vec![g(Pass, 2)]);
    let mut three = run(3, &[("1", Pass), ("2", Pass), ("3", InfraError)], &[("1", Pass), ("2", Pass), ("3", Pass)], vec![g(Fail, 3)]);
    three.header.git = Some(Git { sha: Some("abc1234".into()), branch: None, dirty: None });
    let only = |at, outcome| {
        let mut log = log(&format!("{at}"), at).with([tried("g", "base", "", outcome, at.unsigned_abs())]);
        log.header.evaluations = vec![EvaluationInfo { dataset_cases: Some(1), ..evaluation("g") }];
        log.header.arms = vec![stack("base", "control", "low")];
        log
    };
    let (mut four, mut five) = (only(4, Pass), only(5, Fail));
    four.kind = Kind::Scratch;
    five.header.status = RunStatus::Failed;
    vec![one, two, three, four, five]
}

/// What run records bring, in R1: the first attempt is e1, base, case 1; the fifth e1, new, case 1.
fn extras(log: &mut Log) {
    let text = |text: &str| text.to_owned();
    let answer = |passed: Option<bool>, judge: Option<&str>| Answer {
        question: text("polite?"),
        answer: Some(text("yes")),
        passed,
        judge: judge.map(text),
    };
    for (place, label) in [(0, "one"), (4, "two")] {
        if let Some(Ok(attempt)) = log.attempts.get_mut(place) {
            attempt.label = Some(label.into());
            attempt.answers = if place == 0 { vec![answer(Some(true), Some("j"))] } else { vec![answer(None, None)] };
            attempt.context = Some(ContextUse { tokens_peak: 50, window_tokens: (place == 0).then_some(200) });
            attempt.skill_reads =
                vec![SkillRead { skill: text("sql"), file: text("SKILL.md"), reads: 2, first_turn: (place == 0).then_some(1) }];
        }
    }
    let pair = |swapped| Pair {
        evaluation: text("e1"),
        question: text("clearer?"),
        a: text("one"),
        b: text("two"),
        picked: Pick::B,
        picked_swapped: swapped,
        judge: None,
    };
    log.extras = Extras {
        skill_files: vec![SkillFile { skill: text("sql"), file: text("SKILL.md"), bytes: 7, sha256: text("0f") }],
        pairs: vec![pair(None), pair(Some(Pick::Tie)), pair(Some(Pick::B))],
        ..Extras::default()
    };
}

struct Held {
    _dir: tempfile::TempDir,
    store: Sqlite,
}

fn held(logs: &[Log]) -> Held {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("h.db")).unwrap();
    logs.iter().for_each(|log| drop(log.put(&store).unwrap()));
    Held { _dir: dir, store }
}

fn ask(store: &Sqlite, sql: &str) -> Rows {
    store.query(&Query { sql: sql.to_owned(), values: vec![], limit: 1000 }).unwrap_or_else(|fault| panic!("{sql}: {fault}"))
}

/// Equal, numbers within rounding.
fn same(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Number(got), Value::Number(want)) => (got.as_f64().unwrap() - want.as_f64().unwrap()).abs() < 1e-9,
        (Value::Array(got), Value::Array(want)) => got.len() == want.len() && got.iter().zip(want).all(|(got, want)| same(got, want)),
        (got, want) => got == want,
    }
}

/// The view's columns and rows.
fn assert_view(store: &Sqlite, view: &str, columns: &str, want: Value) {
    let rows = ask(store, &format!("SELECT * FROM {view} ORDER BY 1, 2, 3, 4, 5"));
    assert_eq!(rows.columns.join(" "), columns, "{view}");
    let got = json!(rows.rows);
    assert!(same(&got, &want), "{view}:\n{got:#}\nwanted:\n{want:#}");
}

#[test]
fn arms_against_each_other() {
    let Held { store, _dir } = held(&history());
    // e1: base passed 4 of 9: case 1 3/4, case 2 1/3, case 3 0/2. new 7 of 9: 3/3, 3/3, 1/3. Differences new - base: 1/4, 2/3, 1/3, mean 5/12.
    // All three of one sign: 2 of 8 assignments reach the sum, p 1/4. Spread sqrt(0.0486111), t(0.975, 2) = 4.30265.
    // e2: one attempt each; case 1 better, case 2 the same: McNemar p 1, Agresti and Min over 2 + 2 cases: 1/4 +- 1.96 sqrt(0.4375 / 4).
    let (five_12, low, high) = (5.0 / 12.0, -0.1310342173313, 0.9643675506646334);
    let (am_low, am_high) = (-0.39819716021702845, 0.8981971602170284);
    let lift = json!([
        ["e1", "new", "base", 7.0 / 9.0, 4.0 / 9.0, five_12, low, high, 9, 9, 3],
        ["e2", "new", "base", 0.5, 0.0, 0.5, am_low, am_high, 2, 2, 2],
    ]);
    let columns = "evaluation treatment_arm control_arm treatment_rate control_rate lift ci_low ci_high n_treatment n_control n_pairs";
    assert_view(&store, "lift", columns, lift);
    let contrasts = json!([
        ["e1", "base", "new", 4.0 / 9.0, 7.0 / 9.0, -five_12, -high, -low, 0.25, 3, 9, 9],
        ["e2", "base", "new", 0.0, 0.5, -0.5, -am_high, -am_low, 1.0, 2, 2, 2],
    ]);
    assert_view(&store, "contrasts", "evaluation arm_a arm_b rate_a rate_b difference ci_low ci_high p_value n_pairs n_a n_b", contrasts);
    // The mean of 5/12 and 1/2 is 11/24; each lies 1/24 from it: sqrt(2/1 * 2/24^2) / 2 = 1/24; t(0.975, 1) = 12.7062.
    let (lift, low, high) = (11.0 / 24.0, -0.07109186400727913, 0.9877585306739458);
    let family = json!([["f", "new", "base", lift, 1.0 / 24.0, low, high, 2]]);
    assert_view(&store, "family_lift", "family treatment_arm control_arm lift se ci_low ci_high n_evaluations", family);
    // effort=low: e1 4/9, e2 0/2 and g 2/3 of R1 to R3; high: 7/9 and 1/2. g has one level alone and no say in the effect.
    let effects = json!([
        ["effort", "high", 11, 8.0 / 11.0, lift, low, high, 2],
        ["effort", "low", 14, 6.0 / 14.0, -lift, -high, -low, 2],
        ["harness", "h", 25, 14.0 / 25.0, null, null, null, 0],
        ["model", "m", 25, 14.0 / 25.0, null, null, null, 0],
    ]);
    assert_view(&store, "factor_effects", "factor level n rate effect ci_low ci_high n_evaluations", effects);
}

#[test]
fn effort_by_stack() {
    let Held { store, _dir } = held(&history());
    // e1 high: 3/3, 3/3, 1/3, low: 3/4, 1/3, 0/2: of three cases no more than three observations count, in Wilson's equation, whose roots scipy
    // found. Three attempts of each run: of 1, 1, 1, 2, 2, 2, 3, 3, 3 s the fifth and the ninth. low: four of R1, three of R2, two of R3 that were counted. e2: every case once: Wilson. g: one case: Wilson.
    // Tokens out are told in R1 alone; turns by nobody.
    let effort = json!([
        ["e1", "h", "m", "high", 9, 7.0 / 9.0, 0.27341587131445255, 0.9701968888216335, 0.125, 3.0, 10.0, null, 2000, 3000],
        ["e1", "h", "m", "low", 9, 4.0 / 9.0, 0.10198871999228687, 0.8492887279804959, 0.125, 3.0, 10.0, null, 2000, 3000],
        ["e2", "h", "m", "high", 2, 0.5, 0.09453120573423074, 0.9054687942657693, 0.125, 3.0, 10.0, null, 1000, 1000],
        ["e2", "h", "m", "low", 2, 0.0, 0.0, 0.6576197724933469, 0.125, 3.0, 10.0, null, 1000, 1000],
        ["g", "h", "m", "low", 3, 2.0 / 3.0, 0.2076596008020477, 0.9385080552796037, 0.125, 3.0, 10.0, null, 2000, 3000],
    ]);
    let columns = "evaluation harness model effort n rate ci_low ci_high cost_usd_mean tokens_in_mean tokens_out_mean turns_mean duration_ms_p50 duration_ms_p90";
    assert_view(&store, "effort", columns, effort);
}

#[test]
fn checks_and_their_streaks() {
    let Held { store, _dir } = held(&history());
    // match in e1: 11 of 18: case 1 6/7, case 2 4/6, case 3 1/5. tone fails once: 7/7, 5/6, 5/5. e2: 1/2 and 0/2. Three
    // observations count of three cases and two of two; Wilson's roots by scipy.
    let rates = json!([
        ["e1", "match", 18, 11, 11.0 / 18.0, 0.17813581707452997, 0.9193092869799044],
        ["e1", "tone", 18, 17, 17.0 / 18.0, 0.392006433560163, 0.9977739826575744],
        ["e2", "match", 4, 1, 0.25, 0.026677342008984622, 0.8021325442376888],
        ["g", "match", 3, 2, 2.0 / 3.0, 0.2076596008020477, 0.9385080552796037],
    ]);
    assert_view(&store, "check_rates", "evaluation check_name n passed rate ci_low ci_high", rates);
    // Of 18 pairs 11 passed both, 6 tone alone, 1 neither: phi = 11 * 1 / sqrt(11 * 7 * 17 * 1).
    let phi = 11.0 / 1309.0_f64.sqrt();
    let discrimination = json!([["e1", "match", 18, 11.0 / 18.0, phi], ["e1", "tone", 18, 17.0 / 18.0, phi]]);
    assert_view(&store, "check_discrimination", "evaluation check_name n rate item_rest_correlation", discrimination);
    // R3's infra attempt is not counted, so base passes match there; tone failed in R1 alone. g failed in R3; R4 and R5 do not count.
    let streaks = json!([
        ["e1", "base", "match", "passing", 1, "R3"],
        ["e1", "base", "tone", "passing", 2, "R2"],
        ["e1", "new", "match", "passing", 1, "R3"],
        ["e1", "new", "tone", "passing", 3, "R1"],
        ["e2", "base", "match", "failing", 1, "R1"],
        ["e2", "new", "match", "failing", 1, "R1"],
        ["g", "base", "match", "failing", 1, "R3"],
    ]);
    assert_view(&store, "check_streaks", "evaluation arm check_name state streak since_run", streaks);
}

#[test]
fn series_over_time() {
    let Held { store, _dir } = held(&history());
    let at = |second: u32| format!("1970-01-01T00:00:0{second}Z");
    // Recorded runs, whatever their status: R5 is here and R4 is not. The moving rate is the mean of the rates so far, of five at most.
    let third = 1.0 / 3.0;
    let trend = json!([
        ["e1", "base", "R1", at(1), 0.25, 4, 0.25, 0, 0, 0],
        ["e1", "base", "R2", at(2), third, 3, (0.25 + third) / 2.0, 0, 0, 0],
        ["e1", "base", "R3", at(3), 1.0, 2, (0.25 + third + 1.0) / 3.0, 1, 0, 0],
        ["e1", "new", "R1", at(1), 2.0 * third, 3, 2.0 * third, 0, 0, 0],
        ["e1", "new", "R2", at(2), 2.0 * third, 3, 2.0 * third, 0, 0, 0],
        ["e1", "new", "R3", at(3), 1.0, 3, 7.0 / 9.0, 0, 0, 0],
        ["e2", "base", "R1", at(1), 0.0, 2, 0.0, 0, 0, 0],
        ["e2", "new", "R1", at(1), 0.5, 2, 0.5, 0, 0, 0],
        ["g", "base", "R1", at(1), 1.0, 1, 1.0, 0, 0, 0],
        ["g", "base", "R2", at(2), 1.0, 1, 1.0, 0, 0, 0],
        ["g", "base", "R3", at(3), 0.0, 1, 2.0 * third, 0, 0, 0],
        ["g", "base", "R5", at(5), 0.0, 1, 0.5, 0, 0, 0],
    ]);
    assert_view(&store, "eval_trend", "evaluation arm run_id created_at rate n moving_rate infra unscored missing", trend);
    let flips = json!([
        ["e1", "base", "R3", "R2", "mixed", "pass", "abc1234", at(3)],
        ["e1", "new", "R3", "R2", "mixed", "pass", "abc1234", at(3)],
        ["g", "base", "R3", "R2", "pass", "fail", "abc1234", at(3)],
    ]);
    assert_view(&store, "verdict_flips", "evaluation arm run_id previous_run verdict_from verdict_to git_sha created_at", flips);
    // Three runs: the newer half is R3. base: 2/2 against 2/7; case 1 1 - 2/3, case 2 1 - 0: 2/3, p 2 of 4. new: 3/3 against 4/6; cases 0, 0, 1:
    // 1/3, one difference alone is p 1. g: 0/1 against 2/2.
    let drift = json!([
        ["e1", "base", 3, 2.0 / 7.0, 1.0, 2.0 / 3.0, 0.5, 7, 2],
        ["e1", "new", 3, 4.0 / 6.0, 1.0, third, 1.0, 6, 3],
        ["g", "base", 3, 1.0, 0.0, -1.0, 1.0, 2, 1],
    ]);
    assert_view(&store, "drift", "evaluation arm runs earlier_rate recent_rate change p_value n_earlier n_recent", drift);
    // Only case 1 of base in R1 was counted twice: one pass of two disagrees with the other for certain.
    let columns = "run_id evaluation arm passed counted rate flip_rate n infra unscored missing";
    assert_view(&store, "flaky_cells", columns, json!([["R1", "e1", "base", 1, 4, 0.25, 1.0, 4, 0, 0, 0]]));
}

#[test]
fn failures_with_their_history() {
    let Held { store, _dir } = held(&history());
    let said = |case: &str| format!("expected 4 got {case}");
    let row = |run: &str, evaluation: &str, case: &str, arm: &str, n: u32, since: &str| {
        let slash = if case.is_empty() { String::new() } else { format!("/{case}") };
        let key = if run == "R5" { format!("{evaluation}{slash}#{n}") } else { format!("{evaluation}{slash}@{arm}#{n}") };
        json!([run, key, evaluation, case, arm, "fail", "match", said(case), since, 0])
    };
    let mut infra = row("R3", "e1", "3", "base", 1, "R1");
    (infra[5], infra[6], infra[7]) = (json!("infra_error"), json!(null), json!("connection 17 reset"));
    let mut new = row("R3", "g", "", "base", 1, "R3");
    new[9] = json!(1);
    // tone is no first failed check of case 2 of base in R1: match failed before it.
    let failing = json!([
        row("R1", "e1", "1", "base", 2, "R1"),
        row("R1", "e1", "2", "base", 1, "R1"),
        row("R1", "e1", "3", "base", 1, "R1"),
        row("R1", "e1", "3", "new", 1, "R1"),
        row("R1", "e2", "1", "base", 1, "R1"),
        row("R1", "e2", "2", "base", 1, "R1"),
        row("R1", "e2", "2", "new", 1, "R1"),
        row("R2", "e1", "2", "base", 1, "R1"),
        row("R2", "e1", "3", "base", 1, "R1"),
        row("R2", "e1", "3", "new", 1, "R1"),
        infra,
        new,
        row("R5", "g", "", "base", 1, "R3"),
    ]);
    let columns = "run_id attempt evaluation case_id arm outcome first_failed_check reason failing_since is_new";
    assert_view(&store, "failing_attempts", columns, failing);
}

#[test]
fn what_records_bring() {
    let Held { store, _dir } = held(&history());
    let (one, two) = ("e1/1@base#1", "e1/1@new#1");
    let answers = json!([["R1", one, "polite?", "yes", 1, "j"], ["R1", two, "polite?", "yes", null, null]]);
    assert_view(&store, "attempt_answers", "run_id attempt question answer passed judge", answers);
    // The arms differ in their effort alone.
    let pair = |consistent: Value| json!(["R1", "e1", "clearer?", "effort", one, two, "b", consistent, null]);
    let rows = ask(&store, "SELECT * FROM question_pairs ORDER BY consistent");
    assert_eq!(rows.columns.join(" "), "run_id evaluation question factor attempt_a attempt_b picked consistent judge");
    assert_eq!(json!(rows.rows), json!([pair(json!(null)), pair(json!(0)), pair(json!(1))]));
    let reads = json!([["R1", one, "sql", "SKILL.md", 2, 1], ["R1", two, "sql", "SKILL.md", 2, null]]);
    assert_view(&store, "skill_reads", "run_id attempt skill file reads first_turn", reads);
    let context = json!([["R1", one, 50, 200, 0.25], ["R1", two, 50, null, null]]);
    assert_view(&store, "context_use", "run_id attempt tokens_peak window_tokens share", context);
    assert_view(&store, "skill_files", "run_id skill file bytes sha256", json!([["R1", "sql", "SKILL.md", 7, "0f"]]));
}

#[test]
fn views_follow_changes_and_a_refresh_changes_nothing_twice() {
    let Held { store, _dir } = held(&history());
    let before = store.generation().unwrap();
    assert_eq!(ask(&store, "SELECT streak FROM check_streaks WHERE evaluation = 'g'").rows, [vec![json!(1)]]);
    assert_eq!(store.generation().unwrap(), before + 1, "a query over stale tables works them out");
    assert!(!store.apply(Change::Refresh).unwrap().changed);
    // R5 ends well after all: it counts, and g fails for the second time.
    let mut five = history().remove(4).file("5.json", "again");
    five.header.status = RunStatus::Completed;
    five.put(&store).unwrap();
    let rows = ask(&store, "SELECT streak, since_run FROM check_streaks WHERE evaluation = 'g'").rows;
    assert_eq!(rows, [vec![json!(2), json!("R3")]]);
    store.apply(Change::Vanished { paths: (1..6).map(|number| format!("{number}.json")).collect() }).unwrap();
    for view in ["lift", "family_lift", "effort", "contrasts", "factor_effects", "flaky_cells", "drift", "check_rates", "check_streaks"] {
        assert_eq!(ask(&store, &format!("SELECT * FROM {view}")).rows.len(), 0, "{view}");
    }
}

#[test]
fn what_was_measured_in_another_way_is_not_added_up() {
    let digested = |mut log: Log, digest: &str| {
        log.header.evaluations.iter_mut().for_each(|info| info.dataset_digest = Some(digest.into()));
        log
    };
    let mut logs = history().into_iter();
    let (one, two, three) = (logs.next().unwrap(), logs.next().unwrap(), logs.next().unwrap());
    // R3 has another dataset than R1 and R2: it alone is added up. e2 ran in R1 alone, and is not touched by that.
    let Held { store, _dir } = held(&[digested(one, "old"), digested(two, "old"), digested(three, "new")]);
    let rows = |sql: &str| json!(ask(&store, sql).rows);
    assert_eq!(rows("SELECT evaluation, runs, runs_apart FROM evaluations"), json!([["e1", 3, 2], ["e2", 3, 0], ["g", 3, 2]]));
    assert_eq!(
        rows("SELECT evaluation, effort, n, rate FROM effort"),
        json!([["e1", "high", 3, 1.0], ["e1", "low", 2, 1.0], ["e2", "high", 2, 0.5], ["e2", "low", 2, 0.0], ["g", "low", 1, 0.0]])
    );
    assert_eq!(rows("SELECT evaluation, n_treatment, n_control, n_pairs FROM lift"), json!([["e1", 3, 2, 2], ["e2", 2, 2, 2]]));
    assert_eq!(rows("SELECT * FROM drift"), json!([]));
    assert_eq!(rows("SELECT streak, since_run FROM check_streaks WHERE evaluation = 'g'"), json!([[1, "R3"]]));
    // Once R3 is gone R2 is the newest, and R1 was measured as it was.
    store.apply(Change::Vanished { paths: vec!["3.json".into()] }).unwrap();
    assert_eq!(rows("SELECT evaluation, runs_apart FROM evaluations"), json!([["e1", 0], ["e2", 0], ["g", 0]]));
    assert_eq!(rows("SELECT effort, n FROM effort WHERE evaluation = 'e1'"), json!([["high", 6], ["low", 7]]));
    assert_eq!(rows("SELECT streak, since_run FROM check_streaks WHERE evaluation = 'g'"), json!([[2, "R1"]]));
}

/// A streak that newer runs lengthened held the run where it stood before, and counted it twice.
#[test]
fn a_run_that_moves_in_time_is_counted_once() {
    let failed = |at: i64| log(&at.to_string(), at).with([tried("g", "base", "", Fail, 1)]);
    let Held { store, _dir } = held(&[failed(1), failed(2)]);
    let streak = |store: &Sqlite| ask(store, "SELECT streak, since_run FROM check_streaks").rows;
    assert_eq!(streak(&store), [vec![json!(2), json!("R1")]]);
    let mut moved = failed(1).file("1.json", "again");
    moved.header.created_at = failed(3).header.created_at;
    moved.put(&store).unwrap();
    assert_eq!(streak(&store), [vec![json!(2), json!("R2")]]);
}

/// All that is worked out, as text.
fn worked_out(connection: &Connection) -> String {
    let mut lines = Vec::new();
    for table in [
        "parts_m",
        "sums_m",
        "contrasts_m",
        "arm_roles_m",
        "family_lift_m",
        "effort_m",
        "levels_m",
        "factor_effects_m",
        "flaky_m",
        "drift_m",
        "check_rates_m",
        "check_streaks_m",
    ] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<String> = (0..width).map(|column| format!("{:?}", row.get_ref(column).unwrap())).collect();
            lines.push(format!("{table} {}", values.join(" ")));
        }
    }
    lines.sort();
    lines.join("\n")
}

/// Forgets all that is worked out, and marks all that there is.
fn forget(connection: &Connection) {
    for table in ["parts_m", "sums_m", "contrasts_m", "arm_roles_m", "family_lift_m", "effort_m", "levels_m", "factor_effects_m"] {
        connection.execute(&format!("DELETE FROM {table}"), []).unwrap();
    }
    for table in ["flaky_m", "drift_m", "check_rates_m", "check_streaks_m"] {
        connection.execute(&format!("DELETE FROM {table}"), []).unwrap();
    }
    let all = "INSERT OR IGNORE INTO stale_m SELECT eval_no, run_no FROM run_evaluations_m UNION SELECT 0, run_no FROM runs_m";
    connection.execute(all, []).unwrap();
}

/// What the views say of failures is what the store's own streaks say.
fn assert_failures(store: &Sqlite) {
    let runs = store.runs(&RunQuery { limit: 99, ..RunQuery::default() }).unwrap().0;
    let sql = "SELECT run_id, evaluation, case_id, arm, failing_since, is_new FROM failing_attempts";
    for row in ask(store, sql).rows {
        let text = |place: usize| row[place].as_str().unwrap().to_owned();
        let run = runs.iter().find(|run| run.run_id == text(0)).unwrap();
        let point = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
        let key = CellKey { evaluation: text(1), case: Some(text(2)), arm: text(3) };
        let streak = store.streaks(&point, Grain::Case, std::slice::from_ref(&key)).unwrap().remove(0);
        let previous = streak.previous.map(|(verdict, _)| verdict.word());
        let is_new = previous == Some("pass");
        let known = previous.is_some() && !is_new;
        let since = streak.failing_since.filter(|_| known).map_or(text(0), |run| run.run_id);
        assert_eq!((text(4), row[5].as_i64()), (since, Some(i64::from(is_new))), "{key:?} in {}", run.run_id);
    }
}

/// A change, of logs that mostly completed, of attempts that mostly count and have a check more: else there is little to work out.
fn counted() -> impl Strategy<Value = Step> {
    (step(), 0..6_u8).prop_map(|(mut step, rare)| {
        if let Step::Put(log) = &mut step {
            if rare > 0 {
                log.header.status = RunStatus::Completed;
            }
            for (place, attempt) in log.attempts.iter_mut().flatten().enumerate().filter(|(place, _)| (place + 1) % 4 > 0) {
                let passed = place % 3 > 0;
                attempt.outcome = if passed { Pass } else { Fail };
                let checks = [("match", passed), ("tone", place % 2 > 0)];
                let first = attempt.checks[0].clone();
                attempt.checks = checks.map(|(name, passed)| Check { name: name.into(), passed: Some(passed), ..first.clone() }).into();
            }
        }
        step
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_sequence_of_changes_leaves_what_working_all_out_does(steps in prop::collection::vec((counted(), any::<bool>()), 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.db");
        let store = open(&path).unwrap();
        for (step, refreshed) in steps {
            let _ = step.apply(&store);
            if refreshed {
                store.apply(Change::Refresh).unwrap();
            }
        }
        store.apply(Change::Refresh).unwrap();
        let connection = Connection::open(&path).unwrap();
        let followed = worked_out(&connection);
        forget(&connection);
        store.apply(Change::Refresh).unwrap();
        let anew = worked_out(&connection);
        let differ = followed.lines().filter(|line| !anew.contains(line)).chain(anew.lines().filter(|line| !followed.contains(line)));
        prop_assert_eq!(&followed, &anew, "{}", differ.collect::<Vec<_>>().join("\n"));
        assert_failures(&store);
    }
}
