//! The suite's tests of what few formats hold, and of records beside a run's own logs.
//!
//! Promises: as the suite.
//! Does not: read files.

use Outcome::{Fail, InfraError, Pass};

use super::{Log, attempt, cells, evaluation, keys, log, run_ids};
use crate::{
    domain::{
        attempt::Attempt,
        extras::{Analysis, AnalysisSource, Answer, ContextUse, Extras, Pair, Pick, SkillFile, SkillRead},
    },
    store::*,
};

fn analysis(file: &str, source: AnalysisSource, at: i64) -> Analysis {
    let doc = serde_json::value::RawValue::from_string(format!("{{\"of\": \"{file}\"}}")).unwrap();
    Analysis { file: file.into(), source, created_at: Timestamp::from_millis(at), doc }
}

fn pair(a: &str, b: &str) -> Pair {
    let text = |text: &str| text.to_owned();
    Pair {
        evaluation: text("e"),
        question: text("clearer?"),
        a: text(a),
        b: text(b),
        picked: Pick::B,
        picked_swapped: Some(Pick::Tie),
        judge: None,
    }
}

fn skill_file(file: &str, bytes: u64) -> SkillFile {
    SkillFile { skill: "sql".into(), file: file.into(), bytes, sha256: "0f".into() }
}

fn whole() -> Log {
    let mut first = attempt("1", Pass);
    first.label = Some("one".into());
    first.uuid = Some("u".into());
    first.answers = vec![Answer { question: "polite?".into(), answer: Some("yes".into()), passed: Some(true), judge: Some("j".into()) }];
    first.skill_reads = vec![SkillRead { skill: "sql".into(), file: "SKILL.md".into(), reads: 2, first_turn: Some(1) }];
    first.context = Some(ContextUse { tokens_peak: 900, window_tokens: None });
    let mut second = attempt("2", Fail);
    second.label = Some("two".into());
    let mut log = log("a", 1).with([first, second]);
    log.header.tags = vec!["b".into(), "a".into()];
    log.header.metadata = [("job".to_owned(), serde_json::json!(7))].into();
    log.header.error = Some("stopped".into());
    log.extras = Extras {
        skill_files: vec![skill_file("b.md", 2), skill_file("SKILL.md", 1)],
        pairs: vec![pair("one", "two")],
        analyses: vec![
            analysis("x.json", AnalysisSource::Cached, 9),
            analysis("x.json", AnalysisSource::Saved, 9),
            analysis("y.md", AnalysisSource::Saved, 10),
        ],
        ancestors: vec![],
    };
    log
}

pub(crate) fn what_few_formats_hold_is_kept(store: &dyn Store) {
    whole().put(store).unwrap();
    let query = AttemptQuery { rest: true, ..AttemptQuery::default() };
    let rows = store.attempts("Ra", &query).unwrap();
    let rest = rows[0].rest.clone().unwrap();
    assert_eq!((rest.uuid.as_deref(), rest.working_ms, rest.output.as_deref()), (Some("u"), Some(1000), Some("said")));
    assert_eq!((rest.input.as_deref(), rest.target.as_deref()), (Some("in"), Some("out")));
    assert_eq!((rest.answers[0].answer.as_deref(), rest.skill_reads[0].reads, rest.context.unwrap().tokens_peak), (Some("yes"), 2, 900));
    assert_eq!(rows[1].rest.clone().unwrap().context, None);
    let extras = store.extras("Ra").unwrap().unwrap();
    assert_eq!((extras.tags, extras.error.as_deref(), extras.metadata.len()), (vec!["a".to_owned(), "b".to_owned()], Some("stopped"), 1));
    assert_eq!(extras.metrics[0].evaluation.as_deref(), Some("e"));
    assert_eq!(extras.skill_files, [skill_file("SKILL.md", 1), skill_file("b.md", 2)]);
    assert_eq!(extras.pairs, [pair("e/1#1", "e/2#1")]);
    let analyses: Vec<_> = store.analyses("Ra").unwrap().into_iter().map(|one| (one.file, one.source)).collect();
    let word = |file: &str, source| (file.to_owned(), source);
    assert_eq!(
        analyses,
        [word("y.md", AnalysisSource::Saved), word("x.json", AnalysisSource::Saved), word("x.json", AnalysisSource::Cached)]
    );
    assert_eq!((store.extras("none").unwrap(), store.analyses("none").unwrap()), (None, vec![]));
}

