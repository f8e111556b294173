//! `docs_search`: full text over the server's own documents and the project's.
//!
//! Promises: the server's own documents are those that this program was built with; analyses of runs quote outputs, so they are searched only for
//! those who may read transcripts; what a snippet shows is of the documents that it was found in.
//! Does not: index anything that lasts, or rank by itself (`store::survey` does).

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    store::survey::Document,
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        arguments::{Bounded, Text},
        render::{self, Style},
    },
};

mod built_in;
mod of_project;
#[cfg(test)]
mod tests;

/// Characters of a question.
const QUERY_CHARS_MAX: usize = 200;
/// Words of it that are searched.
const WORDS: usize = 12;

/// The tool.
pub enum DocsSearch {}

/// The arguments of `docs_search`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The words to look for, in any order; a word finds those that begin so.
    #[arg(value_name = "WORDS")]
    pub query: Text<QUERY_CHARS_MAX>,
    /// How many documents.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 50, 10>,
}

/// The result of `docs_search`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The best first.
    pub documents: Vec<Found>,
    /// How many are here.
    pub returned: usize,
    /// How many hold the words.
    pub total: u64,
    /// Whether the last one is here.
    pub complete: bool,
    /// What else should be known.
    pub note: Option<String>,
}

/// What kind of document it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A section of runlore's guide.
    Guide,
    /// A section of its configuration's reference.
    Reference,
    /// A tool.
    Tool,
    /// The decision contract.
    Contract,
    /// What an evaluation of the project is about.
    Evaluation,
    /// An analysis of a run of the project.
    Analysis,
}

impl Source {
    const fn word(self) -> &'static str {
        match self {
            Self::Guide => "guide",
            Self::Reference => "reference",
            Self::Tool => "tool",
            Self::Contract => "contract",
            Self::Evaluation => "evaluation",
            Self::Analysis => "analysis",
        }
    }
}

/// A document that holds the words.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// What it is called.
    pub title: String,
    /// What kind of document it is.
    pub source: Source,
    /// Where it holds the words, these in `**`.
    pub snippet: String,
    /// How well it fits, the greater the better; comparable within one answer.
    pub score: f64,
    /// The call that shows it whole, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// A call that shows a document whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Next {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// A document that can be found.
struct Doc {
    source: Source,
    title: String,
    text: String,
    next: Option<Next>,
}

impl Tool for DocsSearch {
    const NAME: &'static str = "docs_search";
    const VERB: &'static str = "docs-search";
    const TITLE: &'static str = "Search the documents";
    const ABOUT: &'static str = "Searches runlore's own documents, and the project's";
    const DOC: &'static str = "Searches runlore's own documents (guide, configuration, tools, decision contract) and the project's (what evaluations are about, saved analyses of runs), the best first, with snippets.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "query and limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let words = words(input.query.get());
        if words.is_empty() {
            return Err(ToolError::Argument(format!(
                "argument query: \"{}\" holds no word; give letters or digits",
                render::clean(input.query.get())
            )));
        }
        let mut docs = built_in::docs();
        let note = of_project::add(ctx, &mut docs)?;
        let (kinds, documents): (Vec<(Source, Option<Next>)>, Vec<Document>) =
            docs.into_iter().map(|doc| ((doc.source, doc.next), Document { title: doc.title, text: doc.text })).unzip();
        let (hits, total) = ctx.store.ranked(&documents, &words, input.limit.count())?;
        let found = |hit: crate::store::survey::Hit| {
            let (source, next) = kinds.get(hit.document)?.clone();
            let title = documents.get(hit.document)?.title.clone();
            Some(Found { title, source, snippet: render::one_line(&hit.snippet), score: (hit.score * 1e4).round() / 1e4, next })
        };
        let documents: Vec<Found> = hits.into_iter().filter_map(found).collect();
        let none = || format!("No document holds \"{}\".", render::clean(input.query.get()));
        let note = if total == 0 { Some(note.map_or_else(none, |note| format!("{} {note}", none()))) } else { note };
        Ok(Output { returned: documents.len(), complete: documents.len() as u64 == total, documents, total, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let mut lines = Vec::new();
        for one in &output.documents {
            lines.push(format!("{} ({})", render::clean(&one.title), one.source.word()));
            lines.extend(Some(&one.snippet).filter(|snippet| !snippet.is_empty()).map(|snippet| format!("  {snippet}")));
            lines.extend(one.next.as_ref().map(|next| {
                let arguments = next.arguments.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ");
                format!("  whole: {} {{{}}}", next.tool, render::clean(&arguments))
            }));
        }
        if !output.complete {
            lines.push(format!("... {} of {} documents; raise limit", output.returned, output.total));
        }
        lines.extend(output.note.clone());
        lines.join("\n")
    }
}

/// The words of a question: letters and digits, whatever stands between them. The same word counts once.
fn words(query: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in query.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if out.len() < WORDS && !out.iter().any(|held| held.eq_ignore_ascii_case(word)) {
            out.push(word.to_owned());
        }
    }
    out
}
