//! What every adapter must say of the catalog: evaluations, cases, arms, rounds, scores, and where words stand.
//!
//! Promises: runs on any store, from empty.
//! Does not: know an adapter.

use super::*;
use crate::{
    domain::{attempt::Check, words::Question},
    store::{FoundIn, Hit, Item, ItemText, Place, SearchQuery, Totals},
};

pub(crate) fn the_catalog_adds_up(store: &dyn Store) {
    assert_eq!(store.totals().unwrap(), Totals::default());
    assert_eq!((store.datasets().unwrap(), store.arm_totals().unwrap(), store.rounds().unwrap()), (vec![], vec![], vec![]));
    log("a", 1).with([attempt("x", Pass), attempt("y", Fail)]).put(store).unwrap();
    let mut second = log("b", 2).with([attempt("z", InfraError)]).of(evaluation("f"));
    second.header.round = Some("sweep".into());
    second.put(store).unwrap();
    let mut third = log("c", 3).with([attempt("x", Pass)]);
    third.header.round = Some("sweep".into());
    third.header.status = RunStatus::Running;
    third.put(store).unwrap();
    let mut scratch = log("d", 4).with([attempt("w", Fail)]);
    scratch.kind = Kind::Scratch;
    scratch.put(store).unwrap();
    let time = |at: i64| Some(Timestamp::from_millis(at * 1000));
    let totals = store.totals().unwrap();
    assert_eq!((totals.recorded, totals.scratch, totals.counts), (3, 1, counts(2, 1, 1, 0, totals.counts.missing)));
    assert_eq!((totals.oldest, totals.newest), (time(1), time(4)));
    let datasets: Vec<_> = store.datasets().unwrap().into_iter().map(|row| (row.info.id, row.runs, row.tried, row.newest.run_id)).collect();
    assert_eq!(datasets, [("e".into(), 3, 1, "Rd".into()), ("f".into(), 1, 1, "Rb".into())]);
    let items: Vec<String> = store.items("e").unwrap().into_iter().map(|item| item.case).collect();
    assert_eq!((items, store.items("none").unwrap()), (vec!["w".to_owned(), "x".into(), "y".into()], vec![]));
    let arms = store.arm_totals().unwrap();
    let arm = arms.first().unwrap();
    assert_eq!((arms.len(), arm.info.name.as_str(), arm.runs, arm.evaluations, arm.newest.run_id.as_str()), (1, "m", 4, 2, "Rd"));
    assert_eq!((arm.counts.passed, arm.counts.failed, arm.counts.infra), (2, 1, 1));
    let rounds = store.rounds().unwrap();
    let round = rounds.first().unwrap();
    assert_eq!((rounds.len(), round.round.as_str(), round.runs, round.unended), (1, "sweep", 2, 1));
    assert_eq!((round.oldest.run_id.as_str(), round.newest.run_id.as_str(), round.counts.passed), ("Rb", "Rc", 1));
    store.apply(Change::Vanished { paths: vec!["b.json".into(), "d.json".into()] }).unwrap();
    assert_eq!(store.datasets().unwrap().len(), 1, "no run holds the other any more");
    assert_eq!(store.items("e").unwrap().len(), 2);
    assert_eq!(store.totals().unwrap().scratch, 0);
}

pub(crate) fn items_have_texts_and_groups(store: &dyn Store) {
    let with = |case: &str, input: Option<&str>, group: Option<&str>| Attempt {
        input: input.map(Into::into),
        target: Some("t".into()),
        group: group.map(Into::into),
        ..attempt(case, Pass)
    };
    let plain = Attempt { input: None, target: None, ..attempt("y", Pass) };
    log("a", 1).with([with("x", Some("old"), Some("g")), plain]).put(store).unwrap();
    log("b", 2).with([with("x", Some("néw"), Some("h"))]).put(store).unwrap();
    let item = |case: &str, group: Option<&str>, input_chars, target_chars| Item {
        case: case.into(),
        group: group.map(Into::into),
        input_chars,
        target_chars,
    };
    assert_eq!(store.items("e").unwrap(), [item("x", Some("h"), Some(3), Some(1)), item("y", None, None, None)]);
    let text = |case: &str| store.item_text("e", case).unwrap();
    assert_eq!(text("x"), Some(ItemText { input: Some("néw".into()), target: Some("t".into()) }));
    assert_eq!((text("y"), text("z"), store.item_text("f", "x").unwrap()), (Some(ItemText::default()), None, None));
}

pub(crate) fn scores_are_of_cases(store: &dyn Store) {
    let scored = |case: &str, outcome, epoch, value: Option<f64>, passed: Option<bool>| {
        let check = Check { name: "f1".into(), kind: "score".into(), value, passed, ..Check::default() };
        Attempt { checks: vec![check, Check { name: "other".into(), ..Check::default() }], epoch, ..attempt(case, outcome) }
    };
    let attempts = [
        scored("x", Pass, 1, Some(0.5), Some(true)),
        scored("x", Fail, 2, Some(0.25), Some(false)),
        scored("y", Fail, 1, None, Some(true)),
        scored("z", InfraError, 1, Some(0.75), None),
    ];
    log("a", 1).with(attempts).put(store).unwrap();
    let said = |check: Option<&str>| -> Vec<(String, String, u64, f64, u64, u64)> {
        let rows = store.scores("Ra", Some("e"), check).unwrap();
        rows.into_iter().map(|row| (row.case, row.check, row.n, row.sum, row.answered, row.passed)).collect()
    };
    let f1 = [("x".to_owned(), "f1".to_owned(), 2, 0.75, 2, 1), ("y".into(), "f1".into(), 1, 1.0, 1, 1)];
    assert_eq!(said(Some("f1")), f1);
    let count = |run: &str, evaluation: Option<&str>| store.scores(run, evaluation, None).unwrap().len();
    assert_eq!((said(None).len(), said(Some("none")).len(), count("R", None), count("Ra", Some("f"))), (4, 0, 0, 0));
    assert_eq!(store.scores("Ra", None, Some("f1")).unwrap(), store.scores("Ra", Some("e"), Some("f1")).unwrap());
}

