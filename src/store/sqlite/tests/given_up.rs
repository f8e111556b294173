//! Reads that nobody waits for any more.
//!
//! Promises: what is read never ends by itself, so that a read that ends was ended.
//! Does not: measure how soon, beyond what a person would notice.

use super::*;

/// A store with `readers` connections whose look-up of arms never ends: its table became a view over all numbers.
fn endless(path: &Path, readers: usize) -> Arc<Sqlite> {
    let options = Options { readers_max: readers, busy_timeout_ms: 1, ..Options::default() };
    let store = Sqlite::open(path, &Caller::local().local_scope(), &options).unwrap();
    crate::store::contract::log("R", 0).put(&store).unwrap();
    let view = "ALTER TABLE run_arms_m RENAME TO run_arms_kept;
        CREATE VIEW run_arms_m AS SELECT * FROM run_arms_kept
        WHERE (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n) > 0";
    Connection::open(path).unwrap().execute_batch(view).unwrap();
    Arc::new(store)
}

fn run(store: &Sqlite) -> String {
    store.select(&Selector::Latest(0), 1).unwrap().pop().unwrap().run_id
}

#[test]
fn a_read_that_has_begun_ends_and_its_connection_reads_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = endless(&dir.path().join("history.db"), 1);
    let (run, cancel) = (run(&store), Cancel::default());
    let heeding = store.clone().heeding(&cancel);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| heeding.arms(&[run]));
        // The one connection is lent: the read has begun.
        while store.declared().is_ok() {
            std::thread::yield_now();
        }
        assert!(matches!(store.declared(), Err(Error::Busy)));
        cancel.raise();
        assert!(matches!(reading.join().unwrap(), Err(Error::Cancelled)));
    });
    assert!(store.declared().is_ok(), "the connection came back, and does not end at the flag of who had it before");
    assert!(matches!(heeding.declared(), Err(Error::Cancelled)), "nothing more is begun for who has left");
}

#[test]
fn a_wait_for_a_connection_ends_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = endless(&path, 1);
    let patient = Sqlite { options: Options { busy_timeout_ms: 600_000, ..store.options.clone() }, ..(*store).clone() };
    let patient = Sqlite { readers: Arc::new(connect::Pool::new(None, 1, &patient.options)), ..patient };
    let held = patient.readers.lend(None, || connect::reader(&path, false, &patient.options)).unwrap();
    let cancel = Cancel::default();
    let heeding = Arc::new(patient.clone()).heeding(&cancel);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| heeding.declared());
        cancel.raise();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Cancelled)));
    });
    drop(held);
    assert!(patient.declared().is_ok());
}

#[test]
fn a_flag_that_is_not_raised_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&dir.path().join("history.db")).unwrap());
    let heeding = store.clone().heeding(&Cancel::default());
    crate::store::contract::log("R", 0).put(&*heeding).unwrap();
    assert_eq!((heeding.generation().unwrap(), store.generation().unwrap()), (1, 1), "one project, and writes are taken");
}
