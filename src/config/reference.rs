//! The config's documents, written from the rows: `config/default.toml` and `config/reference.md`.
//!
//! Promises: a test fails when either file is stale, and writes it where `UPDATE=1` is set; nothing in them is written by hand.
//! Does not: know the store's tables: their chapters are handed in as [`Chapter`]s.

use super::keys::{LISTS, Row, SECTIONS, Section, Shape};
use std::fmt::Write;

/// A part of the reference that something else than the config writes, such as the columns of the open tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// Its heading.
    pub title: String,
    /// Its text, in Markdown.
    pub body: String,
}

/// The text of `config/default.toml`.
#[must_use]
pub fn default_toml() -> String {
    let mut text = String::from(
        "# Every key with its default. Written from src/config/keys.rs by a test (UPDATE=1): change it there.\n# A project's own .runlore/config.toml needs only the keys that it changes.\n",
    );
    for section in SECTIONS {
        for line in section.about {
            let _ = write!(text, "\n#{line}");
        }
        let _ = writeln!(text, "\n[{}]", section.name);
        section.rows.iter().filter(|row| tables(row).is_none()).for_each(|row| toml_key(&mut text, row));
        // What stands behind a table's head belongs to it: so they come last.
        section.rows.iter().filter(|row| tables(row).is_some()).for_each(|row| toml_tables(&mut text, row));
    }
    for list in LISTS {
        text.push('\n');
        toml_tables(&mut text, list);
    }
    text
}

/// The keys of each table, where the key is a list of tables.
const fn tables(row: &Row) -> Option<&'static [Row]> {
    if let Shape::Tables { rows, .. } = row.shape { Some(rows) } else { None }
}

/// An example in comments: there are none by default.
fn toml_tables(text: &mut String, row: &Row) {
    let mut inner = String::new();
    let rows = tables(row).unwrap_or_default();
    rows.iter().filter(|row| tables(row).is_none()).for_each(|row| toml_key(&mut inner, row));
    rows.iter().filter(|row| tables(row).is_some()).for_each(|row| toml_tables(&mut inner, row));
    toml_about(text, row);
    let _ = writeln!(text, "# [[{}]]", row.full_name());
    inner.lines().for_each(|line| text.push_str(&format!("# {line}\n")));
}

fn toml_about(text: &mut String, row: &Row) {
    for line in row.meaning {
        let _ = writeln!(text, "#{line}");
    }
    let _ = writeln!(text, "# {}. Why: {}.", bounds(row.shape), row.reason);
}

fn toml_key(text: &mut String, row: &Row) {
    toml_about(text, row);
    let _ = writeln!(text, "{} = {}", row.key, default(row.shape));
}

/// The text of `config/reference.md`: the keys, then `chapters`.
#[must_use]
pub fn markdown(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "# Reference\n\nWritten by a test from the source (UPDATE=1); change it there.\n\n## Config\n\nThe file is `--config FILE`, else `.runlore/config.toml` of the project; without either the defaults hold.\n",
    );
    SECTIONS.iter().for_each(|section| markdown_section(&mut text, section));
    text.push_str("\n### Tables of their own\n\n");
    markdown_rows(&mut text, LISTS);
    LISTS.iter().for_each(|list| markdown_tables(&mut text, list));
    for chapter in chapters {
        let _ = write!(text, "\n## {}\n\n{}\n", chapter.title, chapter.body.trim());
    }
    text
}

fn markdown_section(text: &mut String, section: &Section) {
    let _ = writeln!(text, "\n### [{}]\n\n{}\n", section.name, joined(section.about));
    markdown_rows(text, section.rows);
    section.rows.iter().for_each(|row| markdown_tables(text, row));
}

/// The keys of each of its tables, then those of the tables in it.
fn markdown_tables(text: &mut String, row: &Row) {
    let Some(rows) = tables(row) else { return };
    let _ = writeln!(text, "\n#### [[{}]]\n\n{}\n", row.full_name(), joined(row.meaning));
    markdown_rows(text, rows);
    rows.iter().for_each(|row| markdown_tables(text, row));
}

fn markdown_rows(text: &mut String, rows: &[Row]) {
    text.push_str("| key | default | bounds | meaning | why |\n| --- | --- | --- | --- | --- |\n");
    for row in rows {
        let (default, bounds, meaning) = (default(row.shape), bounds(row.shape), joined(row.meaning));
        let _ = writeln!(text, "| `{}` | `{default}` | {bounds} | {meaning} | {} |", row.key, row.reason);
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

fn default(shape: Shape) -> String {
    match shape {
        Shape::Number { default, .. } => grouped(default),
        Shape::Flag { default } => default.to_string(),
        Shape::Text { default } => format!("{default:?}"),
        Shape::Texts { default, .. } => format!("{default:?}"),
        Shape::Pairs { .. } => "{}".to_owned(),
        Shape::Tables { .. } => "[]".to_owned(),
    }
}

fn bounds(shape: Shape) -> String {
    match shape {
        Shape::Number { min, max, unit, .. } => format!("{} to {} {unit}", grouped(min), grouped(max)),
        Shape::Flag { .. } => "true or false".to_owned(),
        Shape::Text { .. } => "a text".to_owned(),
        Shape::Texts { most, .. } => format!("a list of at most {most} texts"),
        Shape::Pairs { most } => format!("a table of at most {most} texts"),
        Shape::Tables { most, .. } => format!("at most {most} tables"),
    }
}

/// `67108864` as `67_108_864`, which TOML reads too; four digits and fewer stay as they are.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What the reference holds beside the config's keys.
    fn chapters() -> Vec<Chapter> {
        let mut body = String::from(
            "The store is `.runlore/history.db`, a SQLite file. These are its open tables; times are RFC 3339 in UTC, `*_ms` milliseconds.\n\n| table | columns |\n| --- | --- |\n",
        );
        for object in crate::store::sqlite::open::objects().unwrap() {
            let columns: Vec<String> = object.columns.iter().map(|column| format!("`{}`", column.name)).collect();
            let _ = writeln!(body, "| `{}` | {} |", object.name, columns.join(", "));
        }
        vec![Chapter { title: "Open tables".to_owned(), body }]
    }

    /// Fails when `file` is not `text`; writes it where the environment says `UPDATE=1`.
    fn current(file: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
            std::fs::write(&path, text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{file}:1: it is stale; run `UPDATE=1 cargo test` and commit what it writes");
    }

    #[test]
    fn the_default_file_is_current() {
        current("config/default.toml", &default_toml());
    }

    #[test]
    fn the_reference_is_current() {
        current("config/reference.md", &markdown(&chapters()));
    }

    #[test]
    fn chapters_stand_after_the_keys() {
        let text = markdown(&[Chapter { title: "Tables".to_owned(), body: "a\n".to_owned() }]);
        assert!(text.ends_with("\n## Tables\n\na\n") && text.contains("| `rows_limit` | `500` | 1 to 10_000 rows |"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 2048, 16_384, 1_048_576].map(grouped), ["0", "999", "2048", "16_384", "1_048_576"]);
    }
}
