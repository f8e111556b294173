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
    /// Whether it writes.
    pub writes: bool,
}

/// The tools of the registry, in its order; of each the first sentence of what agents are told.
pub fn registry() -> Vec<Tool> {
    runlore::tools::ENTRIES
        .iter()
        .map(|entry| Tool { name: entry.name, answers: first_sentence(entry.doc), writes: entry.effect.writes() })
        .collect()
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// `text` with the table of `tools` between the markers; `None` without markers.
fn with_table(text: &str, tools: &[Tool]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let mark = |tool: &Tool| if tool.writes { "**Writes.** " } else { "" };
    let rows: String = tools.iter().map(|tool| format!("| `{}` | {}{}. |\n", tool.name, mark(tool), tool.answers)).collect();
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
        complaints(&[file], &[Tool { name: "a", answers: "B", writes: false }], false)
    }

    #[test]
    fn a_missing_marker_and_a_stale_table_are_refused() {
        assert!(complaints_of("x")[0].contains("has no") && complaints_of(BEGIN)[0].contains("has no"));
        assert!(complaints(&[], &[], false)[0].contains("has no"));
        assert!(complaints_of(&format!("x\n{BEGIN}\n{END}"))[0].starts_with("README.md:2: "));
        assert!(complaints_of(&format!("x\n{BEGIN}\n| tool | answers |\n| --- | --- |\n| `a` | B. |\n{END}\ny")).is_empty());
    }
}
