//! The one suite that every adapter of the port passes: SQLite, and the plain model that the rest of the tests may trust.
//!
//! Promises: each test says one thing of the port and knows no adapter.
//! Does not: test what only one adapter has (its own tests do).

mod catalog;
pub(crate) mod deeds;
mod extras;
mod forget;
mod logs;
mod named;
mod projections;
pub(crate) mod random;
pub(crate) mod workspace;

use super::*;
use crate::{
    domain::{
        attempt::Attempt,
        declared::{ArmRule, EvaluationRule},
    },
    telemetry::redaction::Redactor,
    transcript::Packer,
};
pub(crate) use catalog::{
    items_have_texts_and_groups, scores_are_of_cases, the_catalog_adds_up, words_are_found_where_they_stand, words_go_with_their_log,
};
pub(crate) use extras::*;
pub(crate) use forget::*;
pub(crate) use logs::{Log, arm, attempt, evaluation, log};
pub(crate) use named::{names_are_looked_up, short_transcripts_stand_together, transcripts_are_read_whole};
pub(crate) use projections::*;
pub(crate) use workspace::*;

/// Makes the suite's tests for the stores that `$fresh` (a `fn() -> Fresh`) gives.
macro_rules! contract {
    ($fresh:path; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            let fresh = $fresh();
            crate::store::contract::$name(&*fresh.store);
        })*
    };
    ($fresh:path) => {
        crate::store::contract::contract! { $fresh;
            an_empty_store_answers_everything a_log_becomes_a_run the_same_file_again_changes_nothing a_changed_file_replaces_what_it_held
            the_better_copy_counts copies_are_forgotten_with_their_winner a_retry_joins_its_run_and_replaces_attempts
            a_pinned_log_does_not_move an_error_in_the_middle_keeps_nothing vanished_files_leave skipped_files_are_remembered
            planned_attempts_without_a_record_are_missing declared_thresholds_judge_anew declared_arms_rename_and_merge
            runs_are_filtered_and_paged references_select_runs cells_are_read_in_order keys_are_those_of_the_cells points_pick_the_right_cell streaks_tell_the_story
            attempts_are_filtered attempts_are_found_by_name strange_ids_round_trip causes_are_grouped transcripts_are_paged short_transcripts_stand_together
            names_are_looked_up transcripts_are_read_whole
            a_retry_replaces_whatever_its_arm_is_called
            cases_are_judged_by_their_attempts_alone logs_add_up_in_any_order bases_hold_what_the_head_holds several_arms_enter_the_key run_numbers_are_never_reused a_run_says_what_its_logs_say
            what_few_formats_hold_is_kept what_few_formats_hold_goes_with_its_log a_recorded_run_replaces_its_scratch_copy
            a_record_gives_way_to_the_runs_own_logs what_is_planned_by_arm_is_missing_by_arm
            runs_of_an_evaluation_are_paged_both_ways a_page_says_what_its_runs_say pages_hold_while_runs_come_and_go the_key_stays
            figures_are_sums_of_what_is_known the_catalog_adds_up items_have_texts_and_groups scores_are_of_cases words_are_found_where_they_stand words_go_with_their_log
            groups_are_those_of_the_newest_log analyses_of_a_record_that_gave_way_stay remarks_last_as_long_as_their_file
        }
    };
}
pub(crate) use contract;

/// A store of its own, with what keeps it alive.
pub(crate) struct Fresh {
    /// The store.
    pub store: Box<dyn Store>,
    /// Its directory, where it has one; held, not read.
    pub _dir: Option<tempfile::TempDir>,
}

use Outcome::{Cancelled, Fail, InfraError, Pass, Unscored};

fn run_ids(store: &dyn Store) -> Vec<String> {
    let query = RunQuery { limit: 100, ..RunQuery::default() };
    store.runs(&query).unwrap().0.into_iter().map(|run| run.run_id).collect()
}

fn keys(store: &dyn Store, run: &str) -> Vec<String> {
    store.attempts(run, &AttemptQuery::default()).unwrap().into_iter().map(|row| row.key).collect()
}

fn cells(store: &dyn Store, runs: &[&str], grain: Grain) -> Vec<Cell> {
    store.cells(&CellQuery { runs: runs.iter().map(|run| (*run).to_owned()).collect(), grain, ..CellQuery::default() }).unwrap()
}

fn counts(passed: u32, failed: u32, infra: u32, unscored: u32, missing: u32) -> Counts {
    Counts { passed, failed, infra, unscored, missing }
}

fn key(evaluation: &str, case: Option<&str>, arm: &str) -> CellKey {
    CellKey { evaluation: evaluation.into(), case: case.map(Into::into), arm: arm.into() }
}

fn point(run: &str, at: i64) -> RunPoint {
    RunPoint { run_id: run.into(), created_at: Timestamp::from_millis(at * 1000) }
}

pub(crate) fn an_empty_store_answers_everything(store: &dyn Store) {
    assert_eq!(store.generation().unwrap(), 0);
    assert_eq!(store.files(None).unwrap(), []);
    assert_eq!(store.declared().unwrap(), Declared::default());
    assert_eq!(store.runs(&RunQuery { limit: 5, ..RunQuery::default() }).unwrap(), (vec![], 0));
    assert_eq!(store.select(&Selector::Latest(0), 1).unwrap(), []);
    assert!(store.arms(&["R".into()]).unwrap().is_empty());
    assert_eq!(store.evaluations("R").unwrap(), []);
    assert!(store.ancestors("R").unwrap().is_empty());
    assert_eq!(cells(store, &["R"], Grain::Case), []);
    assert_eq!(store.streaks(&point("R", 0), Grain::Evaluation, &[key("e", None, "m")]).unwrap(), [Streak::default()]);
    assert_eq!(store.attempts("R", &AttemptQuery::default()).unwrap(), []);
    assert_eq!(store.find_attempts("R", "e#1").unwrap(), []);
    assert_eq!(store.causes("R", None).unwrap(), []);
    assert_eq!(store.transcript("R", "e#1", 0, 9).unwrap(), None);
}

