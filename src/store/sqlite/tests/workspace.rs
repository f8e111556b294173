//! The workspace in a file: against the plain model, with several writers at once, and what nobody may reach.
//!
//! Promises: what writers in threads leave is what one order of their deeds leaves, and the trail says which.
//! Does not: repeat the contract.

use proptest::prelude::*;

use super::*;
use crate::store::{
    contract::{
        attempt,
        deeds::{Turn, beginning, dump, named, trail, trailed, turn},
        log, random,
        workspace::{act, at, deed},
    },
    model::Model,
    workspace::{Act, ActFault, Approval, AuditQuery, AuthoredQuery, NewCase, NewEvaluation, NewTrace, Outcome, Workspace as _},
};

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

fn patient(path: &Path) -> Sqlite {
    let options = Options { busy_timeout_ms: 60_000, ..Options::default() };
    Sqlite::open(path, &Caller::local().local_scope(), &options).unwrap()
}

fn new(id: &str) -> Act {
    let cases = vec![NewCase { id: Some("1".into()), input: "secret".into(), expected: Some("secret".into()), metadata: None }];
    Act::CreateEvaluation(NewEvaluation { id: id.into(), description: Some("secret".into()), cases, ..NewEvaluation::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_file_and_the_model_agree(turns in prop::collection::vec(turn(), 1..40)) {
        let (fresh, model) = (fresh(), Model::default());
        for turn in beginning().into_iter().chain(named("r", turns)) {
            prop_assert_eq!(turn.apply(&*fresh.store), turn.apply(&model), "{:?}", turn);
            prop_assert_eq!(fresh.store.generation().unwrap(), model.generation().unwrap(), "{:?}", turn);
        }
        prop_assert_eq!(dump(&*fresh.store), dump(&model));
        prop_assert_eq!(random::dump(&*fresh.store, true), random::dump(&model, true));
    }

    #[test]
    fn any_interleaving_of_two_writers_is_one_order(
        first in prop::collection::vec(trailed(), 1..16),
        second in prop::collection::vec(trailed(), 1..16),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        // A handle of its own for each, as two processes have.
        let stores = [patient(&path), patient(&path)];
        let writers = [named("a", first), named("b", second)];
        let model = Model::default();
        let beginning = beginning();
        for turn in &beginning {
            prop_assert_eq!(turn.apply(&stores[0]), turn.apply(&model));
        }
        let said: Vec<Vec<_>> = std::thread::scope(|scope| {
            let write = |(store, turns): (&Sqlite, &Vec<Turn>)| turns.iter().map(|turn| turn.apply(store)).collect();
            let both: Vec<_> = stores.iter().zip(&writers).map(|pair| scope.spawn(move || write(pair))).collect();
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let of = |request: &str| {
            let (writer, number) = request.split_once('-').unwrap();
            let (writer, number) = (usize::from(writer == "b"), number.parse::<usize>().unwrap());
            (&writers[writer][number], &said[writer][number])
        };
        let rows = trail(&stores[0]);
        prop_assert_eq!(rows.len(), beginning.len() + writers[0].len() + writers[1].len());
        for row in rows.into_iter().skip(beginning.len()) {
            let (turn, said) = of(&row.request_id);
            prop_assert_eq!(&turn.apply(&model), said, "{:?}", turn);
        }
        prop_assert_eq!(dump(&stores[1]), dump(&model));
        prop_assert_eq!(random::dump(&stores[1], true), random::dump(&model, true));
    }
}

#[test]
fn one_approval_is_good_for_one_of_many_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    patient(&path);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let one = |number: usize| {
            let approval = Some(Approval { handle: "h".into(), expires_at: at(300) });
            let deed = crate::store::workspace::Deed { approval, ..deed(&number.to_string()) };
            act(&patient(&path), deed, new(&format!("e{number}")))
        };
        let all: Vec<_> = (0..20).map(|number| scope.spawn(move || one(number))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.done.is_ok()).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.done == Err(ActFault::ApprovalUsed)).count(), 19);
    let store = patient(&path);
    let count = |outcome| store.audit(&AuditQuery { outcome: Some(outcome), limit: 99, ..AuditQuery::default() }).unwrap().1;
    assert_eq!((count("ok"), count("refused")), (1, 19));
    assert_eq!(store.authored(&AuthoredQuery { limit: 99, ..AuthoredQuery::default() }).unwrap().1, 1);
}

#[test]
fn the_trail_is_only_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    act(&store, deed("d"), new("e"));
    let before = trail(&store);
    let other = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE audit_m SET actor = 'bob'",
        "UPDATE audit_m SET number = 7",
        "DELETE FROM audit_m",
        "REPLACE INTO audit_m SELECT number, at, 'bob', role, tool, digest, outcome, detail, address, request_id FROM audit_m",
        "INSERT OR REPLACE INTO audit_m SELECT number, at, 'bob', role, tool, digest, outcome, detail, address, request_id FROM audit_m",
    ] {
        let error = other.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("the trail is only added to"), "{sql}: {error}");
    }
    assert_eq!(trail(&store), before);
}

