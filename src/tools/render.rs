//! Text for people: tables and words, the same for a terminal, a pipe and an agent but for width and colour.
//!
//! Promises: control and invisible characters of ids and texts never reach a terminal; plain text when piped; columns stand whatever is coloured.
//! Does not: decide what is shown.

mod letters;

use comfy_table::{Attribute, Cell as TableCell, Color, ContentArrangement, Table, presets};

use self::letters::Letters;
pub use crate::domain::text::{clean, clean_lines, hidden};
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
    letters: Letters,
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
        Self { table, style: *style, letters: Letters::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Text>) {
        let style = self.style;
        let letters = &mut self.letters;
        self.table.add_row(cells.into_iter().map(|text| match text.letters {
            Some(colours) if style.colour => TableCell::new(letters.stand_ins(&text.text, &colours)),
            _ => paint(TableCell::new(clean(&text.text)), style, text.colour, false),
        }));
    }

    /// The table as text, without trailing spaces.
    #[must_use]
    pub fn text(&self) -> String {
        let text = self.table.to_string();
        text.lines().map(|line| self.letters.painted(line.trim_end())).collect::<Vec<_>>().join("\n")
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
    letters: Option<Vec<Color>>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self { text: text.into(), colour: None, letters: None }
    }
}

impl Text {
    /// Coloured text.
    #[must_use]
    pub fn coloured(text: impl Into<String>, colour: Color) -> Self {
        Self { text: text.into(), colour: Some(colour), letters: None }
    }

    /// A word of letters, each in its own colour.
    #[must_use]
    pub fn letters(letters: impl IntoIterator<Item = (char, Color)>) -> Self {
        let (text, colours) = letters.into_iter().unzip();
        Self { text, colour: None, letters: Some(colours) }
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

/// A text of several lines as one, its white space closed up; the rest as [`clean`] has it.
#[must_use]
pub fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `8/10`, with the attempts that are in no rate behind it: `+1 infra`.
#[must_use]
pub fn counts(counts: Counts) -> String {
    let rest = uncounted(counts);
    let gap = if rest.is_empty() { "" } else { " " };
    format!("{}/{}{gap}{rest}", counts.passed, counts.counted())
}

/// The attempts that are in no rate: `+1 infra +4 missing`; empty where there are none.
#[must_use]
pub fn uncounted(counts: Counts) -> String {
    [(counts.infra, "infra"), (counts.unscored, "unscored"), (counts.missing, "missing")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("+{count} {word}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `p=0.0078`, or that it is smaller than what is worth reading.
#[must_use]
pub fn p_value(p: f64) -> String {
    if p < 0.0001 { "p<0.0001".to_owned() } else { format!("p={p}") }
}

/// What a row is of: the evaluation, then the case and the arm where it has them.
#[must_use]
pub fn named(id: &str, case: Option<&str>, arm: Option<&str>) -> String {
    [Some(id), case, arm].into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" / ")
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
    fn a_tiny_p_is_short() {
        assert_eq!(p_value(1.234e-120), "p<0.0001");
        assert_eq!((p_value(0.007_812), p_value(0.0001), p_value(1.0)), ("p=0.007812".into(), "p=0.0001".into(), "p=1".into()));
    }

    /// `text` without its colours.
    fn plain(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
    }

    #[test]
    fn letters_have_their_own_colours_and_columns_stand() {
        let table = |style: &Style, last: Color| {
            let mut grid = Grid::new(style, &["id", "outcomes", "n"]);
            grid.row(["a".into(), Text::letters([('P', Color::Green), ('P', Color::Green), ('F', last)]), "1".into()]);
            grid.row(["longer".into(), Text::letters([('F', Color::Red); 3]), "2".into()]);
            grid.text()
        };
        let coloured = table(&Style { width: Some(40), colour: true }, Color::Red);
        assert!(coloured.contains("\u{1b}[38;5;10mPP\u{1b}[38;5;9mF\u{1b}[39m"), "{coloured:?}");
        let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed(&plain(&coloured)), trimmed(&table(&Style { width: Some(40), colour: false }, Color::Red)));
    }

    #[test]
    fn letters_that_wrap_keep_their_colours() {
        let mut grid = Grid::new(&Style { width: Some(20), colour: true }, &["id", "o"]);
        grid.row(["a".into(), Text::letters((0..60).map(|n| if n % 2 == 0 { ('P', Color::Green) } else { ('F', Color::Red) }))]);
        let text = grid.text();
        assert!(plain(&text).lines().all(|line| line.chars().count() <= 20), "{text:?}");
        assert_eq!((text.matches("10mP").count(), text.matches("9mF").count()), (30, 30));
    }

    #[test]
    fn counts_and_numbers_read_well() {
        assert_eq!(counts(Counts { passed: 8, failed: 2, infra: 1, unscored: 0, missing: 0 }), "8/10 +1 infra");
        assert_eq!((signed(0.25), signed(-0.8), signed(0.0)), ("+0.25".into(), "-0.8".into(), "0".into()));
        assert_eq!(short_id("FcMdaJ3mWqVMQ9cq2NLsMf"), "FcMdaJ3mWqVM..");
    }
}