pub(crate) fn a_log_becomes_a_run(store: &dyn Store) {
    let log = log("a", 1).with([attempt("1", Pass), attempt("2", Fail), attempt("3", InfraError)]);
    let applied = log.put(store).unwrap();
    let expected = Applied { changed: true, run_id: Some("Ra".into()), attempts: 3, counts: counts(1, 1, 1, 0, 0), ..Applied::default() };
    assert_eq!(applied, expected);
    assert_eq!(store.generation().unwrap(), 1);
    assert_eq!(store.files(Some("logs")).unwrap(), [FileRow { stamp: log.file.clone(), state: FileState::Log("a".into()) }]);
    assert_eq!(store.files(Some("other")).unwrap(), []);
    assert_eq!(keys(store, "Ra"), ["e/1#1", "e/2#1", "e/3#1"]);
    let row = store.attempts("Ra", &AttemptQuery { checks: true, ..AttemptQuery::default() }).unwrap().remove(1);
    let original = attempt("2", Fail);
    let expected = AttemptRow {
        key: "e/2#1".into(),
        evaluation: "e".into(),
        case: "2".into(),
        arm: "m".into(),
        n: 1,
        outcome: Fail,
        score: None,
        checks: original.checks,
        usage: original.usage,
        cost_usd: Some(0.125),
        duration_ms: Some(1500),
        started_at: Some(Timestamp::from_millis(77)),
        error: None,
        limit: None,
        retries: 1,
        lines: 0,
        messages: 0,
        rest: None,
    };
    assert_eq!(row, expected);
    let evaluation_cells = cells(store, &["Ra"], Grain::Evaluation);
    let expected = Cell {
        key: key("e", None, "m"),
        run_id: "Ra".into(),
        counts: counts(1, 1, 1, 0, 0),
        threshold: None,
        several_cases: true,
        declared: false,
        verdict: Verdict::Mixed,
    };
    assert_eq!(evaluation_cells, [expected]);
    let verdicts: Vec<Verdict> = cells(store, &["Ra"], Grain::Case).into_iter().map(|cell| cell.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Fail, Verdict::InfraError]);
}

pub(crate) fn the_same_file_again_changes_nothing(store: &dyn Store) {
    let mut log = log("a", 1).with([attempt("1", Pass)]);
    log.put(store).unwrap();
    log.file.mtime_ns = 99;
    let again = log.put(store).unwrap();
    assert_eq!(again, Applied { run_id: Some("Ra".into()), ..Applied::default() });
    assert_eq!(store.generation().unwrap(), 1);
    assert_eq!(store.files(None).unwrap()[0].stamp.mtime_ns, 99);
    // The same bytes for another run are another matter.
    log.pinned = true;
    assert_eq!(log.clone().run("CI").put(store).unwrap().run_id.as_deref(), Some("CI"));
    assert_eq!(run_ids(store), ["CI"]);
}

pub(crate) fn a_changed_file_replaces_what_it_held(store: &dyn Store) {
    log("a", 1).with([attempt("1", Pass), attempt("2", Pass)]).put(store).unwrap();
    let number = store.select(&Selector::Id("Ra"), 1).unwrap()[0].number;
    log("a", 1).file("a.json", "d2").with([attempt("1", Fail)]).put(store).unwrap();
    assert_eq!(keys(store, "Ra"), ["e/1#1"]);
    assert_eq!(store.select(&Selector::Id("Ra"), 1).unwrap()[0].number, number);
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].counts, counts(0, 1, 0, 0, 0));
    log("b", 2).file("a.json", "d3").with([attempt("1", Pass)]).put(store).unwrap();
    assert_eq!(run_ids(store), ["Rb"]);
    assert_eq!(store.generation().unwrap(), 3);
}

pub(crate) fn the_better_copy_counts(store: &dyn Store) {
    let long = log("a", 1).with([attempt("1", Pass), attempt("2", Pass)]);
    let short = log("a", 1).file("copy.json", "d2").with([attempt("1", Fail)]);
    short.put(store).unwrap();
    assert_eq!(long.put(store).unwrap().copy_of, None);
    assert_eq!(keys(store, "Ra").len(), 2);
    let states = |store: &dyn Store| store.files(None).unwrap().into_iter().map(|row| row.state).collect::<Vec<_>>();
    assert_eq!(states(store), [FileState::Log("a".into()), FileState::CopyOf("a.json".into())]);
    let generation = store.generation().unwrap();
    let again = short.put(store).unwrap();
    assert_eq!((again.changed, again.copy_of.as_deref(), again.run_id.as_deref()), (false, Some("a.json"), Some("Ra")));
    let third = log("a", 1).file("z.json", "d3").with([attempt("1", Fail)]).put(store).unwrap();
    assert_eq!((third.changed, third.copy_of.as_deref(), third.attempts), (true, Some("a.json"), 0));
    assert_eq!(store.generation().unwrap(), generation + 1);
    // A better third one takes over, and the others are copies of it.
    log("a", 1).file("b.json", "d4").with(["1", "2", "3"].map(|case| attempt(case, Pass))).put(store).unwrap();
    let copy = FileState::CopyOf("b.json".into());
    assert_eq!(states(store), [copy.clone(), FileState::Log("a".into()), copy.clone(), copy]);
    assert_eq!(keys(store, "Ra").len(), 3);
    assert_eq!(run_ids(store).len(), 1);
}

pub(crate) fn copies_are_forgotten_with_their_winner(store: &dyn Store) {
    let long = log("a", 1).with([attempt("1", Pass), attempt("2", Pass)]);
    let short = log("a", 1).file("copy.json", "d2").with([attempt("1", Fail)]);
    long.put(store).unwrap();
    short.put(store).unwrap();
    store.apply(Change::Vanished { paths: vec!["a.json".into()] }).unwrap();
    assert_eq!((store.files(None).unwrap(), run_ids(store)), (vec![], vec![]));
    short.put(store).unwrap();
    assert_eq!(keys(store, "Ra"), ["e/1#1"]);
    // Back again; then it shrinks below its copy, which is to be read again.
    long.put(store).unwrap();
    log("a", 1).file("a.json", "d5").put(store).unwrap();
    assert_eq!(store.files(None).unwrap().len(), 1);
    short.put(store).unwrap();
    assert_eq!(keys(store, "Ra"), ["e/1#1"]);
    // The winner becomes another log.
    log("b", 1).file("copy.json", "d6").put(store).unwrap();
    assert_eq!(store.files(None).unwrap().len(), 1);
}

