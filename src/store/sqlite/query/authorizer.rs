//! What a question may touch: the open tables and views, and a list of functions.
//!
//! Promises: what is not allowed is denied by the database before it runs; of a helper table only what open views read is read; columns of text read as NULL where the handle may not see texts (decision 35).
//! Does not: limit time or size.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::reach::Reach;

/// Functions that read nothing, change nothing and cost what their arguments do.
const FUNCTIONS: &[&str] = &[
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "glob",
    "group_concat",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_each",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_quote",
    "json_tree",
    "json_type",
    "json_valid",
    "->",
    "->>",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pi",
    "pow",
    "power",
    "quote",
    "radians",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "tan",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unicode",
    "unixepoch",
    "upper",
];
/// Tables that are functions: they read their argument alone.
const TABLE_FUNCTIONS: &[&str] = &["json_each", "json_tree"];

/// Columns of helper tables that hold text of cases and attempts.
const TEXTS: &[(&str, &str)] = &[
    ("cases_m", "input"),
    ("cases_m", "target"),
    ("outputs_m", "output"),
    ("attempts_m", "error"),
    ("checks_m", "value"),
    ("checks_m", "label"),
    ("checks_m", "answer"),
    ("checks_m", "reason"),
    // A digest of the reason: whoever guesses it could check the guess.
    ("signatures_m", "signature"),
    ("signatures_m", "reason"),
    ("answers_m", "answer"),
];

/// Judges what a question touches, and remembers what it denied.
pub(super) struct Denials {
    reach: &'static Reach,
    /// Table expressions of the question itself.
    defined: BTreeSet<String>,
    text: bool,
    denied: Mutex<Option<String>>,
}

impl Denials {
    /// A judge over a question that defines these table expressions.
    pub(super) const fn new(reach: &'static Reach, defined: BTreeSet<String>, text: bool) -> Self {
        Self { reach, defined, text, denied: Mutex::new(None) }
    }

    /// The open tables and views.
    pub(super) const fn open(&self) -> &BTreeSet<String> {
        &self.reach.open
    }

    pub(super) fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        match context.action {
            AuthAction::Select | AuthAction::Recursive => Authorization::Allow,
            AuthAction::Read { table_name, column_name } => self.read(table_name, column_name),
            AuthAction::Function { function_name } if FUNCTIONS.contains(&function_name.to_ascii_lowercase().as_str()) => {
                Authorization::Allow
            }
            AuthAction::Function { function_name } => self.deny(format!(
                "the function {} may not be used; {}",
                short(function_name),
                "those that read and compute may, such as count, avg, json_extract and strftime"
            )),
            _ => self.deny(
                "the query does something else than select; give one SELECT or WITH over the tables that query_schema lists".to_owned(),
            ),
        }
    }

    fn read(&self, table: &str, column: &str) -> Authorization {
        let named = table.to_lowercase();
        let own = self.reach.open.contains(&named) || self.defined.contains(&named) || TABLE_FUNCTIONS.contains(&named.as_str());
        // What open views read of a helper table; that none is named by the question itself, `words` has seen to.
        if !own && !self.reach.reads(table, column) {
            return self.deny(format!("the table {} is not open to queries; query_schema lists those that are", short(table)));
        }
        if !self.text && TEXTS.contains(&(table, column)) { Authorization::Ignore } else { Authorization::Allow }
    }

    fn deny(&self, why: String) -> Authorization {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        Authorization::Deny
    }

    /// Why it was denied.
    pub(super) fn sentence(&self) -> String {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone();
        denied.unwrap_or_else(|| "the query may not do that; give one SELECT or WITH over the tables that query_schema lists".to_owned())
    }
}

fn short(name: &str) -> String {
    crate::domain::text::clean(&crate::domain::attempt::shorten(name, 80))
}
