//! What watches the server names only numbers that the server has: dashboard, alerts, documents.
//!
//! Promises: a metric, or a label of one, that is in no row of the table is refused with its file and line; so is a row that no dashboard shows.
//! Does not: judge whether an expression is wise, or read any of the formats beyond names and braces.

use runlore::telemetry::metrics::{Kind, Row};

use crate::source::File;

const PREFIX: &str = "runlore_";
const DASHBOARD: &str = "infra/grafana/runlore.json";

/// What scraping adds to every series.
const SCRAPED: [&str; 4] = ["service", "job", "instance", "le"];

/// What is no metric although it begins like one.
const OTHER: [&str; 1] = ["runlore_host"];

/// What is wrong.
pub fn complaints(files: &[File], table: &[&Row]) -> Vec<String> {
    let watching = files.iter().filter(|file| file.name.starts_with("infra/") || file.name.starts_with("docs/"));
    let wrong = watching.flat_map(|file| {
        let lines = file.text.lines().enumerate();
        lines.flat_map(move |(index, line)| {
            of_line(line, table).into_iter().map(move |fault| format!("{}:{}: {fault}", file.name, index + 1))
        })
    });
    let dashboard = files.iter().find(|file| file.name == DASHBOARD).map(|file| file.text.as_str()).unwrap_or_default();
    let unseen = table.iter().filter(|row| !dashboard.contains(row.name));
    let unseen = unseen.map(|row| format!("{DASHBOARD}:1: it does not show {}; give it a panel", row.name));
    wrong.chain(unseen).collect()
}

fn of_line(line: &str, table: &[&Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, _) in line.match_indices(PREFIX) {
        let inside = line[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || "_-/.".contains(before));
        let name: &str =
            line[at..].split(|character: char| !character.is_ascii_alphanumeric() && character != '_').next().unwrap_or_default();
        if inside || OTHER.contains(&name) {
            continue;
        }
        match row(name, table) {
            None => faults.push(format!("there is no metric {name}; src/telemetry/metrics/table.rs has them all")),
            Some(row) => faults.extend(
                labels(&line[at + name.len()..])
                    .into_iter()
                    .filter(|label| !knows(row, label))
                    .map(|label| format!("{name} has no label {label}; it has {:?}", row.labels)),
            ),
        }
    }
    faults
}

/// The row of a series' name: a histogram's have endings of their own.
fn row<'a>(name: &str, table: &[&'a Row]) -> Option<&'a Row> {
    let ended = |row: &&&Row| ["_bucket", "_sum", "_count"].iter().any(|end| name.strip_suffix(end) == Some(row.name));
    let exact = table.iter().find(|row| row.name == name && row.kind != Kind::Histogram);
    // Documents and dashboards' searches name a histogram as a whole.
    let whole = table.iter().find(|row| row.name == name);
    exact.or_else(|| table.iter().filter(|row| row.kind == Kind::Histogram).find(ended)).or(whole).copied()
}

fn knows(row: &Row, label: &str) -> bool {
    row.labels.contains(&label) || SCRAPED.contains(&label)
}

/// The labels of the braces that `rest` begins with.
fn labels(rest: &str) -> Vec<&str> {
    let Some((inside, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Vec::new() };
    inside.split(',').filter_map(|one| one.split_once('=')).map(|(name, _)| name.trim().trim_end_matches('!')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Vec<String> {
        of_line(line, runlore::telemetry::metrics::TABLE)
    }

    #[test]
    fn what_is_no_metric_or_label_is_refused() {
        assert_eq!(
            told("sum(rate(runlore_calls_total{outcome=~\"a|b\", service!=\"x\"}[5m])) / runlore_uptime_seconds"),
            Vec::<String>::new()
        );
        assert_eq!(told("rate(runlore_call_duration_seconds_bucket{from=\"run\"}[5m])"), Vec::<String>::new());
        assert!(told("runlore_call_total > 0")[0].starts_with("there is no metric runlore_call_total"));
        assert!(told("runlore_calls_total_bucket")[0].starts_with("there is no metric"));
        assert!(told("runlore_calls_total{status=\"x\"}")[0].contains("no label status"));
        assert!(!complaints(&[], runlore::telemetry::metrics::TABLE).is_empty(), "an empty dashboard shows nothing");
    }
}