pub(crate) fn a_retry_joins_its_run_and_replaces_attempts(store: &dyn Store) {
    let uuid = |mut attempt: Attempt, uuid: &str| {
        attempt.uuid = Some(uuid.into());
        attempt
    };
    let first = log("a", 1).task("t").with([uuid(attempt("1", Pass), "x"), uuid(attempt("2", InfraError), "y")]);
    let retry = log("b", 2).task("t").with([uuid(attempt("1", Pass), "x"), uuid(attempt("2", Fail), "z"), uuid(attempt("3", Pass), "w")]);
    retry.put(store).unwrap();
    assert_eq!(run_ids(store), ["Rb"]);
    assert_eq!(first.put(store).unwrap().run_id.as_deref(), Some("Ra"));
    assert_eq!(run_ids(store), ["Ra"]);
    assert_eq!(keys(store, "Ra"), ["e/1#1", "e/2#1", "e/3#1"]);
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].counts, counts(2, 1, 0, 0, 0));
    store.apply(Change::Vanished { paths: vec!["a.json".into()] }).unwrap();
    assert_eq!(run_ids(store), ["Rb"]);
    assert_eq!(keys(store, "Rb").len(), 3);
}

pub(crate) fn a_retry_replaces_whatever_its_arm_is_called(store: &dyn Store) {
    let tries = |outcome| [attempt("1", outcome), attempt("2", outcome)];
    log("a", 1).task("t").with(tries(Fail)).by("m+max_connections=10").put(store).unwrap();
    log("b", 2).task("t").with(tries(Pass)).by("m+max_connections=20").put(store).unwrap();
    let run = store.select(&Selector::Id("Ra"), 1).unwrap().remove(0);
    assert_eq!(run.counts, counts(2, 0, 0, 0, 0));
    assert_eq!(keys(store, "Ra"), ["e/1@m+max_connections=20#1", "e/2@m+max_connections=20#1"]);
    assert_eq!(cells(store, &["Ra"], Grain::Case).len(), 2);
    // A log of several arms tries each case with each of them.
    let by = |arm: &str, outcome| Attempt { arm: arm.into(), ..attempt("1", outcome) };
    let several = |id, at, attempts: [Attempt; 2]| {
        let mut log = log(id, at).task("u").with(attempts);
        log.header.arms = vec![arm("m"), arm("n")];
        log
    };
    several("c", 3, [by("m", Pass), by("n", Fail)]).put(store).unwrap();
    assert_eq!(store.select(&Selector::Id("Rc"), 1).unwrap()[0].counts, counts(1, 1, 0, 0, 0));
    several("d", 4, [by("m", Fail), by("n", Fail)]).put(store).unwrap();
    assert_eq!(keys(store, "Rc"), ["e/1@m#1", "e/1@n#1"]);
    assert_eq!(store.select(&Selector::Id("Rc"), 1).unwrap()[0].counts, counts(0, 2, 0, 0, 0));
}

pub(crate) fn cases_are_judged_by_their_attempts_alone(store: &dyn Store) {
    store.apply(Change::Declared(threshold("e", 0.5))).unwrap();
    for (id, at, second) in [("a", 1, Pass), ("b", 2, Fail), ("c", 3, Fail)] {
        log(id, at).with([attempt("1", Pass), attempt("1", second), attempt("2", Pass), attempt("2", Pass)]).put(store).unwrap();
    }
    let found = cells(store, &["Ra", "Rb", "Rc"], Grain::Evaluation);
    assert!(found.iter().all(|cell| (cell.verdict, cell.threshold, cell.declared) == (Verdict::Pass, Some(0.5), true)));
    let case = |run| cells(store, &[run], Grain::Case).remove(0);
    assert_eq!(["Ra", "Rb", "Rc"].map(|run| case(run).verdict), [Verdict::Pass, Verdict::Mixed, Verdict::Mixed]);
    assert_eq!((case("Rb").threshold, case("Rb").declared, case("Rb").several_cases), (None, false, true));
    let streak = store.streaks(&point("Rc", 3), Grain::Case, &[key("e", Some("1"), "m")]).unwrap().remove(0);
    let expected = Streak {
        previous: Some((Verdict::Mixed, point("Rb", 2))),
        last_pass: Some(point("Ra", 1)),
        failing_since: Some(point("Rb", 2)),
        failed_before: true,
        verdict_since: Some(point("Rb", 2)),
    };
    assert_eq!(streak, expected);
    store.apply(Change::Declared(Declared::default())).unwrap();
    assert_eq!(case("Rb").verdict, Verdict::Mixed);
    // The 1.0 of a single case judges the evaluation, not the case.
    log("d", 4).with([attempt("1", Pass), attempt("1", Fail)]).put(store).unwrap();
    let both = [Grain::Evaluation, Grain::Case].map(|grain| cells(store, &["Rd"], grain).remove(0));
    assert_eq!(both.map(|cell| (cell.verdict, cell.threshold)), [(Verdict::Fail, Some(1.0)), (Verdict::Mixed, None)]);
}

pub(crate) fn logs_add_up_in_any_order(store: &dyn Store) {
    let one = |id: i64, at| {
        let info = EvaluationInfo { planned: Some(2), ..evaluation("e") };
        log(&format!("l{id}"), at).run("R").with([attempt(if id == 3 { "2" } else { "1" }, Pass)]).of(info)
    };
    for (id, at) in [(1, 5), (2, 7), (4, 6), (3, 8)] {
        one(id, at).put(store).unwrap();
    }
    let run = store.select(&Selector::Id("R"), 1).unwrap().remove(0);
    assert_eq!((run.counts, run.created_at), (counts(4, 0, 0, 0, 4), Timestamp::from_millis(5000)));
    assert_eq!((run.started_at, run.completed_at), (Some(Timestamp::from_millis(5001)), Some(Timestamp::from_millis(8500))));
    assert_eq!(keys(store, "R"), ["e/1#1", "e/1#2", "e/1#3", "e/2#1"]);
    let cell = cells(store, &["R"], Grain::Evaluation).remove(0);
    assert_eq!((cell.counts, cell.several_cases, cell.threshold), (counts(4, 0, 0, 0, 4), true, None));
    assert!(cells(store, &["R"], Grain::Case).iter().all(|cell| cell.several_cases));
    let mut failed = one(5, 9);
    failed.header.status = RunStatus::Running;
    failed.header.completed_at = None;
    failed.header.evaluations[0].threshold = Some(0.25);
    failed.attempts.clear();
    failed.put(store).unwrap();
    let run = store.select(&Selector::Id("R"), 1).unwrap().remove(0);
    assert_eq!((run.status, run.completed_at, run.counts), (RunStatus::Running, None, counts(4, 0, 0, 0, 6)));
    assert_eq!(cells(store, &["R"], Grain::Evaluation)[0].threshold, Some(0.25));
}

