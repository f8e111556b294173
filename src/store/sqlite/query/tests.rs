//! Questions over a small store: what is answered, what is refused, and that every way around is closed.

use serde_json::{Value, json};

use super::execute;
use crate::{
    domain::outcome::Outcome,
    store::{
        Store,
        contract::{attempt, log},
        query::{Job, Query, QueryFault, QueryLimits, Rows},
        sqlite::{Options, Sqlite},
    },
};

struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&dir.path().join("p.db"), &crate::auth::Caller::local().local_scope(), &Options::default()).unwrap();
        log("a", 1).with([attempt("1", Outcome::Pass), attempt("2", Outcome::Fail)]).put(&store as &dyn Store).unwrap();
        Self { dir }
    }

    fn job(&self, sql: &str) -> Job {
        let query = Query { sql: sql.to_owned(), values: vec![], limit: 100 };
        Job {
            file: self.dir.path().join("p.db"),
            read_only: false,
            text: true,
            query,
            limits: QueryLimits { deadline_ms: 2_000, ..QueryLimits::default() },
        }
    }

    fn ask(&self, sql: &str) -> Result<Rows, QueryFault> {
        execute(&self.job(sql), false)
    }

    fn refusal(&self, sql: &str) -> String {
        match self.ask(sql) {
            Err(fault) => fault.to_string(),
            Ok(rows) => panic!("{sql}: {rows:?}"),
        }
    }
}

#[test]
fn a_question_is_answered() {
    let small = Small::new();
    let rows = small.ask("SELECT case_id, outcome, score FROM attempts ORDER BY case_id").unwrap();
    assert_eq!(rows.columns, ["case_id", "outcome", "score"]);
    assert_eq!(rows.rows, [vec![json!("1"), json!("pass"), json!(1.0)], vec![json!("2"), json!("fail"), Value::Null]]);
    assert!(!rows.truncated);
    for (limit, truncated) in [(1, true), (2, false)] {
        let mut job = small.job("-- a comment\n/* and another */ with x as (select * from attempts) select count(*) over () from x");
        job.query.limit = limit;
        let rows = execute(&job, false).unwrap();
        assert_eq!((rows.rows.len(), rows.truncated), (limit, truncated));
    }
    let mut job = small.job("SELECT ?1, ?2, ?3, ?4");
    job.query.values = vec![Value::Null, json!(true), json!("a'b"), json!(1.5)];
    assert_eq!(execute(&job, false).unwrap().rows, [vec![Value::Null, json!(1), json!("a'b"), json!(1.5)]]);
}

#[test]
fn values_are_exact_or_texts() {
    let small = Small::new();
    let rows = small.ask("SELECT 9007199254740993, -9007199254740992, x'0001ff', 9e999, 'é'").unwrap();
    assert_eq!(
        rows.rows,
        [vec![json!("9007199254740993"), json!(-9007199254740992_i64), json!({"base64": "AAH/"}), Value::Null, json!("é")]]
    );
}

#[test]
fn every_way_around_is_closed() {
    let small = Small::new();
    let ways = [
        "WITH x AS (SELECT 1) DELETE FROM attempts_m",
        "/**/DELETE FROM attempts_m",
        "SELECT 1; ATTACH 'x' AS y",
        "SELECT 1; SELECT 2",
        "PRAGMA user_version",
        "SELECT * FROM pragma_table_info('attempts_m')",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO 'x'",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT randomblob(100)",
        "SELECT zeroblob(5e7)",
        "SELECT printf('%.*c', 5e8, 'x')",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM dbstat",
        "SELECT * FROM logs_m",
        "SELECT * FROM 'logs_m'",
        "SELECT * FROM [logs_m]",
        "SELECT * FROM main.logs_m",
        "SELECT * FROM files",
        "SELECT (SELECT header FROM logs_m)",
        "SELECT * FROM attempts WHERE EXISTS (SELECT 1 FROM transcripts_m)",
        "WITH runs AS (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH runs(h) AS (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH \"runs\" AS (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH [runs] AS MATERIALIZED (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH 'runs' AS NOT MATERIALIZED (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH RUNS /* x */ AS /* y */ (SELECT header FROM logs_m) SELECT * FROM runs",
        "WITH `cells` AS (SELECT header FROM logs_m) SELECT * FROM cells",
        "SELECT * FROM (SELECT header FROM logs_m) AS runs",
        "SELECT * FROM (SELECT header FROM logs_m) runs",
        "EXPLAIN SELECT 1",
        "VALUES (1)",
        "",
        "-- nothing",
        "CREATE TEMP TABLE t (a)",
        "INSERT INTO meta VALUES (1, 2)",
        "REPLACE INTO meta VALUES (1, 2)",
        "BEGIN",
        "SELECT count(*) FROM runs\0 WHERE run_id = 'x'",
    ];
    for way in ways {
        let refusal = small.refusal(way);
        assert!(!refusal.contains("p.db") && refusal.len() < 400, "{way}: {refusal}");
    }
    assert_eq!(small.ask("SELECT count(*) FROM attempts").unwrap().rows, [vec![json!(2)]]);
}

