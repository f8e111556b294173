//! The one result of every view: titled tables and lines (decision 68), from which both the JSON and the text are made.
//!
//! Promises: a row has a value for each column, in their order; what a table leaves out it says in a line; the text says nothing that is not in the
//! JSON, and cuts a long value or table visibly.
//! Does not: know any view.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    domain::{
        attempt::shorten,
        outcome::{Counts, Rate, round3},
        time::Timestamp,
    },
    tools::{
        Ctx, Tool,
        render::{self, Grid, Style},
    },
};

/// Bytes of one value that a table's text shows; the JSON has it whole.
const CELL_BYTES: usize = 200;

/// A value of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// None.
    Null,
    /// Yes or no.
    Flag(bool),
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Cell {
    /// As a table's text has it.
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Null => "-".into(),
            Self::Flag(flag) => if *flag { "yes" } else { "no" }.into(),
            Self::Count(count) => count.to_string().into(),
            Self::Number(number) => number.to_string().into(),
            Self::Text(text) => shorten(&render::one_line(text), CELL_BYTES).into(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }
}

impl From<Timestamp> for Cell {
    fn from(time: Timestamp) -> Self {
        Self::Text(time.rfc3339())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A rate with three decimals; none where nothing was counted.
#[must_use]
pub fn rate(counts: Counts) -> Cell {
    counts.rate().map(Rate::shown).into()
}

/// A number with three decimals.
#[must_use]
pub fn rounded(value: f64) -> Cell {
    round3(value).into()
}

/// The heads of [`counts`] and [`rate`], which stand beside each other.
pub const COUNTS: [&str; 6] = ["passed", "failed", "infra", "unscored", "missing", "rate"];

/// The five counts and their rate.
#[must_use]
pub fn counts(counts: Counts) -> [Cell; 6] {
    [counts.passed.into(), counts.failed.into(), counts.infra.into(), counts.unscored.into(), counts.missing.into(), rate(counts)]
}

/// A table under way.
#[derive(Debug, Clone)]
pub struct Table {
    title: Option<String>,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty one.
    #[must_use]
    pub fn new(title: &str, columns: &[&'static str]) -> Self {
        Self { title: Some(title.to_owned()), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: a value for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), Cell::Null);
        self.rows.push(cells);
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// One block.
#[derive(Debug, Clone)]
enum Block {
    Lines { title: Option<String>, lines: Vec<String> },
    Table(Table),
}

/// What a dataset's items are like, in numbers (decision 68).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Cases.
    pub cases: usize,
    /// Groups that they come in; 0 where nobody names any.
    pub groups: usize,
    /// Cases that come in none.
    pub ungrouped: usize,
    /// Characters of the inputs; none where texts are hidden or there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_chars: Option<Spread>,
    /// Characters of the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_chars: Option<Spread>,
}

/// How numbers are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many there are.
    pub n: usize,
    /// The least.
    pub min: u64,
    /// The middle one (of an even count the lower one).
    pub median: u64,
    /// The most.
    pub max: u64,
}

impl Spread {
    /// That of `values`; none where there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        let median = *values.get((values.len() - 1) / 2)?;
        Some(Self { n: values.len(), min, median, max })
    }
}

/// The result of a view.
#[derive(Debug, Clone)]
pub struct Blocks {
    command: &'static str,
    blocks: Vec<Block>,
    profile: Option<Profile>,
    /// Whether the same question has the same answer until the store changes.
    pub lasting: bool,
    /// What else should be known: the last block.
    pub note: Option<String>,
}

impl Blocks {
    /// An empty result of `T`.
    #[must_use]
    pub fn of<T: Tool>() -> Self {
        Self { command: T::VERB, blocks: Vec::new(), profile: None, lasting: true, note: None }
    }

    /// Adds lines under a title. A text of several lines is several.
    pub fn titled(&mut self, title: &str, lines: impl IntoIterator<Item = String>) {
        self.add_lines(Some(title.to_owned()), lines);
    }

    /// Adds lines without one.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        self.add_lines(None, lines);
    }

    fn add_lines(&mut self, title: Option<String>, lines: impl IntoIterator<Item = String>) {
        let split = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<String> = lines.into_iter().flat_map(split).collect();
        if !lines.is_empty() || title.is_some() {
            self.blocks.push(Block::Lines { title, lines });
        }
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds a table of which the caller gets as many rows as his limits allow; a line says what is left out, and `narrow` how to see it.
    pub fn long_table(&mut self, ctx: &Ctx, mut table: Table, narrow: &str) {
        let total = table.len();
        table.rows.truncate(ctx.limits.rows);
        let left = total - table.len();
        self.table(table);
        if left > 0 {
            self.lines([format!("{left} more of {total} rows are left out; narrow the question with {narrow}.")]);
        }
    }

    /// Adds a dataset's profile.
    pub fn profile(&mut self, profile: Profile) {
        self.profile = Some(profile);
    }

    /// The answer as text.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        let mut parts: Vec<String> = self.blocks.iter().map(|block| text_of(block, style)).collect();
        if let Some(profile) = &self.profile {
            parts.push(profile_text(profile));
        }
        parts.extend(self.note.iter().map(|note| render::clean(note)));
        parts.join("\n\n") + "\n"
    }
}