pub(crate) fn a_pinned_log_does_not_move(store: &dyn Store) {
    log("a", 1).task("t").with([attempt("1", Pass)]).put(store).unwrap();
    let mut pinned = log("b", 2).task("t").run("CI").with([attempt("1", Fail)]);
    pinned.pinned = true;
    pinned.put(store).unwrap();
    assert_eq!(run_ids(store), ["CI", "Ra"]);
}

pub(crate) fn an_error_in_the_middle_keeps_nothing(store: &dyn Store) {
    let good = log("a", 1).with([attempt("1", Pass)]);
    good.put(store).unwrap();
    let mut bad = log("a", 1).file("a.json", "d2").with([attempt("1", Fail), attempt("2", Fail)]);
    bad.attempts.push(Err("sample 3 is no JSON".into()));
    let error = bad.put(store).unwrap_err();
    assert!(matches!(&error, Error::Import(text) if text == "sample 3 is no JSON"), "{error:?}");
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].counts, counts(1, 0, 0, 0, 0));
    assert_eq!(store.files(None).unwrap()[0].stamp, good.file);
    assert_eq!(store.generation().unwrap(), 1);
}

pub(crate) fn vanished_files_leave(store: &dyn Store) {
    log("a", 1).with([attempt("1", Pass)]).put(store).unwrap();
    log("b", 2).with([attempt("1", Pass)]).put(store).unwrap();
    let gone = store.apply(Change::Vanished { paths: vec!["a.json".into(), "never.json".into()] }).unwrap();
    assert!(gone.changed);
    assert_eq!(run_ids(store), ["Rb"]);
    assert_eq!((keys(store, "Ra").len(), cells(store, &["Ra"], Grain::Case).len(), store.arms(&["Ra".into()]).unwrap().len()), (0, 0, 0));
    assert!(!store.apply(Change::Vanished { paths: vec!["a.json".into()] }).unwrap().changed);
    assert_eq!(store.generation().unwrap(), 3);
}

pub(crate) fn skipped_files_are_remembered(store: &dyn Store) {
    let log = log("a", 1).with([attempt("1", Pass)]);
    log.put(store).unwrap();
    let file = FileStamp { digest: "d2".into(), ..log.file.clone() };
    let skip = |broken| Change::Skipped { file: file.clone(), broken, reason: "cut short".into() };
    assert!(store.apply(skip(true)).unwrap().changed);
    assert_eq!(store.files(None).unwrap(), [FileRow { stamp: file.clone(), state: FileState::Broken("cut short".into()) }]);
    assert!(run_ids(store).is_empty());
    assert!(!store.apply(skip(true)).unwrap().changed);
    assert!(store.apply(skip(false)).unwrap().changed);
    log.file("a.json", "d2").put(store).unwrap();
    assert_eq!(run_ids(store), ["Ra"]);
}

pub(crate) fn planned_attempts_without_a_record_are_missing(store: &dyn Store) {
    let planned = |count| EvaluationInfo { planned: Some(count), ..evaluation("e") };
    log("a", 1).task("t").with([attempt("1", Pass), attempt("2", Cancelled)]).of(planned(5)).put(store).unwrap();
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].counts, counts(1, 0, 0, 0, 4));
    let by_case: Vec<Counts> = cells(store, &["Ra"], Grain::Case).into_iter().map(|cell| cell.counts).collect();
    assert_eq!(by_case, [counts(1, 0, 0, 0, 0), counts(0, 0, 0, 0, 1)]);
    // The retry planned three; two of the first log stand.
    log("b", 2).task("t").with([attempt("3", Pass)]).of(planned(3)).put(store).unwrap();
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].counts, counts(2, 0, 0, 0, 1));
    // A log that died at once has a cell all the same, and the run counts it.
    log("c", 3).of(planned(2)).put(store).unwrap();
    assert_eq!(cells(store, &["Rc"], Grain::Evaluation)[0].counts, counts(0, 0, 0, 0, 2));
    assert_eq!(store.select(&Selector::Id("Rc"), 1).unwrap()[0].counts, counts(0, 0, 0, 0, 2));
}

fn threshold(id: &str, threshold: f64) -> Declared {
    let rule = EvaluationRule { id: id.into(), threshold: Some(threshold), family: Some("fam".into()) };
    Declared { evaluation: vec![rule], ..Declared::default() }
}

pub(crate) fn declared_thresholds_judge_anew(store: &dyn Store) {
    log("a", 1).with([attempt("1", Pass), attempt("2", Fail)]).put(store).unwrap();
    let declared = threshold("e*", 0.5);
    assert!(store.apply(Change::Declared(declared.clone())).unwrap().changed);
    assert!(!store.apply(Change::Declared(declared.clone())).unwrap().changed);
    assert_eq!(store.declared().unwrap(), declared);
    let cell = cells(store, &["Ra"], Grain::Evaluation).remove(0);
    assert_eq!((cell.verdict, cell.threshold, cell.declared), (Verdict::Pass, Some(0.5), true));
    let info = store.evaluations("Ra").unwrap().remove(0).info;
    assert_eq!((info.threshold, info.family.as_deref()), (Some(0.5), Some("fam")));
    // The project's word goes before the log's.
    log("b", 2)
        .with([attempt("1", Pass), attempt("2", Fail)])
        .of(EvaluationInfo { threshold: Some(0.9), ..evaluation("e") })
        .put(store)
        .unwrap();
    assert_eq!(cells(store, &["Rb"], Grain::Evaluation)[0].verdict, Verdict::Pass);
    store.apply(Change::Declared(Declared::default())).unwrap();
    assert_eq!(cells(store, &["Rb"], Grain::Evaluation)[0].verdict, Verdict::Fail);
    assert_eq!(cells(store, &["Ra"], Grain::Evaluation)[0].verdict, Verdict::Mixed);
}

