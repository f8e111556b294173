//! The contract, and what only a file can do.
//!
//! Promises: each test has a directory of its own.
//! Does not: repeat the contract.

mod cost;
mod file;
mod given_up;
mod views;
mod workspace;

use super::*;
use crate::{
    auth::Caller,
    store::contract::{Fresh, contract, workspace_contract},
};

fn open(path: &Path) -> Result<Sqlite> {
    Sqlite::open(path, &Caller::local().local_scope(), &Options::default())
}

fn fresh() -> Fresh {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("history.db")).unwrap();
    Fresh { store: Box::new(store), _dir: Some(dir) }
}

contract!(fresh);
workspace_contract!(fresh);

mod random {
    use proptest::prelude::*;

    use super::fresh;
    use crate::store::{
        Store,
        contract::{
            Log,
            random::{dump, one_log, step},
        },
        model::Model,
    };

    /// The first lines that differ, with what stands before them: a whole dump is unreadable.
    fn assert_same(a: &str, b: &str) {
        let place = a.lines().zip(b.lines()).position(|(a, b)| a != b);
        let around = |text: &str| {
            let from = place.unwrap_or(0).saturating_sub(12);
            text.lines().skip(from).take(18).collect::<Vec<_>>().join("\n")
        };
        assert!(a == b, "first:\n{}\nsecond:\n{}", around(a), around(b));
    }

    /// Looks at every file again until nothing changes, as the indexer does.
    fn settle(store: &dyn Store, files: &[Log]) {
        for _ in 0..12 {
            let known = store.files(None).unwrap();
            let stale = |log: &&Log| !known.iter().any(|row| row.stamp.path == log.file.path && row.stamp.digest == log.file.digest);
            let stale: Vec<&Log> = files.iter().filter(stale).collect();
            if stale.is_empty() {
                return;
            }
            stale.into_iter().for_each(|log| drop(log.put(store)));
        }
        panic!("copies take each other's place for ever");
    }

    /// Few by default, since each opens a file or two; `PROPTEST_CASES=2000` to look harder.
    fn cases() -> u32 {
        std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sqlite_and_the_model_agree(steps in prop::collection::vec(step(), 1..10)) {
            let (fresh, model) = (fresh(), Model::default());
            for step in &steps {
                prop_assert_eq!(step.apply(&*fresh.store), step.apply(&model));
                prop_assert_eq!(fresh.store.generation().unwrap(), model.generation().unwrap());
            }
            assert_same(&dump(&*fresh.store, true), &dump(&model, true));
        }

        #[test]
        fn the_order_of_import_does_not_matter(
            logs in prop::collection::vec(one_log().prop_filter("whole", |log| log.attempts.iter().all(Result::is_ok)), 1..8),
            order in any::<prop::sample::Index>(),
            reverse in any::<bool>(),
            vanished in any::<prop::sample::Index>(),
        ) {
            // The last log of each path is what the file holds in the end; earlier ones are what it held before.
            let mut files: Vec<Log> = Vec::new();
            for log in &logs {
                files.retain(|other| other.file.path != log.file.path);
                files.push(log.clone());
            }
            let gone = files.remove(vanished.index(files.len()));
            let (straight, turned) = (fresh(), fresh());
            logs.iter().for_each(|log| drop(log.put(&*straight.store)));
            let gone = || crate::store::Change::Vanished { paths: vec![gone.file.path.clone()] };
            straight.store.apply(gone()).unwrap();
            settle(&*straight.store, &files);
            let mut other = files.clone();
            other.rotate_left(order.index(files.len().max(1)).min(files.len()));
            if reverse {
                other.reverse();
            }
            other.iter().for_each(|log| drop(log.put(&*turned.store)));
            turned.store.apply(gone()).unwrap();
            settle(&*turned.store, &files);
            assert_same(&dump(&*straight.store, false), &dump(&*turned.store, false));
        }
    }
}