fn text_of(block: &Block, style: &Style) -> String {
    match block {
        Block::Lines { title, lines } => {
            let head = title.iter().map(|title| render::clean(title));
            head.chain(lines.iter().map(|line| render::clean(line))).collect::<Vec<_>>().join("\n")
        }
        Block::Table(Table { title, columns, rows }) => {
            let title = title.iter().map(|title| format!("{}\n", render::clean(title))).collect::<String>();
            if rows.is_empty() {
                return format!("{title}(none)");
            }
            let mut grid = Grid::new(style, columns);
            for row in rows.iter().take(render::ROWS_SHOWN) {
                grid.row(row.iter().map(|cell| cell.text().into_owned().into()));
            }
            format!("{title}{}{}", grid.text(), render::more(rows.len().min(render::ROWS_SHOWN), rows.len() as u64))
        }
    }
}

fn profile_text(profile: &Profile) -> String {
    let spread = |name: &str, spread: Option<Spread>| {
        spread.map(|Spread { n, min, median, max }| format!("{name} of {n}: {min} to {max} characters, median {median}"))
    };
    let groups = format!("{} cases, {} groups, {} in none", profile.cases, profile.groups, profile.ungrouped);
    let texts = [spread("inputs", profile.input_chars), spread("targets", profile.target_chars)];
    std::iter::once(format!("Profile\n{groups}")).chain(texts.into_iter().flatten()).collect::<Vec<_>>().join("\n")
}

/// Columns and their values, in order.
struct Row<'a>(&'a [&'static str], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Lines { title, lines } => {
                if let Some(title) = title {
                    map.serialize_entry("title", title)?;
                }
                map.serialize_entry("lines", lines)?;
            }
            Self::Table(Table { title, columns, rows }) => {
                if let Some(title) = title {
                    map.serialize_entry("title", title)?;
                }
                map.serialize_entry("columns", columns)?;
                map.serialize_entry("rows", &rows.iter().map(|row| Row(columns, row)).collect::<Vec<_>>())?;
            }
        }
        map.end()
    }
}

/// What stands under `result`.
#[derive(Serialize)]
struct Body<'a> {
    blocks: Vec<Cow<'a, Block>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a Profile>,
}

impl Serialize for Blocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let note = self.note.iter().map(|note| Cow::Owned(Block::Lines { title: None, lines: vec![note.clone()] }));
        let body = Body { blocks: self.blocks.iter().map(Cow::Borrowed).chain(note).collect(), profile: self.profile.as_ref() };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("command", self.command)?;
        map.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("result", &body)?;
        map.end()
    }
}

/// One shape for all views, which stands in a list of tools thirteen times and so says the least.
impl JsonSchema for Blocks {
    fn schema_name() -> Cow<'static, str> {
        "Blocks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "required": ["command", "version", "result"], "properties": {"result": {"required": ["blocks"]}}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::catalog::rounds::Rounds;

    fn some() -> Blocks {
        let mut blocks = Blocks::of::<Rounds>();
        blocks.titled("Head", ["one\ntwo".to_owned()]);
        let mut table = Table::new("Things", &["id", "n", "rate", "on"]);
        table.row(["a\u{1b}b".into(), 2_u64.into(), rounded(2.0 / 3.0), true.into()]);
        table.row([None::<String>.into()]);
        blocks.table(table);
        blocks.note = Some("still indexing".to_owned());
        blocks
    }

    #[test]
    fn the_envelope_is_the_decisions() {
        let wanted = serde_json::json!({"command": "rounds", "version": env!("CARGO_PKG_VERSION"), "result": {"blocks": [
            {"title": "Head", "lines": ["one", "two"]},
            {"title": "Things", "columns": ["id", "n", "rate", "on"],
             "rows": [{"id": "a\u{1b}b", "n": 2, "rate": 0.667, "on": true}, {"id": null, "n": null, "rate": null, "on": null}]},
            {"lines": ["still indexing"]}]}});
        assert_eq!(serde_json::to_value(some()).unwrap(), wanted);
    }

    #[test]
    fn the_text_is_made_of_the_same() {
        let text = some().text(&Style::PLAIN);
        assert!(text.starts_with("Head\none\ntwo\n\nThings\n") && text.ends_with("\n\nstill indexing\n"), "{text}");
        assert!(text.contains("a\\u{1b}b") && text.contains("0.667") && text.contains("yes"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_long_table_says_what_it_leaves_out() {
        let store: std::sync::Arc<dyn crate::store::Store> = std::sync::Arc::new(crate::store::Absent);
        let ctx = Ctx::new(store, crate::auth::Caller::local(), Timestamp::from_millis(0));
        let mut table = Table::new("t", &["n"]);
        (0..ctx.limits.rows + 3).for_each(|n| table.row([n.into()]));
        let mut blocks = Blocks::of::<Rounds>();
        blocks.long_table(&ctx, table, "filter");
        let json = serde_json::to_value(&blocks).unwrap();
        assert_eq!(json.pointer("/result/blocks/0/rows").unwrap().as_array().unwrap().len(), ctx.limits.rows);
        assert_eq!(json.pointer("/result/blocks/1/lines/0").unwrap(), "3 more of 503 rows are left out; narrow the question with filter.");
    }

    #[test]
    fn a_spread_has_its_middle() {
        assert_eq!(Spread::of([3, 1, 2]), Some(Spread { n: 3, min: 1, median: 2, max: 3 }));
        assert_eq!((Spread::of([]), Spread::of([4, 1]).unwrap().median), (None, 1));
    }
}