pub(crate) fn declared_arms_rename_and_merge(store: &dyn Store) {
    log("a", 1).run("R").by("openai/x").with([attempt("1", Pass)]).by("openai/x").put(store).unwrap();
    log("b", 2).run("R").with([attempt("1", Fail)]).by("openai/y").put(store).unwrap();
    assert_eq!(keys(store, "R"), ["e/1@openai/x#1", "e/1@openai/y#1"]);
    let rule = ArmRule { matches: "openai/*".into(), name: Some("base".into()), role: Some(crate::domain::declared::Role::Control) };
    store.apply(Change::Declared(Declared { arm: vec![rule], ..Declared::default() })).unwrap();
    assert_eq!(keys(store, "R"), ["e/1#1", "e/1#2"]);
    let info = ArmInfo { name: "base".into(), role: Some("control".into()), ..arm("openai/y") };
    assert_eq!(store.arms(&["R".into()]).unwrap()["R"], [RunArm { info }]);
    assert_eq!(cells(store, &["R"], Grain::Evaluation)[0].key, key("e", None, "base"));
    // Named on the way in, too.
    log("c", 3).with([attempt("1", Pass)]).by("openai/z").put(store).unwrap();
    assert_eq!(cells(store, &["Rc"], Grain::Evaluation)[0].key.arm, "base");
    store.apply(Change::Declared(Declared::default())).unwrap();
    assert_eq!(keys(store, "R"), ["e/1@openai/x#1", "e/1@openai/y#1"]);
    assert_eq!(cells(store, &["Rc"], Grain::Evaluation)[0].key.arm, "openai/z");
}

pub(crate) fn runs_are_filtered_and_paged(store: &dyn Store) {
    for (id, at, status, evaluation_id) in [
        ("a", 1, RunStatus::Completed, "Straße"),
        ("b", 2, RunStatus::Failed, "math"),
        ("c", 2, RunStatus::Completed, "math"),
        ("d", 3, RunStatus::Completed, "STRASSE"),
    ] {
        let mut log = log(id, at).with([attempt("1", Pass)]).of(evaluation(evaluation_id));
        log.header.status = status;
        log.header.round = (id < "c").then(|| "night".to_owned());
        log.header.git = Some(Git { sha: Some(format!("{id}{id}{id}{id}F0")), branch: None, dirty: None });
        log.kind = if id == "d" { Kind::Scratch } else { Kind::Recorded };
        log.put(store).unwrap();
    }
    let ids = |query: RunQuery| {
        let (runs, total) = store.runs(&query).unwrap();
        (runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>().join(" "), total)
    };
    let all = RunQuery { limit: 9, ..RunQuery::default() };
    assert_eq!(ids(all.clone()), ("Rd Rc Rb Ra".into(), 4));
    assert_eq!(ids(RunQuery { limit: 2, ..all.clone() }), ("Rd Rc".into(), 4));
    assert_eq!(ids(RunQuery { limit: 2, before: Some(point("Rc", 2)), ..all.clone() }), ("Rb Ra".into(), 4));
    assert_eq!(ids(RunQuery { limit: 0, ..all.clone() }), (String::new(), 4));
    assert_eq!(ids(RunQuery { kind: Some(Kind::Scratch), ..all.clone() }), ("Rd".into(), 1));
    assert_eq!(ids(RunQuery { status: Some(RunStatus::Failed), ..all.clone() }), ("Rb".into(), 1));
    assert_eq!(ids(RunQuery { round: Some("night".into()), ..all.clone() }), ("Rb Ra".into(), 2));
    assert_eq!(ids(RunQuery { since: Some(Timestamp::from_millis(2000)), ..all.clone() }), ("Rd Rc Rb".into(), 3));
    assert_eq!(ids(RunQuery { evaluation_contains: Some("RAß".into()), ..all.clone() }), ("Ra".into(), 1));
    assert_eq!(ids(RunQuery { evaluation_contains: Some("Ma".into()), limit: 1, ..all.clone() }), ("Rc".into(), 2));
    assert_eq!(ids(RunQuery { evaluation_contains: Some("none".into()), ..all.clone() }), (String::new(), 0));
    let shas = |shas: &[&str]| RunQuery { shas: Some(shas.iter().map(|sha| (*sha).to_owned()).collect()), ..all.clone() };
    assert_eq!(ids(shas(&["aaaaf0123456", "BBBB", "ccc"])), ("Rb Ra".into(), 2));
    assert_eq!(ids(shas(&[])), (String::new(), 0));
}

pub(crate) fn references_select_runs(store: &dyn Store) {
    for (id, at) in [("a1", 1), ("a2", 3), ("b", 2), ("a", 2)] {
        let mut log = log(id, at);
        log.header.git = Some(Git { sha: Some(if id == "b" { "ABCDEF12" } else { "abcd0000" }.into()), branch: None, dirty: None });
        log.put(store).unwrap();
    }
    let ids = |selector, limit| store.select(&selector, limit).unwrap().into_iter().map(|run| run.run_id).collect::<Vec<_>>().join(" ");
    assert_eq!(ids(Selector::Latest(0), 9), "Ra2");
    assert_eq!(ids(Selector::Latest(1), 9), "Rb");
    assert_eq!(ids(Selector::Latest(4), 9), "");
    assert_eq!(ids(Selector::Id("Ra"), 9), "Ra");
    assert_eq!(ids(Selector::Id("ra"), 9), "");
    assert_eq!(ids(Selector::IdPrefix("Ra"), 9), "Ra2 Ra Ra1");
    assert_eq!(ids(Selector::IdPrefix("Ra"), 2), "Ra2 Ra");
    assert_eq!(ids(Selector::IdPrefix("R%"), 2), "");
    assert_eq!(ids(Selector::ShaPrefix("abcd"), 9), "Ra2 Rb Ra Ra1");
    assert_eq!(ids(Selector::ShaPrefix("abcde"), 9), "Rb");
}