#[test]
fn no_question_reaches_the_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    act(&store, deed("d"), new("e"));
    let ask = |sql: String| store.query(&Query { sql, values: vec![], limit: 9 });
    let tables: Vec<String> = {
        let other = Connection::open(&path).unwrap();
        let mut statement = other.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger') AND sql IS NOT NULL").unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<rusqlite::Result<_>>().unwrap()
    };
    let own = [
        "authored_m",
        "authored_cases_m",
        "queue_m",
        "audit_m",
        "remembered_m",
        "approvals_m",
        "traces_m",
        "trace_chunks_m",
        "connections_m",
    ];
    for table in own {
        assert!(tables.iter().any(|name| name == table), "{table}");
        for sql in [
            format!("SELECT * FROM {table}"),
            format!("SELECT count(*) FROM {table}"),
            format!("SELECT 1 FROM runs WHERE EXISTS (SELECT 1 FROM main.{table})"),
            format!("WITH mine AS (SELECT * FROM {table}) SELECT * FROM mine"),
        ] {
            let refusal = ask(sql.clone()).unwrap_err().to_string();
            assert!(refusal.contains(&format!("the table {table} is not open")), "{sql}: {refusal}");
        }
    }
    assert!(store.objects().unwrap().iter().all(|object| !object.name.ends_with("_m")));
    // An acceptance is what is open of it, and says so of the run.
    log("a", 1).with([attempt("1", crate::domain::outcome::Outcome::Pass)]).put(&store).unwrap();
    let accept = Act::AcceptBaseline { run_id: "Ra".into(), evaluation: Some("e".into()), note: Some("why".into()) };
    act(&store, deed("d"), accept).done.unwrap();
    let rows = ask("SELECT run_id, evaluation, accepted_by, accepted_at, note, replaces, superseded_at FROM baselines".into()).unwrap();
    let expected = serde_json::json!([["Ra", "e", "ann", "2027-01-15T08:00:00Z", "why", null, null]]);
    assert_eq!(serde_json::to_value(rows.rows).unwrap(), expected);
}

#[test]
fn texts_are_hidden_from_who_may_not_see_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut store = open(&path).unwrap();
    let acts = [
        new("e"),
        Act::CreateConnection { id: "c".into(), kind: "directory".into(), name: "n".into(), config: serde_json::json!({"path": "secret"}) },
        Act::CreateTrace(NewTrace {
            trace_id: "t".into(),
            name: "secret".into(),
            status: None,
            duration_ms: None,
            lines: vec!["\"secret\"".into()],
            metadata: serde_json::Map::from_iter([("k".to_owned(), "secret".into())]),
            expires_at: at(9),
        }),
        Act::SetStatus { evaluation: "secret".into(), status: crate::store::workspace::EvaluationStatus::Active },
    ];
    acts.into_iter().for_each(|what| drop(act(&store, deed("d"), what)));
    let all = |store: &Sqlite| {
        let authored = store.authored(&AuthoredQuery { limit: 9, ..AuthoredQuery::default() }).unwrap();
        let cases = store.authored_cases("e", 0, 9).unwrap();
        let audit = store.audit(&AuditQuery { limit: 9, ..AuditQuery::default() }).unwrap();
        format!("{authored:?} {cases:?} {audit:?} {:?} {:?}", store.connections().unwrap(), store.trace("t", at(0)).unwrap())
    };
    assert_eq!(all(&store).matches("secret").count(), 8);
    store.text = false;
    let hidden = all(&store);
    assert!(!hidden.contains("secret") && hidden.contains("\"e\"") && hidden.contains("refused"), "{hidden}");
}

/// The other process of `a_kill_leaves_whole_deeds`; does nothing by itself.
#[test]
fn deeds_of_another_process() {
    let Some(path) = std::env::var_os("RUNLORE_TEST_DEEDS") else { return };
    let store = patient(Path::new(&path));
    for number in 0.. {
        let name = format!("{}-{number}", std::process::id());
        let approval = Some(Approval { handle: name.clone(), expires_at: at(300) });
        let deed = crate::store::workspace::Deed { approval, idempotency_key: Some(name.clone()), ..deed(&name) };
        act(&store, deed, new(&name)).done.unwrap();
    }
}

#[test]
fn a_kill_leaves_whole_deeds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = patient(&path);
    let spawn = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::sqlite::tests::workspace::deeds_of_another_process"])
            .env("RUNLORE_TEST_DEEDS", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children = [spawn(), spawn()];
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while store.audit(&AuditQuery::default()).unwrap().1 < 40 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    children.iter_mut().for_each(|child| {
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let count = |table: &str| -> i64 {
        Connection::open(&path).unwrap().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    let rows = trail(&store).len() as i64;
    let tables = ["authored_m", "authored_cases_m", "approvals_m", "remembered_m"];
    assert_eq!((tables.map(count), store.generation().unwrap()), ([rows; 4], rows as u64));
}
