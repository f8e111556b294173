//! The groups that an Inspect log's cases come in: `stderr(cluster="category")` or `ci(cluster=...)`, a metric of a scorer or of the task, names a
//! key of the samples' metadata.
//!
//! Promises: the author's own word and nothing else; the first metric that names a key decides.
//! Does not: guess from names such as `category`.

use serde_json::value::RawValue;

use crate::importers::raw::{Fields, fields, list, text};

/// Lists and maps of metrics stand in each other two deep, which makes four.
const DEEP: usize = 4;

/// The key, if any: of the scorers' metrics in their order, then of the task's.
pub(super) fn cluster(eval: &Fields<'_>) -> Option<String> {
    let scorers = list(eval.get("scorers")).0;
    let metrics = scorers.iter().map(|scorer| fields(Some(scorer)).get("metrics"));
    metrics.chain([eval.get("metrics")]).find_map(|metrics| of_metrics(metrics, DEEP))
}

/// Metrics are a list of definitions, or of maps from a score's name to such lists, or one such map.
fn of_metrics(raw: Option<&RawValue>, deep: usize) -> Option<String> {
    let deep = deep.checked_sub(1)?;
    let given = fields(raw);
    let options = fields(given.get("options"));
    let key = text(options.get("cluster")).filter(|key| !key.is_empty());
    if let Some(key) = key.filter(|_| text(given.get("name")).is_some()) {
        return Some(key.into_owned());
    }
    let inside = given.0.iter().filter(|(name, _)| name != "options").map(|(_, raw)| *raw);
    list(raw).0.into_iter().chain(inside).find_map(|raw| of_metrics(Some(raw), deep))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(eval: &str) -> Option<String> {
        cluster(&serde_json::from_str(eval).unwrap())
    }

    #[test]
    fn every_place_of_a_metric_is_looked_at() {
        let metric = r#"{"name":"inspect_ai/stderr","options":{"cluster":"topic"}}"#;
        let plain = r#"{"name":"inspect_ai/accuracy","options":{}}"#;
        for metrics in
            [format!("[{plain},{metric}]"), format!("[{plain},{{\"a\":[{metric}]}}]"), format!("{{\"a\":[{plain}],\"*\":[{metric}]}}")]
        {
            assert_eq!(told(&format!(r#"{{"scorers":[{{"name":"s","metrics":{metrics}}}]}}"#)).as_deref(), Some("topic"), "{metrics}");
            assert_eq!(told(&format!(r#"{{"metrics":{metrics}}}"#)).as_deref(), Some("topic"), "{metrics}");
        }
        let other = r#"{"name":"ci","options":{"cluster":"passage"}}"#;
        assert_eq!(told(&format!(r#"{{"metrics":[{metric}],"scorers":[{{"metrics":[{other}]}}]}}"#)).as_deref(), Some("passage"));
    }

    #[test]
    fn what_is_no_metric_names_nothing() {
        for eval in [
            "{}",
            r#"{"scorers":[{"name":"s","options":{"cluster":"a"},"metrics":[]}]}"#,
            r#"{"metrics":[{"name":"stderr","options":{"cluster":null}}]}"#,
            r#"{"metrics":[{"name":"stderr","options":{"cluster":""}}]}"#,
            r#"{"metrics":[[[[{"name":"stderr","options":{"cluster":"a"}}]]]],"scorers":null}"#,
        ] {
            assert_eq!(told(eval), None, "{eval}");
        }
    }
}