pub(crate) fn cells_are_read_in_order(store: &dyn Store) {
    for (id, at) in [("a", 1), ("b", 2)] {
        log(id, at)
            .with([Attempt { evaluation: "z".into(), ..attempt("1", Pass) }, attempt("é", Fail), attempt("b", Pass)])
            .with([Attempt { arm: "a".into(), ..attempt("b", Pass) }])
            .put(store)
            .unwrap();
    }
    let show = |cells: Vec<Cell>| {
        let shown =
            |cell: Cell| format!("{}/{}@{}:{}", cell.key.evaluation, cell.key.case.unwrap_or("-".into()), cell.key.arm, cell.run_id);
        cells.into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let at_evaluations = show(cells(store, &["Rb", "Ra", "Rb", "none"], Grain::Evaluation));
    assert_eq!(at_evaluations, "e/-@a:Rb e/-@a:Ra e/-@m:Rb e/-@m:Ra z/-@m:Rb z/-@m:Ra");
    assert_eq!(show(cells(store, &["Ra"], Grain::Case)), "e/b@a:Ra e/b@m:Ra e/é@m:Ra z/1@m:Ra");
    let query = CellQuery { runs: vec!["Ra".into()], ..CellQuery::default() };
    let read = |query: CellQuery| show(store.cells(&query).unwrap());
    assert_eq!(read(CellQuery { evaluation_contains: Some("Z".into()), ..query.clone() }), "z/-@m:Ra");
    assert_eq!(read(CellQuery { evaluation: Some("e".into()), ..query.clone() }), "e/-@a:Ra e/-@m:Ra");
    assert_eq!(read(CellQuery { evaluation: Some("E".into()), ..query.clone() }), "");
    assert_eq!(read(CellQuery { failing: true, ..query.clone() }), "e/-@m:Ra");
    assert_eq!(read(CellQuery { failing: true, grain: Grain::Case, ..query.clone() }), "e/é@m:Ra");
    let key = |evaluation: &str, case: Option<&str>, arm: &str| CellKey {
        evaluation: evaluation.into(),
        case: case.map(str::to_owned),
        arm: arm.into(),
    };
    let some =
        vec![key("z", Some("1"), "m"), key("e", Some("b"), "m"), key("e", None, "a"), key("e", Some("none"), "m"), key("", None, "")];
    let of_some = |grain| CellQuery { keys: Some(some.clone()), grain, ..query.clone() };
    assert_eq!((read(of_some(Grain::Case)), read(of_some(Grain::Evaluation))), ("e/b@m:Ra z/1@m:Ra".into(), "e/-@a:Ra".into()));
    assert_eq!(read(CellQuery { evaluation: Some("z".into()), ..of_some(Grain::Case) }), "z/1@m:Ra");
    assert_eq!(read(CellQuery { evaluation_contains: Some("E".into()), ..of_some(Grain::Case) }), "e/b@m:Ra");
    assert_eq!(read(CellQuery { keys: Some(Vec::new()), ..query.clone() }), "");
}

pub(crate) fn keys_are_those_of_the_cells(store: &dyn Store) {
    for (id, at) in [("a", 1), ("b", 2)] {
        log(id, at).with([attempt("é", Fail), attempt("b", Pass), Attempt { arm: id.into(), ..attempt("b", Pass) }]).put(store).unwrap();
    }
    for grain in [Grain::Evaluation, Grain::Case] {
        for failing in [false, true] {
            let query = CellQuery { runs: vec!["Rb".into(), "Ra".into(), "none".into()], grain, failing, ..CellQuery::default() };
            let mut keys: Vec<CellKey> = store.cells(&query).unwrap().into_iter().map(|cell| cell.key).collect();
            keys.dedup();
            assert_eq!(store.keys(&query).unwrap(), keys, "{grain:?} {failing}");
            assert_eq!(keys.len(), if failing { 1 } else { 3 + usize::from(grain == Grain::Case) });
        }
    }
    assert_eq!(store.keys(&CellQuery::default()).unwrap(), []);
}

/// Runs R1.. at the seconds 1.., of one case with these outcomes.
fn story(store: &dyn Store, outcomes: &[Outcome]) {
    for (at, outcome) in (1..).zip(outcomes) {
        log(&at.to_string(), at).with([attempt("1", *outcome)]).put(store).unwrap();
    }
}

pub(crate) fn points_pick_the_right_cell(store: &dyn Store) {
    story(store, &[Pass, Fail, InfraError]);
    let mut scratch = log("9", 9).with([attempt("1", Pass)]);
    scratch.kind = Kind::Scratch;
    scratch.put(store).unwrap();
    let mut running = log("4", 4).with([attempt("1", Pass)]);
    running.header.status = RunStatus::Running;
    running.put(store).unwrap();
    log("x", 1).with([attempt("1", Pass)]).of(evaluation("other")).put(store).unwrap();
    let query =
        PointQuery { evaluation_contains: None, keys: None, grain: Grain::Evaluation, counted: false, statuses: &[], pick: Pick::Newest };
    let read = |query: PointQuery<'_>| {
        let shown = |point: Point| format!("{}:{}", point.cell.key.evaluation, point.run.run_id);
        store.points(&query).unwrap().into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let ended = [RunStatus::Completed, RunStatus::Failed];
    assert_eq!(read(query.clone()), "e:R4 other:Rx");
    assert_eq!(read(PointQuery { evaluation_contains: Some("E"), ..query.clone() }), "e:R4 other:Rx");
    assert_eq!(read(PointQuery { evaluation_contains: Some("OTH"), ..query.clone() }), "other:Rx");
    assert_eq!(read(PointQuery { statuses: &ended, ..query.clone() }), "e:R3 other:Rx");
    assert_eq!(read(PointQuery { statuses: &ended, counted: true, ..query.clone() }), "e:R2 other:Rx");
    assert_eq!(read(PointQuery { pick: Pick::NewestUpTo(Timestamp::from_millis(1000)), ..query.clone() }), "e:R1 other:Rx");
    assert_eq!(read(PointQuery { pick: Pick::OldestAfter(Timestamp::from_millis(1000)), ..query.clone() }), "e:R2");
    let keys =
        [key("e", Some("1"), "m"), key("e", Some("1"), "m"), key("e", Some("2"), "m"), key("e", None, "m"), key("x", Some("1"), "m")];
    assert_eq!(read(PointQuery { keys: Some(&keys), grain: Grain::Case, ..query.clone() }), "e:R4");
    assert_eq!(read(PointQuery { keys: Some(&keys), ..query.clone() }), "e:R4");
    assert_eq!(read(PointQuery { keys: Some(&[]), ..query.clone() }), "");
    let point = store.points(&PointQuery { keys: Some(&keys), grain: Grain::Case, ..query }).unwrap().remove(0);
    assert_eq!(vec![point.cell], cells(store, &["R4"], Grain::Case));
}

pub(crate) fn bases_hold_what_the_head_holds(store: &dyn Store) {
    let suite = |id: &str, at, evaluations: &[&str]| {
        let mut log = log(id, at);
        log.header.evaluations = evaluations.iter().map(|id| evaluation(id)).collect();
        log.header.git = Some(Git { sha: Some(format!("aaaa{at}")), branch: None, dirty: None });
        log.with(evaluations.iter().map(|id| Attempt { evaluation: (*id).into(), ..attempt("1", Pass) }))
    };
    suite("whole", 1, &["e", "f", "g"]).put(store).unwrap();
    (2..40).for_each(|at| drop(suite(&format!("other{at}"), at, &["other"]).put(store).unwrap()));
    suite("part", 40, &["e", "other"]).put(store).unwrap();
    let mut running = suite("running", 41, &["e", "f", "g"]);
    running.header.status = RunStatus::Running;
    running.put(store).unwrap();
    let mut scratch = suite("scratch", 42, &["e", "f", "g"]);
    scratch.kind = Kind::Scratch;
    scratch.put(store).unwrap();
    log("errored", 43).with([attempt("1", InfraError)]).put(store).unwrap();
    // Single arms match whatever their names; of several, each by its own.
    suite("renamed", 44, &["f"]).by("n").put(store).unwrap();
    let mut two = suite("two", 45, &["f"]).with([Attempt { evaluation: "f".into(), arm: "n".into(), ..attempt("1", Fail) }]);
    two.header.arms.push(arm("n"));
    two.put(store).unwrap();
    suite("head", 50, &["e", "f", "g"]).put(store).unwrap();
    let keys = ["e", "f", "g"].map(|id| key(id, None, "m"));
    let bases = |query: BaseQuery<'_>| {
        let shown = |base: Base| format!("{}:{}", base.run.run_id, base.shared);
        store.bases(&query).unwrap().into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let query = BaseQuery { keys: &keys, before: point("Rhead", 50), shas: None, limit: 9 };
    assert_eq!(bases(query.clone()), "Rtwo:1 Rrenamed:1 Rpart:1 Rwhole:3");
    assert_eq!(bases(BaseQuery { limit: 2, ..query.clone() }), "Rtwo:1 Rrenamed:1");
    assert_eq!(bases(BaseQuery { before: point("Rrenamed", 44), ..query.clone() }), "Rpart:1 Rwhole:3");
    let both = [key("f", None, "m"), key("f", None, "n")];
    assert_eq!(bases(BaseQuery { keys: &both, ..query.clone() }), "Rtwo:2 Rrenamed:1 Rwhole:1");
    let shas = ["AAAA1".to_owned(), "aaaa45ff".to_owned(), "bbbb".to_owned()];
    assert_eq!(bases(BaseQuery { shas: Some(&shas), ..query.clone() }), "Rtwo:1 Rwhole:3");
    assert_eq!(bases(BaseQuery { shas: Some(&[]), ..query.clone() }), "");
    assert_eq!(bases(BaseQuery { keys: &[], ..query.clone() }), "");
    assert_eq!(bases(BaseQuery { keys: &[key("never", None, "m")], ..query }), "");
}

pub(crate) fn streaks_tell_the_story(store: &dyn Store) {
    story(store, &[Fail, Pass, Fail, InfraError, Fail, Fail, Pass, Pass]);
    let streak = |run: &str, at| {
        let key = key("e", Some("1"), "m");
        let streak = store.streaks(&point(run, at), Grain::Case, &[key]).unwrap().remove(0);
        let by_evaluation = store.streaks(&point(run, at), Grain::Evaluation, &[self::key("e", None, "m")]).unwrap().remove(0);
        assert_eq!(streak, by_evaluation);
        streak
    };
    let run = |at: i64| Some(point(&format!("R{at}"), at));
    assert_eq!(streak("R1", 1), Streak { verdict_since: run(1), ..Streak::default() });
    let six = Streak {
        previous: run(5).map(|run| (Verdict::Fail, run)),
        last_pass: run(2),
        failing_since: run(3),
        failed_before: true,
        verdict_since: run(3),
    };
    assert_eq!(streak("R6", 6), six);
    assert_eq!(streak("R8", 8).verdict_since, run(7));
    assert_eq!(streak("R8", 8).failing_since, None);
    assert_eq!(streak("R4", 4).verdict_since, run(4));
    assert_eq!(streak("R2", 2).failing_since, run(1));
    // A run that holds no such cell, or is none at all.
    assert_eq!(streak("Never", 7).verdict_since, None);
    assert_eq!(streak("Never", 7).previous, run(6).map(|run| (Verdict::Fail, run)));
}

pub(crate) fn attempts_are_filtered(store: &dyn Store) {
    log("a", 1)
        .with([
            attempt("1", Pass),
            attempt("1", Fail),
            attempt("2", InfraError),
            Attempt { evaluation: "f".into(), ..attempt("", Unscored) },
        ])
        .put(store)
        .unwrap();
    let read = |query: AttemptQuery<'_>| store.attempts("Ra", &query).unwrap().into_iter().map(|row| row.key).collect::<Vec<_>>().join(" ");
    assert_eq!(read(AttemptQuery::default()), "e/1#1 e/1#2 e/2#1 f#1");
    assert_eq!(read(AttemptQuery { outcomes: &[Fail, Unscored], ..AttemptQuery::default() }), "e/1#2 f#1");
    assert_eq!(read(AttemptQuery { evaluation_contains: Some("F"), ..AttemptQuery::default() }), "f#1");
    let keys = [key("e", Some("2"), "m"), key("f", None, "m"), key("f", Some(""), "m"), key("e", Some("2"), "other")];
    assert_eq!(read(AttemptQuery { keys: Some(&keys), ..AttemptQuery::default() }), "e/2#1 f#1");
    assert_eq!(read(AttemptQuery { keys: Some(&keys), outcomes: &[Pass], ..AttemptQuery::default() }), "");
    assert_eq!(read(AttemptQuery { keys: Some(&keys), evaluation_contains: Some("e"), ..AttemptQuery::default() }), "e/2#1");
    assert!(store.attempts("Ra", &AttemptQuery::default()).unwrap()[0].checks.is_empty());
}

pub(crate) fn attempts_are_found_by_name(store: &dyn Store) {
    let cases = ["1", "2", "3", "4", "5", "6", "7"].map(|case| attempt(case, Pass));
    log("a", 1).with(cases).with([attempt("2", Fail), Attempt { evaluation: "f#x".into(), ..attempt("1", Pass) }]).put(store).unwrap();
    let find = |name: &str| store.find_attempts("Ra", name).unwrap().into_iter().map(|row| row.key).collect::<Vec<_>>().join(" ");
    assert_eq!(find("e/2#2"), "e/2#2");
    assert_eq!(find("e#2"), "e/2#2");
    assert_eq!(find("e#1"), "e/1#1 e/2#1 e/3#1 e/4#1 e/5#1 e/6#1");
    assert_eq!(find("f#x#1"), "f%23x/1#1");
    assert_eq!(find("f%23x#1"), "f%23x/1#1");
    for nothing in ["e/9#1", "e#0", "e#", "#1", "", "e", "E#1", "e#4294967296", "e#-1"] {
        assert_eq!(find(nothing), "", "{nothing}");
    }
}

pub(crate) fn strange_ids_round_trip(store: &dyn Store) {
    let ids = ["a/b", "a", "ünï %2F", "x#1@y", "日本/ゴ", "'; DROP", "%_"];
    let attempts = ids.map(|id| Attempt { evaluation: id.into(), arm: id.into(), ..attempt(if id == "a" { "b" } else { id }, Fail) });
    let mut caseless = attempts[0].clone();
    caseless.case = String::new();
    let mut log = log("a/ü #@%", 1).run("R/ü #@%").with(attempts).with([caseless]);
    log.header.arms = ids.map(arm).to_vec();
    log.header.evaluations = ids.map(evaluation).to_vec();
    log.put(store).unwrap();
    let run = store.select(&Selector::IdPrefix("R/ü"), 1).unwrap().remove(0).run_id;
    let rows = store.attempts(&run, &AttemptQuery::default()).unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(store.find_attempts(&run, &row.key).unwrap().len(), 1, "{}", row.key);
        let key = CellKey { evaluation: row.evaluation.clone(), case: Some(row.case.clone()), arm: row.arm.clone() };
        let found = store.attempts(&run, &AttemptQuery { keys: Some(std::slice::from_ref(&key)), ..AttemptQuery::default() }).unwrap();
        assert_eq!(found, [row]);
    }
    // `a/b` without a case reads as `a` with case `b` where both have one arm.
    let twins = [Attempt { evaluation: "a/b".into(), ..attempt("", Pass) }, Attempt { evaluation: "a".into(), ..attempt("b", Fail) }];
    self::log("t", 2).with(twins).put(store).unwrap();
    assert_eq!(keys(store, "Rt"), ["a/b#1", "a/b#1~2"]);
    assert_eq!(store.find_attempts("Rt", "a/b#1").unwrap()[0].outcome, Fail);
    // It keeps the suffix only as long as the other is there.
    self::log("t", 2).file("t.json", "d2").with([Attempt { evaluation: "a/b".into(), ..attempt("", Pass) }]).put(store).unwrap();
    assert_eq!(keys(store, "Rt"), ["a/b#1"]);
}

