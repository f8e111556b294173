//! `analysis`: what somebody wrote about a run, saved on purpose or left over in a cache (decision 77).
//!
//! Promises: newest first, saved before cached at the same time; documents are given as they stand.
//! Does not: analyse anything. Documents quote outputs, so they are for those who may read transcripts.

use std::cmp::Reverse;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    domain::{
        attempt::shorten,
        extras::{Analysis as Document, AnalysisSource},
        time::Timestamp,
    },
    tools::{
        Ctx, Tool, ToolError,
        arguments::{self, Bounded},
        cursor::List,
        render::{self, Style},
        resolve,
    },
};

/// The tool.
pub enum Analysis {}

/// The arguments of `analysis`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    #[serde(default = "arguments::latest")]
    pub run: String,
    /// Only documents with this file name.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub file: Option<String>,
    /// How many documents.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `analysis`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The run's id.
    pub run_id: String,
    /// The documents.
    pub entries: Vec<Entry>,
    /// How many are here.
    pub returned: usize,
    /// How many there are under the arguments.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for the next page.
    pub next_cursor: Option<String>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One document.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The bare file name.
    pub file: String,
    /// Saved or cached.
    pub source: AnalysisSource,
    /// When it was written.
    pub created_at: Timestamp,
    /// The document; a text where it is no JSON.
    #[schemars(with = "serde_json::Value")]
    pub doc: Box<RawValue>,
}

impl From<Document> for Entry {
    fn from(document: Document) -> Self {
        Self { file: document.file, source: document.source, created_at: document.created_at, doc: document.doc }
    }
}

impl Tool for Analysis {
    const NAME: &'static str = "analysis";
    const TITLE: &'static str = "Analyses of a run";
    const ABOUT: &'static str = "What was written about a run, newest first";
    const DOC: &'static str = "Returns the analysis documents that stand beside a run's record (saved or cached), newest first. Read them before analysing the run again.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read"], &["traces:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "file and limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let place = list.place::<Place>(input.cursor.as_deref())?;
        let run = resolve::run_of_page(ctx, place.as_ref().map(|(run_id, ..)| run_id.as_str()), &input.run)?;
        let after = place.map(|(_, created_at, source, file)| (Reverse(created_at), source, file));
        let mut documents = ctx.store.analyses(&run.run_id)?;
        documents.retain(|document| input.file.as_ref().is_none_or(|file| document.file == *file));
        let total = documents.len();
        documents.retain(|document| after.as_ref().is_none_or(|after| order(document) > *after));
        let complete = documents.len() <= input.limit.count();
        documents.truncate(input.limit.count());
        let at = |last: &Document| list.at(&(&run.run_id, last.created_at, last.source, &last.file));
        let next_cursor = documents.last().filter(|_| !complete).map(at);
        let note = (total == 0).then(|| format!("Run {} has no analysis{}.", render::clean(&run.run_id), of(input.file.as_deref())));
        let entries: Vec<Entry> = documents.into_iter().map(Into::into).collect();
        Ok(Output { run_id: run.run_id, returned: entries.len(), entries, total, complete, next_cursor, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let mut out = format!("{}: {} of {} analyses\n", render::clean(&output.run_id), output.returned, output.total);
        for entry in &output.entries {
            let name = render::clean(&entry.file);
            out.push_str(&format!("\n{name} ({}, {} UTC)\n", entry.source.word(), render::short_time(entry.created_at)));
            // A text is shown as a text; anything else as it stands.
            let text = serde_json::from_str::<String>(entry.doc.get()).unwrap_or_else(|_| entry.doc.get().to_owned());
            out.push_str(&render::clean_lines(&text));
            out.push('\n');
        }
        out.extend(output.note.iter().map(|note| format!("{note}\n")));
        out
    }
}

fn of(file: Option<&str>) -> String {
    file.map(|file| format!(" named \"{}\"", render::clean(&shorten(file, 80)))).unwrap_or_default()
}

/// Where a page ends: its run, whatever `latest` is by then, and its last document.
type Place = (String, Timestamp, AnalysisSource, String);

/// Newest first, then saved before cached, then by name.
fn order(document: &Document) -> (Reverse<Timestamp>, AnalysisSource, String) {
    (Reverse(document.created_at), document.source, document.file.clone())
}