/// The places and names of what is found.
fn found(store: &dyn Store, question: &str, more: impl Fn(&mut SearchQuery<'_>)) -> Vec<String> {
    let question = Question::parse(question).unwrap();
    let mut query =
        SearchQuery { question: &question, place: None, outcome: None, min_cost_usd: None, since: None, until: None, limit: 10 };
    more(&mut query);
    let named = |hit: Hit| {
        let name = hit.attempt.or(hit.case).or(hit.evaluation).or(hit.run.map(|run| run.run_id)).unwrap();
        let line = hit.line.map_or(String::new(), |line| format!(" line {line}"));
        assert!(hit.snippet.is_some(), "{name}");
        format!("{} {name}{line}", hit.place.word())
    };
    let found = store.search(&query).unwrap();
    assert_eq!(found.unindexed, 0);
    found.places.into_values().flat_map(|FoundIn { hits, .. }| hits.into_iter().map(named)).collect()
}

fn told(case: &str, outcome: Outcome, lines: &[&str]) -> Attempt {
    let redactor = Redactor::patterns_only();
    let mut packer = Packer::new(&redactor);
    lines.iter().for_each(|line| packer.line(line));
    Attempt { transcript: packer.finish(), ..attempt(case, outcome) }
}

pub(crate) fn words_are_found_where_they_stand(store: &dyn Store) {
    let all = |question: &str| found(store, question, |_| {});
    assert_eq!(all("anything"), Vec::<String>::new());
    let long = format!("{{\"text\":\"{}\"}}", "hay ".repeat(40_000));
    let mut broken =
        told("Äpfel", InfraError, &["{\"id\":\"unread\",\"content\":\"first\"}", &long, "{\"content\":\"a needle\\nin the hay\"}"]);
    broken.error = Some("TimeoutError: gave up".into());
    broken.input = Some("How many apples?".into());
    let mut first = log("a", 1).with([broken, told("two", Fail, &["no needle here"])]);
    first.header.tags = vec!["nightly build".into()];
    first.put(store).unwrap();
    let mut later = told("two", Pass, &["the needle again"]);
    later.cost_usd = Some(2.0);
    log("b", 2).with([later]).put(store).unwrap();
    assert_eq!(all("NEEDLE"), ["transcript e/two#1 line 0", "transcript e/two#1 line 0", "transcript e/Äpfel#1 line 2"]);
    assert_eq!(all("needle hay"), ["transcript e/Äpfel#1 line 1"]);
    assert_eq!(all("\"needle in the hay\""), ["transcript e/Äpfel#1 line 2"]);
    assert_eq!(all("\"the hay needle\""), Vec::<String>::new());
    assert_eq!(all("timeouterror"), ["reason e/Äpfel#1"]);
    assert_eq!((all("timeout*"), all("timeout")), (vec!["reason e/Äpfel#1".to_owned()], vec![]));
    assert_eq!((all("unread"), all("content")), (vec![], vec![]), "names and keys for machines are not read");
    assert_eq!((all("apples"), all("äpfel")), (vec!["case Äpfel".to_owned()], vec!["case Äpfel".to_owned()]));
    assert_eq!((all("nightly"), all("Rb")), (vec!["run Ra".to_owned()], vec!["run Rb".to_owned()]));
    assert!(all("e").contains(&"evaluation e".to_owned()));
    let time = |at: i64| Some(Timestamp::from_millis(at * 1000));
    let needle = |more: &dyn Fn(&mut SearchQuery<'_>)| found(store, "needle", more).len();
    assert_eq!(needle(&|query| query.place = Some(Place::Reason)), 0);
    assert_eq!(needle(&|query| query.outcome = Some(Fail)), 1);
    assert_eq!(needle(&|query| query.min_cost_usd = Some(1.0)), 1);
    assert_eq!((needle(&|query| query.since = time(2)), needle(&|query| query.until = time(1))), (1, 2));
    assert_eq!(needle(&|query| query.limit = 2), 2);
}

/// A log that comes again and one that goes: of what is gone no word is found.
pub(crate) fn words_go_with_their_log(store: &dyn Store) {
    let all = |question: &str| found(store, question, |_| {});
    let texts = |word: &str| {
        let mut attempt = told("x", Fail, &[&format!("{{\"text\":\"told {word}\"}}")]);
        (attempt.input, attempt.error) = (Some(format!("asked {word}")), Some(format!("said {word}")));
        attempt
    };
    log("a", 1).with([texts("old")]).put(store).unwrap();
    assert_eq!(all("old"), ["case x", "reason e/x#1", "transcript e/x#1 line 0"]);
    let mut again = log("a", 1).with([texts("new")]);
    again.file.digest = "another".into();
    again.put(store).unwrap();
    assert_eq!((all("old").len(), all("new")), (0, vec!["case x".to_owned(), "reason e/x#1".into(), "transcript e/x#1 line 0".into()]));
    log("b", 2).with([texts("other")]).put(store).unwrap();
    assert_eq!(all("other").len(), 3);
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    assert_eq!((all("other").len(), all("Rb").len()), (0, 0));
    assert_eq!(all("new").iter().filter(|hit| !hit.starts_with("case")).count(), 2);
}
