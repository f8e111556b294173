//! The sections that name other servers, held together: [otlp], [sentry], [analytics].
//!
//! Promises: a URL is http or https, with a host and without a name and password in it: a secret has no place in a configuration.
//! Does not: ask the servers.

use toml::{Table, Value};

/// What is wrong with them, a sentence each.
pub fn complaints(table: &Table) -> Vec<String> {
    let text =
        |section: &str, key: &str| table.get(section).and_then(|section| section.get(key)).and_then(Value::as_str).unwrap_or_default();
    let url = |section: &str, key: &str, example: &str| {
        let given = text(section, key);
        (!given.is_empty() && !is_url(given))
            .then(|| format!("{section}.{key} is \"{given}\"; it must be a URL such as {example}, without a name and password"))
    };
    let needed = |key: &str, example: &str| {
        (!text("analytics", "url").is_empty() && text("analytics", key).is_empty())
            .then(|| format!("analytics.{key} is empty; it must be given where url is, such as {example}"))
    };
    [
        url("otlp", "endpoint", "http://127.0.0.1:4318"),
        url("analytics", "url", "https://umami.example/api/send"),
        needed("website", "the id that Umami shows for the site"),
        needed("hostname", "runs.example"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let authority = uri.authority().is_some_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty());
    authority && matches!(uri.scheme_str(), Some("https" | "http")) && !url.contains('#')
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn servers_are_named_whole() {
        let good = "[otlp]\nendpoint = \"http://127.0.0.1:4318\"\n[analytics]\nurl = \"https://u.example/api/send\"\nwebsite = \"w\"\nhostname = \"h\"";
        assert!(Config::parse(good, "x").is_ok());
        let bad = "[otlp]\nendpoint = \"127.0.0.1:4318\"\n[analytics]\nurl = \"https://a:b@u.example/\"";
        let told = Config::parse(bad, "x").unwrap_err().to_string();
        for begin in ["otlp.endpoint is", "analytics.url is", "analytics.website is empty", "analytics.hostname is empty"] {
            assert!(told.contains(begin), "{begin} in {told}");
        }
        assert_eq!(told.lines().count(), 4);
    }
}
