//! The contract, and what only a file can do.
//!
//! Promises: each test has a directory of its own.
//! Does not: repeat the contract.

use super::*;
use crate::{
    auth::Caller,
    store::contract::{Fresh, contract},
};

fn open(path: &Path) -> Result<Sqlite> {
    Sqlite::open(path, &Caller::local().local_scope(), &Options::default())
}

fn fresh() -> Fresh {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("history.db")).unwrap();
    Fresh { store: Box::new(store), dir: Some(dir) }
}

contract!(fresh);
