//! README's table of tools is written from the registry.
//!
//! Promises: a README without the markers, or with a table that is not the registry's, is refused; `UPDATE=1` writes it.
//! Does not: check the rest of the README.

use crate::source::{File, root};

const BEGIN: &str = "<!-- tools:begin -->";
const END: &str = "<!-- tools:end -->";

/// A row of the table.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it answers, in a sentence.
    pub answers: &'static str,
}

/// The tools of the registry, in its order. THE HOOK: replace the list by the registry's entries once there is one.
pub fn registry() -> Vec<Tool> {
    let tool = |name, answers| Tool { name, answers };
    vec![
        tool("failures", "What failed in a run, what is new and since when, with the failed checks and the transcript's last lines."),
        tool("history", "One row per evaluation over the newest runs: the outcomes, the rate and its drift."),
        tool("show", "One run's whole record, as JSON or Markdown."),
        tool("compare", "What changed between two runs, or since a date, with the evidence that it is no accident."),
        tool("analysis", "A run's own notes and figures."),
        tool("transcript", "The lines of one attempt's transcript, page by page."),
    ]
}

/// `text` with the table of `tools` between the markers; `None` without markers.
fn with_table(text: &str, tools: &[Tool]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let rows: String = tools.iter().map(|tool| format!("| `{}` | {} |\n", tool.name, tool.answers)).collect();
    Some(format!("{before}{BEGIN}\n| tool | answers |\n| --- | --- |\n{rows}{END}{after}"))
}

/// What is wrong with the README's table; mends it first where `update` says so.
pub fn complaints(files: &[File], tools: &[Tool], update: bool) -> Vec<String> {
    let text = files.iter().find(|file| file.name == "README.md").map(|file| file.text.as_str()).unwrap_or_default();
    let Some(fresh) = with_table(text, tools) else {
        return vec![format!("README.md:1: it has no {BEGIN} and {END}; put them where the table of tools belongs")];
    };
    if fresh == text {
        return Vec::new();
    }
    if update {
        std::fs::write(root().join("README.md"), fresh).expect("README.md can be written");
        return Vec::new();
    }
    let line = text.lines().position(|line| line.contains(BEGIN)).unwrap_or_default() + 1;
    vec![format!("README.md:{line}: the table of tools is not the registry's; run `UPDATE=1 cargo test --test tidy` and commit it")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(text: &str) -> Vec<String> {
        let file = File { name: "README.md".to_owned(), text: text.to_owned() };
        complaints(&[file], &[Tool { name: "a", answers: "B." }], false)
    }

    #[test]
    fn a_missing_marker_and_a_stale_table_are_refused() {
        assert!(complaints_of("x")[0].contains("has no") && complaints_of(BEGIN)[0].contains("has no"));
        assert!(complaints(&[], &[], false)[0].contains("has no"));
        assert!(complaints_of(&format!("x\n{BEGIN}\n{END}"))[0].starts_with("README.md:2: "));
        assert!(complaints_of(&format!("x\n{BEGIN}\n| tool | answers |\n| --- | --- |\n| `a` | B. |\n{END}\ny")).is_empty());
    }
}