pub(crate) fn what_few_formats_hold_goes_with_its_log(store: &dyn Store) {
    let mut log = whole();
    log.put(store).unwrap();
    log.extras.pairs = vec![pair("one", "three")];
    let error = log.clone().file("a.json", "d2").put(store).unwrap_err();
    assert!(matches!(&error, Error::Import(why) if why.contains("three")), "{error:?}");
    assert_eq!(store.analyses("Ra").unwrap().len(), 3);
    log.extras = Extras::default();
    log.file("a.json", "d3").put(store).unwrap();
    let extras = store.extras("Ra").unwrap().unwrap();
    assert_eq!((extras.pairs, extras.skill_files, store.analyses("Ra").unwrap()), (vec![], vec![], vec![]));
}

pub(crate) fn groups_are_those_of_the_newest_log(store: &dyn Store) {
    let of = |case: &str, epoch, group: Option<&str>| Attempt { epoch, group: group.map(Into::into), ..attempt(case, Pass) };
    let told = |groups: Groups| -> Vec<(String, String, String)> {
        let cases = |(id, cases): (String, BTreeMap<String, String>)| cases.into_iter().map(move |(case, group)| (id.clone(), case, group));
        groups.into_iter().flat_map(cases).collect()
    };
    let named = |case: &str, group: &str| ("e".to_owned(), case.to_owned(), group.to_owned());
    let older = log("a", 1).run("R").with([of("1", 1, Some("g")), of("1", 2, Some("h")), of("2", 1, Some("g")), of("3", 1, None)]);
    let newer = log("b", 2).run("R").with([of("1", 1, None), of("2", 1, Some("h"))]);
    newer.put(store).unwrap();
    older.put(store).unwrap();
    assert_eq!(told(store.groups("R").unwrap()), [named("1", "g"), named("2", "h")]);
    let rest = store.attempts("R", &AttemptQuery { rest: true, ..AttemptQuery::default() }).unwrap();
    let of_rows: Vec<Option<String>> = rest.into_iter().map(|row| row.rest.unwrap().group).collect();
    assert_eq!(of_rows, [Some("g"), Some("g"), Some("g"), Some("h"), Some("h"), None].map(|group| group.map(str::to_owned)));
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    assert_eq!(told(store.groups("R").unwrap()), [named("1", "g"), named("2", "g")]);
    assert!(store.groups("none").unwrap().is_empty());
}

pub(crate) fn a_recorded_run_replaces_its_scratch_copy(store: &dyn Store) {
    let mut scratch = log("s", 1).record_of("R").file("runs/run.json", "s").with([attempt("1", Pass), attempt("2", Fail)]);
    scratch.kind = Kind::Scratch;
    let recorded = log("k", 1).record_of("R").file("history/run.json", "k").with([attempt("1", Pass)]);
    let state = |store: &dyn Store, path: &str| store.files(None).unwrap().into_iter().find(|row| row.stamp.path == path).unwrap().state;
    scratch.put(store).unwrap();
    assert_eq!(store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).unwrap().0[0].kind, Kind::Scratch);
    recorded.put(store).unwrap();
    for _ in 0..2 {
        let run = store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).unwrap().0.remove(0);
        assert_eq!((run.kind, run.counts.counted()), (Kind::Recorded, 1));
        assert_eq!(state(store, "runs/run.json"), FileState::CopyOf("history/run.json".into()));
        // Again, as a scratch copy that changed: it has more attempts, and still does not count.
        scratch.clone().file("runs/run.json", "s2").put(store).unwrap();
    }
    assert_eq!(run_ids(store), ["R"]);
}

pub(crate) fn a_record_gives_way_to_the_runs_own_logs(store: &dyn Store) {
    let record = log("r", 1).record_of("R").file("record.json", "r").with([attempt("1", Pass), attempt("2", Pass)]);
    let own = |id: &str| log(id, 2).run("R").with([attempt(id, Fail)]);
    let copied = |store: &dyn Store| {
        let row = store.files(None).unwrap().into_iter().find(|row| row.stamp.path == "record.json");
        row.map(|row| row.state)
    };
    assert_eq!(record.put(store).unwrap().attempts, 2);
    own("a").put(store).unwrap();
    assert_eq!((keys(store, "R"), copied(store)), (vec!["e/a#1".to_owned()], None));
    own("b").put(store).unwrap();
    let applied = record.clone().file("record.json", "r2").put(store).unwrap();
    assert_eq!((applied.copy_of.as_deref(), applied.run_id.as_deref()), (Some("a.json"), Some("R")));
    assert_eq!(keys(store, "R"), ["e/a#1", "e/b#1"]);
    assert_eq!(copied(store), Some(FileState::CopyOf("a.json".into())));
    // Whichever of the run's logs goes, what the record holds is looked at again.
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    assert_eq!(copied(store), None);
    record.put(store).unwrap();
    assert_eq!(copied(store), Some(FileState::CopyOf("a.json".into())));
    own("b").put(store).unwrap();
    assert_eq!(copied(store), None);
    store.apply(Change::Vanished { paths: vec!["a.json".into()] }).unwrap();
    record.put(store).unwrap();
    assert_eq!((keys(store, "R"), copied(store)), (vec!["e/b#1".to_owned()], Some(FileState::CopyOf("b.json".into()))));
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    record.put(store).unwrap();
    assert_eq!(keys(store, "R"), ["e/1#1", "e/2#1"]);
    // What the operator put into a run by hand is a part of it.
    let mut pinned = record.clone().file("other.json", "p").run("Q");
    (pinned.pinned, pinned.header.log_id) = (true, "other".into());
    pinned.put(store).unwrap();
    log("c", 3).run("Q").with([attempt("c", Pass)]).put(store).unwrap();
    assert_eq!(keys(store, "Q"), ["e/1#1", "e/2#1", "e/c#1"]);
}

