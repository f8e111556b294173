//! `search`: where words stand: evaluations, runs, cases, what checks and errors say, and transcripts.
//!
//! Promises: all words must stand in one thing; what stands around them is shown; who may not read texts searches names alone, and is told so.
//! Does not: rank by likeness: the newest comes first.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Table},
    sees_text,
};
use crate::{
    domain::{
        outcome::Outcome,
        time::{self, Timestamp},
        words::Question,
    },
    store::{Found, FoundIn, Hit, Place, SearchQuery},
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        arguments::{Bounded, Text},
        render::Style,
    },
};

/// The tool.
pub enum Search {}

/// The arguments of `search`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Words that must all be there; begin* for beginnings, "in quotes" for side by side.
    pub query: Text<300>,
    /// Only there.
    #[arg(long, value_name = "WORD", value_enum)]
    #[serde(default)]
    pub kind: Option<Place>,
    /// Only attempts that ended so.
    #[arg(long, value_name = "WORD", value_parser = outcome)]
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// Only runs created since: an age such as 7d, a date or an RFC 3339 time.
    #[arg(long, value_name = "WHEN")]
    #[serde(default)]
    pub since: Option<String>,
    /// Only runs created until then.
    #[arg(long, value_name = "WHEN")]
    #[serde(default)]
    pub until: Option<String>,
    /// Only attempts that cost at least so many US dollars.
    #[arg(long, value_name = "USD")]
    #[serde(default)]
    pub min_cost_usd: Option<f64>,
    /// How many hits.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
}

fn outcome(word: &str) -> Result<Outcome, String> {
    let words = || Outcome::ALL.map(Outcome::word).join(", ");
    Outcome::from_word(word).ok_or_else(|| format!("\"{word}\" is no outcome; there are {}", words()))
}

impl Tool for Search {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search";
    const ABOUT: &'static str = "Where words stand: names, reasons, errors and transcripts";
    const DOC: &'static str = "Searches evaluations, runs, cases, what checks, errors and outputs say, and transcripts for words that all stand in one of them; shows what is around them, newest first.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "kind, outcome, since and limit";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let wrong = |name: &'static str| move |sentence: String| ToolError::Argument(format!("argument {name}: {sentence}"));
        let question = Question::parse(input.query.get()).map_err(wrong("query"))?;
        if let Some(cost) = input.min_cost_usd.filter(|cost| !(0.0..=1e9).contains(cost)) {
            return Err(ToolError::Argument(format!("argument min_cost_usd: {cost} is no amount from 0 to 1000000000")));
        }
        let instant = |text: &Option<String>| text.as_deref().map(|text| time::since(text, ctx.now)).transpose();
        let (since, until): (Option<Timestamp>, Option<Timestamp>) =
            (instant(&input.since).map_err(wrong("since"))?, instant(&input.until).map_err(wrong("until"))?);
        let limit = input.limit.count();
        let found = ctx.store.search(&SearchQuery {
            question: &question,
            place: input.kind,
            outcome: input.outcome,
            min_cost_usd: input.min_cost_usd,
            since,
            until,
            limit,
        })?;
        Ok(shown(ctx, found, limit))
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn lasting(output: &Blocks) -> bool {
        output.lasting
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

fn shown(ctx: &Ctx, found: Found, limit: usize) -> Blocks {
    let mut out = Blocks::of::<Search>();
    // What is not in the index yet comes without a change of what is kept.
    out.lasting = found.unindexed == 0;
    let mut by_kind = Table::new("Found", &["kind", "hits", "more"]);
    for (place, FoundIn { hits, more }) in &found.places {
        by_kind.row([place.word().into(), hits.len().into(), (*more).into()]);
    }
    out.table(by_kind);
    let total: usize = found.places.values().map(|found| found.hits.len()).sum();
    let (unindexed, hits) = (found.unindexed, shared(found, limit));
    let left = total - hits.len();
    let mut table = Table::new("Hits", &["kind", "evaluation", "case", "run", "created", "attempt", "outcome", "cost_usd", "line", "text"]);
    for hit in hits {
        table.row([
            hit.place.word().into(),
            hit.evaluation.into(),
            hit.case.filter(|case| !case.is_empty()).into(),
            hit.run.as_ref().map(|run| run.run_id.clone()).into(),
            hit.run.map(|run| run.created_at).into(),
            hit.attempt.into(),
            hit.outcome.map(Outcome::word).into(),
            hit.cost_usd.into(),
            hit.line.into(),
            hit.snippet.into(),
        ]);
    }
    out.table(table);
    if left > 0 {
        out.lines([format!("{left} more hits are left out; name a kind, or raise limit.")]);
    }
    if !sees_text(ctx) {
        out.lines(["Only names are searched here: ids, tags, families, datasets.".to_owned()]);
    }
    if unindexed > 0 {
        out.lines([format!(
            "The words of {unindexed} logs are still to be read: ask again for what they hold (runlore warm reads them all)."
        )]);
    }
    out
}

/// At most `limit` hits, of each kind its share: what one kind does not fill, the others get.
fn shared(found: Found, limit: usize) -> Vec<Hit> {
    let mut left: Vec<(Place, Vec<Hit>)> = found.places.into_iter().map(|(place, found)| (place, found.hits)).collect();
    let mut room = limit;
    let mut takes = vec![0_usize; left.len()];
    while room > 0 {
        let open: Vec<usize> = (0..left.len()).filter(|at| takes.get(*at) < left.get(*at).map(|(_, hits)| hits.len()).as_ref()).collect();
        if open.is_empty() {
            break;
        }
        for at in open.into_iter().take(room) {
            takes.iter_mut().skip(at).take(1).for_each(|take| *take += 1);
        }
        room = limit.saturating_sub(takes.iter().sum());
    }
    left.iter_mut().zip(takes).flat_map(|((_, hits), take)| std::mem::take(hits).into_iter().take(take)).collect()
}