pub(crate) fn causes_are_grouped(store: &dyn Store) {
    log("a", 1)
        .with([attempt("1", Fail), attempt("22", Fail), attempt("3", InfraError), attempt("4", Pass), attempt("5", Unscored)])
        .with([Attempt { evaluation: "f".into(), ..attempt("1", Fail) }])
        .put(store)
        .unwrap();
    let causes = store.causes("Ra", None).unwrap();
    let shown: Vec<_> =
        causes.iter().map(|cause| (cause.evaluation.as_str(), cause.check.as_deref(), cause.reason.as_str(), cause.attempts)).collect();
    assert_eq!(shown[0], ("e", Some("match"), "expected # got #", 2));
    assert!(shown.contains(&("e", None, "connection # reset", 1)) && shown.contains(&("f", Some("match"), "expected # got #", 1)));
    assert!(causes[1].signature < causes[2].signature);
    assert_eq!(store.causes("Ra", Some("F")).unwrap().len(), 1);
    assert!(causes.iter().all(|cause| (cause.outcome == InfraError) == cause.check.is_none()), "{causes:?}");
    // What broke and what failed without a failed check are two causes, whatever else they share.
    let bare = |case, outcome| Attempt { checks: vec![], error: None, limit: Some("time".into()), ..attempt(case, outcome) };
    log("b", 2).with([bare("1", Fail), bare("2", InfraError), bare("3", Fail)]).put(store).unwrap();
    let causes = store.causes("Rb", None).unwrap();
    let shown: Vec<_> = causes.iter().map(|cause| (cause.outcome, cause.check.as_deref(), cause.reason.as_str(), cause.attempts)).collect();
    assert_eq!(shown, [(Fail, None, "time", 2), (InfraError, None, "time", 1)]);
}

