//! The words of a question, before the database sees it.
//!
//! Promises: it begins with SELECT or WITH; it names no helper table; no table expression takes the name of an open table. SQLite's authorizer
//! does not tell what a question names from what a view reads for it, so this must.
//! Does not: parse (the database does); what this cannot read as tokens is refused.

use std::collections::BTreeSet;

use sqlparser::{
    dialect::SQLiteDialect,
    tokenizer::{Token, Tokenizer},
};

use super::reach::Reach;
use crate::{
    domain::{attempt::shorten, text::clean},
    store::query::QueryFault,
};

/// Refuses what is no question; else the names of the table expressions that it defines, in lower case.
pub(super) fn check(sql: &str, reach: &Reach) -> Result<BTreeSet<String>, QueryFault> {
    if sql.contains('\0') {
        // The database would read up to it, and this further.
        return Err(QueryFault::Refused("the query holds a NUL character; take it out".to_owned()));
    }
    let dialect = SQLiteDialect {};
    let tokens = Tokenizer::new(&dialect, sql).tokenize();
    let tokens = tokens.map_err(|error| QueryFault::Refused(clean(&shorten(&format!("the query cannot be read: {error}"), 200))))?;
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    begins_well(tokens.first())?;
    let mut defined = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(name) = name(token).map(str::to_lowercase) else { continue };
        let after = tokens.get(at + 1..).unwrap_or_default();
        // A text that is compared with is no name, whatever it says.
        let is_text = matches!(token, Token::SingleQuotedString(_)) && !is_named(at.checked_sub(1).and_then(|before| tokens.get(before)));
        if reach.closed.contains(&name) && !is_text {
            return Err(QueryFault::Refused(format!("the table {name} is not open to queries; query_schema lists those that are")));
        }
        if is_defined(after) {
            if reach.open.contains(&name) {
                let sentence = format!("the query names a table expression {name}, as an open table is named; give it another name");
                return Err(QueryFault::Refused(sentence));
            }
            defined.insert(name);
        }
    }
    Ok(defined)
}

/// Whether a text stands where a table's name is due.
fn is_named(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Comma | Token::Period | Token::LParen) => true,
        Some(Token::Word(word)) => ["from", "join"].contains(&word.value.to_lowercase().as_str()),
        _ => false,
    }
}

fn begins_well(first: Option<&Token>) -> Result<(), QueryFault> {
    let word = match first {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        Some(other) => other.to_string(),
        None => return Err(QueryFault::Refused("the query is empty; give one SELECT or WITH".to_owned())),
    };
    if matches!(word.as_str(), "SELECT" | "WITH") {
        return Ok(());
    }
    let word = clean(&shorten(&word, 40));
    Err(QueryFault::Refused(format!("the query begins with {word}; give one SELECT or WITH, which is all that may be asked")))
}

/// What a token names, in whichever quotes: SQLite takes texts for names where a name is due.
fn name(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) => Some(&word.value),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// Whether what follows a name makes it that of a table expression: `AS (`, `AS [NOT] MATERIALIZED (`, or columns and then `AS`.
fn is_defined(after: &[Token]) -> bool {
    let word = |token: Option<&Token>, wanted: &str| matches!(token, Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(wanted));
    match after.first() {
        Some(Token::LParen) => {
            let end = after.iter().position(|token| *token == Token::RParen);
            end.is_some_and(|end| word(after.get(end + 1), "AS"))
        }
        first if word(first, "AS") => {
            let second = after.get(1);
            second == Some(&Token::LParen) || word(second, "MATERIALIZED") || word(second, "NOT")
        }
        _ => false,
    }
}