#[test]
fn the_index_of_words_is_not_open() {
    let small = Small::new();
    for sql in [
        "SELECT * FROM search_m",
        "SELECT rowid FROM search_m WHERE search_m MATCH 'expected'",
        "SELECT rowid FROM search_m('expected')",
        "SELECT * FROM search_m_data",
        "SELECT * FROM search_m_docsize",
        "SELECT * FROM unsearched_m",
        "SELECT * FROM fts5vocab('search_m', 'row')",
        "SELECT bm25(search_m) FROM search_m",
    ] {
        assert!(small.ask(sql).is_err(), "{sql}");
    }
    assert!(small.refusal("SELECT * FROM search_m").contains("search_m"));
}

#[test]
fn a_refusal_helps() {
    let small = Small::new();
    assert_eq!(
        small.refusal("SELECT outcom FROM attempts"),
        "no such column: outcom at line 1, column 8, near \"outcom FROM attempts\"; did you mean outcome?"
    );
    assert!(small.refusal("SELECT 1\n  FROM atempts").ends_with("did you mean attempts?"));
    assert!(small.refusal("SELECT zzzzqqqq FROM attempts").ends_with("query_schema lists the tables and their columns"));
    assert_eq!(small.refusal("DROP TABLE x"), "the query begins with DROP; give one SELECT or WITH, which is all that may be asked");
    assert!(small.refusal("SELECT * FROM logs_m").starts_with("the table logs_m is not open to queries"));
    assert!(small.refusal("SELECT count(* FROM runs").contains("near \""));
}

#[test]
fn bombs_end_at_their_limits() {
    let small = Small::new();
    let mut endless = small.job("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n");
    endless.limits.deadline_ms = 100;
    assert_eq!(execute(&endless, false), Err(QueryFault::Late(100)));
    assert!(
        matches!(small.ask("SELECT replace(hex(1234567890), '3', hex(json_array(1,2,3))) || substr(group_concat(value || 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'), 1) FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 100000) SELECT value FROM n)"), Err(QueryFault::Refused(why)) if why.contains("longer than"))
    );
    let deep = format!("SELECT {}1{}", "abs(".repeat(200), ")".repeat(200));
    assert!(matches!(small.ask(&deep), Err(QueryFault::Refused(_))));
    let long = format!("SELECT '{}'", "x".repeat(70_000));
    assert!(matches!(small.ask(&long), Err(QueryFault::Refused(_))));
    let mut wide = small.job("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000) SELECT hex(substr('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 1)) FROM n");
    wide.query.limit = 1000;
    wide.limits.result_bytes = 10_000;
    assert!(matches!(execute(&wide, false), Err(QueryFault::Refused(why)) if why.contains("select fewer columns")));
}

#[test]
fn texts_are_null_where_they_are_hidden() {
    let small = Small::new();
    let ask = |text: bool| {
        let mut job = small.job("SELECT a.output, c.input, k.reason, k.value, a.outcome, coalesce(k.reason, 'gone') FROM attempts a JOIN cases c USING (evaluation, case_id) JOIN checks k USING (attempt) WHERE a.case_id = '2'");
        job.text = text;
        execute(&job, false).unwrap().rows
    };
    assert_eq!(
        ask(true),
        [vec![json!("said"), json!("in"), json!("expected 4 got 2"), json!(0.25), json!("fail"), json!("expected 4 got 2")]]
    );
    assert_eq!(ask(false), [vec![Value::Null, Value::Null, Value::Null, Value::Null, json!("fail"), json!("gone")]]);
}