pub(crate) fn transcripts_are_paged(store: &dyn Store) {
    let redactor = Redactor::patterns_only();
    let mut packer = Packer::new(&redactor);
    (0..1300).for_each(|number| packer.line(&format!("{{\"n\":{number}}}")));
    let mut long = attempt("1", Pass);
    long.transcript = packer.finish();
    log("a", 1).with([long, attempt("2", Pass)]).put(store).unwrap();
    let page = |offset, limit| store.transcript("Ra", "e/1#1", offset, limit).unwrap().unwrap();
    assert_eq!(page(510, 4).lines, ["{\"n\":510}", "{\"n\":511}", "{\"n\":512}", "{\"n\":513}"]);
    assert_eq!((page(1299, 9).lines.len(), page(1299, 9).total), (1, 1300));
    assert_eq!(page(1300, 9), Lines { total: 1300, lines: vec![] });
    assert_eq!(page(u64::MAX, u64::MAX), Lines { total: 1300, lines: vec![] });
    assert_eq!(page(0, u64::MAX).lines.len(), 1300);
    assert_eq!(page(0, 0).lines.len(), 0);
    assert_eq!(store.transcript("Ra", "e/2#1", 0, 9).unwrap(), Some(Lines { total: 0, lines: vec![] }));
    assert_eq!(store.transcript("Ra", "e/3#1", 0, 9).unwrap(), None);
    assert_eq!(store.attempts("Ra", &AttemptQuery::default()).unwrap()[0].lines, 1300);
}

pub(crate) fn several_arms_enter_the_key(store: &dyn Store) {
    log("a", 1).run("R").with([attempt("1", Pass), attempt("1", Pass)]).put(store).unwrap();
    assert_eq!(keys(store, "R"), ["e/1#1", "e/1#2"]);
    log("b", 2).run("R").with([attempt("", Pass)]).of(evaluation("f")).by("n@1").put(store).unwrap();
    assert_eq!(keys(store, "R"), ["e/1@m#1", "e/1@m#2", "f@n%401#1"]);
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    assert_eq!(keys(store, "R"), ["e/1#1", "e/1#2"]);
}

pub(crate) fn run_numbers_are_never_reused(store: &dyn Store) {
    log("a", 1).put(store).unwrap();
    log("b", 2).put(store).unwrap();
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    log("c", 3).put(store).unwrap();
    let numbers: Vec<i64> =
        store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).unwrap().0.into_iter().map(|run| run.number).collect();
    assert_eq!(numbers, [3, 1]);
}
