//! Adds up what a run's attempts took, and searches documents that are handed in.
//!
//! Promises: costs are added in billionths, so that the order of attempts makes no difference; an index of documents lives in memory, for one
//! search, and knows nothing of the project's file.
//! Does not: read documents.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::names;
use crate::{
    domain::figures::Figures,
    store::{
        Result,
        survey::{Document, Hit},
    },
};

/// Outcomes 0, 1 and 3 are pass, fail and unscored: what came to an end.
const FIGURES: &str = "SELECT e.id, count(*),
    sum(CAST(round(a.cost_usd * 1e9) AS INTEGER)), count(a.cost_usd),
    sum(a.duration_ms) FILTER (WHERE a.outcome IN (0, 1, 3)), count(a.duration_ms) FILTER (WHERE a.outcome IN (0, 1, 3)),
    sum(a.input_tokens), sum(a.output_tokens), sum(a.total_tokens), count(a.total_tokens)
    FROM attempts_m a JOIN evaluations_m e ON e.eval_no = a.eval_no
    WHERE a.run_no = ?1 AND a.n IS NOT NULL GROUP BY a.eval_no";

pub(super) fn figures(connection: &Connection, run: &str) -> Result<BTreeMap<String, Figures>> {
    let mut out = BTreeMap::new();
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(out) };
    let mut statement = connection.prepare_cached(FIGURES)?;
    let mut rows = statement.query([run_no])?;
    while let Some(row) = rows.next()? {
        let number = |at: usize| row.get::<_, Option<i64>>(at).map(|value| value.map(names::natural));
        let count = |at: usize| number(at).map(Option::unwrap_or_default);
        let figures = Figures {
            attempts: count(1)?,
            cost_usd: row.get::<_, Option<i64>>(2)?.map(|billionths| billionths as f64 / 1e9),
            costed: count(3)?,
            duration_ms: number(4)?,
            timed: count(5)?,
            input_tokens: number(6)?,
            output_tokens: number(7)?,
            total_tokens: number(8)?,
            tokened: count(9)?,
        };
        out.insert(row.get(0)?, figures);
    }
    Ok(out)
}

const INDEX: &str = "CREATE VIRTUAL TABLE documents USING fts5 (title, text, tokenize = 'porter unicode61 remove_diacritics 2')";
const INSERT: &str = "INSERT INTO documents (rowid, title, text) VALUES (?1, ?2, ?3)";
/// A word of the title is worth eight of the text.
const SEARCH: &str = "SELECT rowid, -bm25(documents, 8.0, 1.0), snippet(documents, 1, '**', '**', '...', 24)
    FROM documents WHERE documents MATCH ?1 ORDER BY bm25(documents, 8.0, 1.0), rowid LIMIT ?2";
const COUNT: &str = "SELECT count(*) FROM documents WHERE documents MATCH ?1";

pub(super) fn search(documents: &[Document], words: &[String], limit: usize) -> Result<(Vec<Hit>, u64)> {
    if words.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(INDEX)?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for (number, document) in (0_i64..).zip(documents) {
            insert.execute(params![number, document.title, document.text])?;
        }
    }
    transaction.commit()?;
    let all = found(&connection, &matching(words, " AND "), limit)?;
    if all.1 > 0 || words.len() == 1 { Ok(all) } else { found(&connection, &matching(words, " OR "), limit) }
}

/// Each word as a text of FTS5's own, in which nothing but a quote and an end has a meaning.
fn matching(words: &[String], between: &str) -> String {
    words.iter().map(|word| format!("\"{}\"*", word.replace(['"', '\0'], " "))).collect::<Vec<_>>().join(between)
}

fn found(connection: &Connection, matching: &str, limit: usize) -> Result<(Vec<Hit>, u64)> {
    let total: i64 = connection.query_row(COUNT, [matching], |row| row.get(0))?;
    let mut statement = connection.prepare(SEARCH)?;
    let rows = statement.query_map(params![matching, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let number: i64 = row.get(0)?;
        Ok(Hit { document: usize::try_from(number).unwrap_or_default(), score: row.get(1)?, snippet: row.get(2)? })
    })?;
    Ok((rows.collect::<rusqlite::Result<_>>()?, names::natural(total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<Document> {
        let one = |title: &str, text: &str| Document { title: title.to_owned(), text: text.to_owned() };
        vec![
            one("Baselines", "A run that was accepted as the reference."),
            one("Runs", "What regressed since the baseline was accepted."),
            one("Other", "Nothing of the kind; \"quoted\" café."),
        ]
    }

    fn asked(words: &[&str]) -> (Vec<usize>, u64) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (hits, total) = search(&documents(), &words, 2).unwrap();
        assert!(hits.iter().all(|hit| hit.score > 0.0), "{hits:?}");
        (hits.into_iter().map(|hit| hit.document).collect(), total)
    }

    #[test]
    fn titles_stems_beginnings_and_accents() {
        assert_eq!(asked(&["baseline"]), (vec![0, 1], 2));
        assert_eq!(asked(&["regress"]).0, [1]);
        assert_eq!(asked(&["accepting", "reference"]).0, [0]);
        assert_eq!(asked(&["cafe"]).0, [2]);
        // None holds both.
        assert_eq!(asked(&["reference", "nothing"]).1, 2);
        assert_eq!((asked(&["absent"]), asked(&[])), ((vec![], 0), (vec![], 0)));
    }

    #[test]
    fn no_word_is_a_command() {
        for word in ["\"", "*", "NEAR(", "title:", "a\" OR \"b", "-", "^x", "AND", "'", "\u{0}", "(((", "{title}:"] {
            let _ = search(&documents(), &[word.to_owned()], 5).unwrap();
        }
    }

    #[test]
    fn the_words_are_marked_where_they_stand() {
        let (hits, _) = search(&documents(), &["regressed".to_owned()], 1).unwrap();
        assert_eq!(hits[0].snippet, "What **regressed** since the baseline was accepted.");
    }
}
