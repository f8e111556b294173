//! Cells of the table of results before version 3 as rows, for files that have the table alone.
//!
//! A cell has a row's grading, score, price and time under the same names; `pass` is its success, and `text` is what a person saw: the output,
//! with the reason above it where the row did not pass. Its test and variables stand beside the cells of its line.
//!
//! Promises: a cell gives what its row would have; what a cell does not say is left out.
//! Does not: judge a cell that says neither how it was graded nor why it failed (`index` refuses a table of such cells).

use serde_json::value::RawValue;

use crate::importers::raw::{Fields, fields, list, read, text};

/// What stands between the reason and the output in a cell's text.
const RULE: &str = "\n---\n";
/// Members that a cell has from its row.
const SAME: [&str; 8] = ["id", "failureReason", "score", "namedScores", "gradingResult", "latencyMs", "cost", "metadata"];

/// Whether a cell says how it ended.
pub(super) fn says(cell: &Fields<'_>) -> bool {
    cell.get("failureReason").is_some() || graded(cell)
}

/// Whether a cell was graded.
pub(super) fn graded(cell: &Fields<'_>) -> bool {
    cell.get("gradingResult").is_some_and(|raw| raw.get().starts_with('{'))
}

/// The variables of a line of the table, as an object: the cells under the table's names.
pub(super) fn variables(names: &[String], cells: Option<&RawValue>) -> String {
    let cells = list(cells).0;
    // One that a test does not have is empty.
    let known = names.iter().zip(cells).filter(|(_, raw)| raw.get() != "\"\"");
    let members: Vec<String> = known.map(|(name, raw)| format!("{}:{}", quoted(name), raw.get())).collect();
    format!("{{{}}}", members.join(","))
}

/// The cells of a line of the table as rows, each in its column's place.
pub(super) fn rows(line: &str, names: &[String]) -> Vec<String> {
    let line: Fields<'_> = serde_json::from_str(line).unwrap_or_default();
    list(line.get("outputs")).0.into_iter().map(|cell| row(&line, &fields(Some(cell)), names)).collect()
}

fn row(line: &Fields<'_>, cell: &Fields<'_>, names: &[String]) -> String {
    let mut members: Vec<String> = SAME.iter().filter_map(|key| Some(format!("\"{key}\":{}", cell.get(key)?.get()))).collect();
    let mut add = |key: &str, json: &str| members.push(format!("\"{key}\":{json}"));
    if let Some(pass) = cell.get("pass") {
        add("success", pass.get());
    }
    let (error, output) = parts(cell);
    if let Some(error) = error {
        add("error", &error);
    }
    let response = [("output", output), ("tokenUsage", cell.get("tokenUsage").map(|raw| raw.get().to_owned()))];
    let response: Vec<String> = response.into_iter().filter_map(|(key, json)| Some(format!("\"{key}\":{}", json?))).collect();
    add("response", &format!("{{{}}}", response.join(",")));
    if let Some(prompt) = cell.get("prompt") {
        add("prompt", &format!("{{\"raw\":{}}}", prompt.get()));
    }
    match line.get("test") {
        Some(test) => add("testCase", test.get()),
        None => add("vars", &variables(names, line.get("vars"))),
    }
    format!("{{{}}}", members.join(","))
}

/// What a cell's text says went wrong, where the row broke or says it itself, and the output.
fn parts(cell: &Fields<'_>) -> (Option<String>, Option<String>) {
    let said = cell.get("error").map(|raw| raw.get().to_owned());
    let Some(shown) = cell.get("text") else { return (said, None) };
    let passed = read::<bool>(cell.get("pass")) == Some(true);
    let Some(spelled) = text(Some(shown)).filter(|_| !passed) else { return (said, Some(shown.get().to_owned())) };
    let grading = fields(cell.get("gradingResult"));
    // A reason can have the rule in it, so it is looked for whole first.
    let reason = text(cell.get("error")).or_else(|| text(grading.get("reason")));
    let after = reason.and_then(|reason| spelled.strip_prefix(reason.as_ref())?.strip_prefix(RULE));
    let split = after.map(|output| ("", output)).or_else(|| spelled.split_once(RULE));
    let (before, output) = split.unwrap_or(if graded(cell) { ("", &spelled) } else { (&spelled, "") });
    let broke = said.is_none() && !graded(cell) && !before.is_empty();
    (if broke { Some(quoted(before)) } else { said }, Some(output).filter(|output| !output.is_empty()).map(quoted))
}

fn quoted(text: &str) -> String {
    // A string always serialises.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(cell: Value) -> Value {
        let line = json!({"vars": ["x", "", "{\"a\":1}"], "outputs": [null, cell]});
        let names = ["q", "none", "o"].map(str::to_owned);
        let rows = rows(&line.to_string(), &names);
        assert_eq!(rows.len(), 2);
        serde_json::from_str(&rows[1]).unwrap()
    }

    #[test]
    fn a_cell_is_its_row() {
        let grading = json!({"pass": true, "score": 1, "reason": "ok"});
        let found = made(json!({"pass": true, "score": 1, "text": "an\n---\nanswer", "prompt": "say x", "latencyMs": 7, "cost": 0.5,
            "tokenUsage": {"total": 3}, "gradingResult": grading, "provider": "p"}));
        let expected = json!({"success": true, "score": 1, "latencyMs": 7, "cost": 0.5, "gradingResult": grading, "prompt": {"raw": "say x"},
            "response": {"output": "an\n---\nanswer", "tokenUsage": {"total": 3}}, "vars": {"q": "x", "o": "{\"a\":1}"}});
        assert_eq!(found, expected);
    }

    #[test]
    fn reason_and_output_are_told_apart() {
        let failed =
            |text: &str, reason: &str| made(json!({"pass": false, "text": text, "gradingResult": {"pass": false, "reason": reason}}));
        assert_eq!(failed("Expected y\n---\nx", "Expected y")["response"], json!({"output": "x"}));
        assert_eq!(failed("a\n---\nb\n---\nx", "a\n---\nb")["response"], json!({"output": "x"}));
        assert_eq!(failed("x", "Expected y")["response"], json!({"output": "x"}));
        let broke = made(json!({"pass": false, "text": "API error: 500\n---\n"}));
        assert_eq!((&broke["error"], &broke["response"]), (&json!("API error: 500"), &json!({})));
        let newer = made(json!({"pass": false, "failureReason": 2, "error": "API error", "text": "API error\n---\nhalf"}));
        assert_eq!((&newer["error"], &newer["response"]), (&json!("API error"), &json!({"output": "half"})));
        assert_eq!(made(json!({"pass": true, "text": {"a": 1}}))["response"], json!({"output": {"a": 1}}));
    }
}
