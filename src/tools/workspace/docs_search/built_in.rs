//! The documents that the program was built with.
//!
//! Promises: they are this program's: the tools' are written from the registry, the others stand in the repository and a test keeps them true.
//! Does not: depend on who asks: all of it is public.

use std::sync::LazyLock;

use serde_json::Value;

use super::{Doc, Source};
use crate::{
    domain::decision,
    tools::{ENTRIES, Entry},
};

const GUIDE: &str = include_str!("../../../../README.md");
const REFERENCE: &str = include_str!("../../../../config/reference.md");

/// Title and text of each section and tool.
static SECTIONS: LazyLock<Vec<(Source, String, String)>> = LazyLock::new(|| {
    let guide = sections(GUIDE).into_iter().map(|(title, text)| (Source::Guide, title, text));
    let reference = sections(REFERENCE).into_iter().map(|(title, text)| (Source::Reference, title, text));
    guide.chain(reference).chain(ENTRIES.iter().map(tool)).chain([contract()]).collect()
});

pub(super) fn docs() -> Vec<Doc> {
    SECTIONS.iter().map(|(source, title, text)| Doc { source: *source, title: title.clone(), text: text.clone(), next: None }).collect()
}

/// The sections of a Markdown text, each under its headings. A heading in a fenced block is none.
fn sections(text: &str) -> Vec<(String, String)> {
    let (mut out, mut path, mut fenced) = (Vec::<(String, String)>::new(), Vec::<String>::new(), false);
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        match line.get(level..).and_then(|rest| rest.strip_prefix(' ')).filter(|_| level > 0 && !fenced) {
            Some(heading) => {
                path.truncate(level - 1);
                path.push(heading.trim().to_owned());
                out.push((path.join(": "), String::new()));
            }
            None => {
                if let Some((_, section)) = out.last_mut() {
                    section.push_str(line);
                    section.push('\n');
                }
            }
        }
    }
    out.retain(|(_, section)| !section.trim().is_empty());
    out
}

/// A tool: what it is for, and what each argument means.
fn tool(entry: &Entry) -> (Source, String, String) {
    let schema = (entry.input_schema)();
    let arguments = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let about = |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines: Vec<String> = arguments.map(|(name, schema)| format!("{name}: {}", about(schema))).collect();
    (Source::Tool, format!("{} ({})", entry.name, entry.title), format!("{}\n{}", entry.doc, lines.join("\n")))
}

fn contract() -> (Source, String, String) {
    let rows: Vec<String> = decision::MAPPING
        .iter()
        .map(|mapped| format!("{} means invokeEvalGate {} and releaseDecision {}.", mapped.classification, mapped.invoke, mapped.release))
        .collect();
    let text = format!(
        "What an agent hands over when it has evaluated a change. The classification selects the rest: {} The evidence has the dimensions {}, each measured or not_measured with a reason. The JSON Schema is served at {} and as the resource {}; `runlore decision check FILE` checks a file against it.",
        rows.join(" "),
        decision::DIMENSIONS.join(", "),
        decision::PATH,
        crate::tools::uri::DECISION_CONTRACT
    );
    (Source::Contract, "Decision contract".to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_under_their_headings() {
        let found = sections("x\n# A\na\n## B\nb\n```sh\n# no heading\n```\n## C\n\n# D\nd\n");
        let found: Vec<(&str, &str)> = found.iter().map(|(title, text)| (title.as_str(), text.trim())).collect();
        assert_eq!(found, [("A", "a"), ("A: B", "b\n```sh\n# no heading\n```"), ("D", "d")]);
    }

    #[test]
    fn every_tool_and_every_table_of_the_config_is_there() {
        let docs = docs();
        let titled = |part: &str| docs.iter().any(|doc| doc.title.contains(part));
        assert!(ENTRIES.iter().all(|entry| titled(&format!("{} (", entry.name))));
        assert!(titled("Config: [index]") && titled("Decision contract") && titled("Evidence"));
        assert!(docs.iter().all(|doc| doc.next.is_none() && !doc.text.is_empty()));
    }
}