pub(crate) fn what_is_planned_by_arm_is_missing_by_arm(store: &dyn Store) {
    let info = EvaluationInfo { planned: Some(99), planned_by_arm: [("m".to_owned(), 3), ("n".to_owned(), 2)].into(), ..evaluation("e") };
    let mut log = log("a", 1).with([attempt("1", Pass)]).of(info);
    log.header.arms.push(super::arm("n"));
    log.put(store).unwrap();
    let missing: Vec<_> = cells(store, &["Ra"], Grain::Evaluation).into_iter().map(|cell| (cell.key.arm, cell.counts.missing)).collect();
    assert_eq!(missing, [("m".to_owned(), 2), ("n".to_owned(), 2)]);
}

pub(crate) fn analyses_of_a_record_that_gave_way_stay(store: &dyn Store) {
    let files = |store: &dyn Store| store.analyses("R").unwrap().into_iter().map(|one| one.file).collect::<Vec<_>>();
    log("a", 2).run("R").with([attempt("1", Pass)]).put(store).unwrap();
    let mut record = log("r", 1).record_of("R").file("record.json", "r").with([attempt("1", Pass)]);
    record.extras.analyses = vec![analysis("x.json", AnalysisSource::Saved, 9)];
    let before = store.generation().unwrap();
    record.put(store).unwrap();
    assert_eq!((files(store), store.generation().unwrap()), (vec!["x.json".to_owned()], before + 1));
    record.extras.analyses = vec![analysis("y.json", AnalysisSource::Saved, 9)];
    record.clone().file("record.json", "r2").put(store).unwrap();
    assert_eq!((files(store), store.generation().unwrap()), (vec!["y.json".to_owned()], before + 2));
    store.apply(Change::Vanished { paths: vec!["record.json".into()] }).unwrap();
    assert_eq!(files(store), Vec::<String>::new());
}

pub(crate) fn remarks_last_as_long_as_their_file(store: &dyn Store) {
    let log = log("a", 1).with([attempt("1", Pass)]);
    log.put(store).unwrap();
    store.apply(Change::Remarks { path: "a.json".into(), remarks: vec!["one".into(), "two".into()] }).unwrap();
    let held: Vec<_> = store.remarks().unwrap().into_iter().collect();
    assert_eq!(held, [("a.json".to_owned(), vec!["one".to_owned(), "two".to_owned()])]);
    log.put(store).unwrap();
    assert_eq!(store.remarks().unwrap().len(), 1, "the same file again");
    log.clone().file("a.json", "changed").put(store).unwrap();
    assert!(store.remarks().unwrap().is_empty());
}

pub(crate) fn figures_are_sums_of_what_is_known(store: &dyn Store) {
    let bare = Attempt { cost_usd: None, duration_ms: None, usage: Usage::default(), ..attempt("4", Pass) };
    log("a", 1).with([attempt("1", Pass), attempt("2", Fail), attempt("3", InfraError), bare]).put(store).unwrap();
    let figures = store.figures("Ra").unwrap();
    let expected = crate::domain::figures::Figures {
        attempts: 4,
        cost_usd: Some(0.375),
        costed: 3,
        // What broke says little of how long a whole attempt takes.
        duration_ms: Some(3000),
        timed: 2,
        input_tokens: Some(9),
        output_tokens: None,
        total_tokens: Some(u64::from(u32::MAX) * 6),
        tokened: 3,
    };
    assert_eq!(figures.into_iter().collect::<Vec<_>>(), [("e".to_owned(), expected)]);
    assert!(store.figures("none").unwrap().is_empty());
}
