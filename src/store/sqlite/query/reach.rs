//! What the open views read, told by the database itself: each is prepared once under an authorizer that takes notes.
//!
//! Promises: made from today's schema, once per process; a column of a helper table that no open view reads is in no question's reach.
//! Does not: open a project's file.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use rusqlite::{
    Connection,
    hooks::{AuthAction, AuthContext, Authorization},
};

use crate::store::{
    Result,
    sqlite::{connect, open},
};

/// What questions may name and read.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The open tables and views, in lower case.
    pub(super) open: BTreeSet<String>,
    /// Every table that the schema has besides, in lower case: none may be named.
    pub(super) closed: BTreeSet<String>,
    /// Tables and columns that open views read.
    pub(super) columns: BTreeSet<(String, String)>,
}

/// The reach of today's schema.
pub(super) fn today() -> Result<&'static Reach> {
    static TODAY: LazyLock<Result<Reach>> = LazyLock::new(Reach::read);
    TODAY.as_ref().map_err(Clone::clone)
}

impl Reach {
    fn read() -> Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connect::migrate(&mut connection)?;
        let open: BTreeSet<String> = open::names(&connection)?.into_iter().collect();
        let closed = {
            let mut statement = connection.prepare("SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')")?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<BTreeSet<_>>>()?;
            names.difference(&open).cloned().collect()
        };
        let noted = Arc::new(Mutex::new(BTreeSet::new()));
        let notes = noted.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            if let AuthAction::Read { table_name, column_name } = context.action {
                notes.lock().unwrap_or_else(PoisonError::into_inner).insert((table_name.to_owned(), column_name.to_owned()));
            }
            Authorization::Allow
        }))?;
        for name in &open {
            connection.prepare(&format!("SELECT * FROM {name}"))?;
        }
        let columns = noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Self { open, closed, columns })
    }

    /// Whether an open view reads the column, or, where `column` is empty, anything of the table.
    pub(super) fn reads(&self, table: &str, column: &str) -> bool {
        if column.is_empty() {
            return self.columns.range((table.to_owned(), String::new())..).next().is_some_and(|(first, _)| first == table);
        }
        self.columns.contains(&(table.to_owned(), column.to_owned()))
    }
}
