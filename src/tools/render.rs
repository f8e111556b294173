//! Text for people: tables and words, the same for a terminal, a pipe and an agent but for width and colour.
//!
//! Promises: control characters of ids and texts never reach a terminal; plain text when piped.
//! Does not: decide what is shown.

use comfy_table::{Attribute, Cell as TableCell, Color, ContentArrangement, Table, presets};

use crate::domain::{
    cell::Verdict,
    outcome::{Counts, round3},
    time::Timestamp,
};

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns that fit; none for as wide as it gets.
    pub width: Option<u16>,
    /// Whether colours and bold may be used.
    pub colour: bool,
}

impl Style {
    /// For pipes and agents.
    pub const PLAIN: Style = Style { width: None, colour: false };
}

/// Rows that a text rendering shows; the JSON has them all.
pub const ROWS_SHOWN: usize = 60;

/// A table with a head. Cells are cleaned; a style without colour gives plain text.
pub struct Grid {
    table: Table,
    style: Style,
}

impl Grid {
    /// An empty table with these column heads.
    #[must_use]
    pub fn new(style: &Style, heads: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if let Some(width) = style.width {
            table.set_width(width);
        } else {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        if style.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(heads.iter().map(|head| paint(TableCell::new(head), *style, None, true)));
        Self { table, style: *style }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Text>) {
        let style = self.style;
        self.table.add_row(cells.into_iter().map(|text| paint(TableCell::new(clean(&text.text)), style, text.colour, false)));
    }

    /// The table as text, without trailing spaces.
    #[must_use]
    pub fn text(&self) -> String {
        self.table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

fn paint(cell: TableCell, style: Style, colour: Option<Color>, bold: bool) -> TableCell {
    let cell = if bold && style.colour { cell.add_attribute(Attribute::Bold) } else { cell };
    match colour.filter(|_| style.colour) {
        Some(colour) => cell.fg(colour),
        None => cell,
    }
}

/// A cell's text and colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    text: String,
    colour: Option<Color>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self { text: text.into(), colour: None }
    }
}

impl Text {
    /// Coloured text.
    #[must_use]
    pub fn coloured(text: impl Into<String>, colour: Color) -> Self {
        Self { text: text.into(), colour: Some(colour) }
    }
}

/// The colour of a verdict.
#[must_use]
pub const fn verdict_colour(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Pass => Color::Green,
        Verdict::Fail => Color::Red,
        Verdict::Mixed => Color::Yellow,
        Verdict::InfraError => Color::Magenta,
        Verdict::Unscored => Color::DarkGrey,
    }
}

/// `text` with control characters (escape sequences included) shown as `\u{..}`.
#[must_use]
pub fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .map(|character| if character.is_control() { character.escape_unicode().to_string() } else { character.to_string() })
        .collect()
}

/// `8/10 0.8`, with the attempts that are in no rate behind it: `+1 infra`.
#[must_use]
pub fn counts(counts: Counts) -> String {
    let mut out = format!("{}/{}", counts.passed, counts.counted());
    for (count, word) in [(counts.infra, "infra"), (counts.unscored, "unscored"), (counts.missing, "missing")] {
        if count > 0 {
            out.push_str(&format!(" +{count} {word}"));
        }
    }
    out
}

/// A number with a sign and at most three decimals.
#[must_use]
pub fn signed(value: f64) -> String {
    let value = round3(value);
    if value > 0.0 { format!("+{value}") } else { value.to_string() }
}

/// `2026-11-28 09:00`: an instant as short as a table wants it (UTC).
#[must_use]
pub fn short_time(time: Timestamp) -> String {
    time.rfc3339().replace('T', " ").chars().take(16).collect()
}

/// The beginning of a run id, long enough to be told apart by eye.
#[must_use]
pub fn short_id(id: &str) -> String {
    let cleaned = clean(id);
    if cleaned.chars().count() <= 14 { cleaned } else { cleaned.chars().take(12).chain(['.', '.']).collect() }
}

/// A line that says what is left out, when something is.
#[must_use]
pub fn more(shown: usize, total: u64) -> String {
    match total.saturating_sub(shown as u64) {
        0 => String::new(),
        rest => format!("\n... and {rest} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_table_has_no_escapes_and_no_trailing_spaces() {
        let mut grid = Grid::new(&Style::PLAIN, &["id", "n"]);
        grid.row(["a\u{1b}[31m".into(), Text::coloured("1", Color::Red)]);
        let text = grid.text();
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line == line.trim_end()), "{text:?}");
        assert!(text.contains("a\\u{1b}[31m"), "{text:?}");
    }

    #[test]
    fn colours_only_where_asked() {
        let mut grid = Grid::new(&Style { width: Some(40), colour: true }, &["id"]);
        grid.row([Text::coloured("x", Color::Red)]);
        assert!(grid.text().contains('\u{1b}'));
    }

    #[test]
    fn counts_and_numbers_read_well() {
        assert_eq!(counts(Counts { passed: 8, failed: 2, infra: 1, unscored: 0, missing: 0 }), "8/10 +1 infra");
        assert_eq!((signed(0.25), signed(-0.8), signed(0.0)), ("+0.25".into(), "-0.8".into(), "0".into()));
        assert_eq!(short_id("FcMdaJ3mWqVMQ9cq2NLsMf"), "FcMdaJ3mWqVM..");
    }
}