/// Questions made of the schema's own names, sound and unsound.
mod corpus {
    use proptest::{prelude::*, sample::select};

    use super::*;
    use crate::store::sqlite::open;

    const FUNCTIONS: [&str; 14] = [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "length",
        "abs",
        "lower",
        "typeof",
        "json_array",
        "hex",
        "quote",
        "load_extension",
        "zeroblob",
    ];
    const OPERATORS: [&str; 10] = ["=", "<", ">=", "+", "||", "LIKE", "IS NOT", "AND", "/", "->"];

    fn columns() -> Vec<String> {
        let all = open::objects().unwrap().into_iter().flat_map(|object| object.columns.into_iter().map(|column| column.name));
        all.chain(["*".into(), "rowid".into(), "nothing".into(), "1".into(), "NULL".into(), "'x'".into(), "?1".into()]).collect()
    }

    fn tables() -> Vec<String> {
        let all = open::objects().unwrap().into_iter().map(|object| object.name);
        all.chain(["runs_m", "sqlite_master", "json_each('[1]')", "x", "(SELECT 1 AS n)"].map(str::to_owned)).collect()
    }

    fn expression() -> impl Strategy<Value = String> {
        let leaf = select(columns()).prop_map(|name| name.clone());
        leaf.prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                (select(&FUNCTIONS[..]), inner.clone()).prop_map(|(name, of)| format!("{name}({of})")),
                (inner.clone(), select(&OPERATORS[..]), inner.clone()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
                inner.clone().prop_map(|of| format!("CASE WHEN {of} THEN {of} END")),
                inner.prop_map(|of| format!("count(*) OVER (PARTITION BY {of})")),
            ]
        })
    }

    fn question() -> impl Strategy<Value = String> {
        let parts = (
            prop::collection::vec(expression(), 1..4),
            prop::collection::vec(select(tables()), 1..3),
            prop::option::of(expression()),
            prop::option::of(expression()),
            prop::option::of(expression()),
            0..3_u8,
        );
        parts.prop_map(|(columns, tables, filter, group, order, wrap)| {
            let mut sql = format!("SELECT {} FROM {}", columns.join(", "), tables.join(" CROSS JOIN "));
            sql.extend(filter.map(|filter| format!(" WHERE {filter}")));
            sql.extend(group.map(|group| format!(" GROUP BY {group} HAVING {group}")));
            sql.extend(order.map(|order| format!(" ORDER BY {order}")));
            match wrap {
                0 => sql,
                1 => format!("WITH x AS ({sql}) SELECT * FROM x UNION ALL SELECT * FROM x"),
                _ => format!("SELECT * FROM ({sql}) WHERE EXISTS ({sql})"),
            }
        })
    }

    #[test]
    fn thousands_of_questions_run_or_fail_cleanly() {
        let small = Small::new();
        let mut answered = 0;
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3000));
        let ran = runner.run(&question(), |sql| {
            let mut job = small.job(&sql);
            (job.query.limit, job.limits.deadline_ms) = (5, 500);
            match execute(&job, false) {
                Ok(rows) => prop_assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len())),
                Err(QueryFault::Refused(why)) => {
                    prop_assert!(!why.is_empty() && !why.contains("p.db") && !why.contains("attempts_m a JOIN"), "{why}")
                }
                Err(QueryFault::Late(_)) => {}
                Err(other) => prop_assert!(false, "{sql}: {other:?}"),
            }
            Ok(())
        });
        ran.unwrap();
        // A generator that made nothing sound would prove little.
        for name in tables().iter().filter(|name| open::TABLES.contains(&name.as_str())) {
            answered += usize::from(small.ask(&format!("SELECT count(*), max(1) FROM {name}")).is_ok());
        }
        assert_eq!(answered, open::TABLES.len());
    }
}
