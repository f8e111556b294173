//! Who is told of calls and faults: metrics always, other servers where the configuration names them (decision 37).
//!
//! Promises: all are off by default; a secret comes from a file or the environment; what cannot be used is a sentence before anything is
//! answered. None is asked whether it is there: a receiver that is away is no reason not to serve.
//! Does not: send anything (`telemetry` does).

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{
    cli::CliError,
    config::Config,
    telemetry::{
        analytics::{self, Analytics},
        hook::{Hook, Hooks},
        metrics::Metrics,
        otlp::{self, Otlp},
        outside,
        queued::Queued,
        sentry::Sentry,
    },
};

/// Bytes of a file that holds a secret.
const SECRET_BYTES_MAX: u64 = 16 * 1024;
/// Stands for `sentry.dsn_file`.
const DSN: &str = "RUNLORE_SENTRY_DSN";

/// Which other servers are told.
#[derive(Default)]
pub struct Outside {
    otlp: Option<(otlp::Settings, outside::Outside)>,
    sentry: Option<(String, String, outside::Outside)>,
    analytics: Option<(analytics::Settings, outside::Outside)>,
}

impl Outside {
    /// Those that `config` names, with their secrets.
    ///
    /// # Errors
    /// [`CliError::Usage`], with the key whose file cannot be read.
    pub fn of(config: &Config) -> Result<Self, CliError> {
        Self::read(config, std::env::var(DSN).ok()).map_err(CliError::Usage)
    }

    fn read(config: &Config, dsn: Option<String>) -> Result<Self, String> {
        let within = |timeout_ms| outside::Outside::new(Duration::from_millis(timeout_ms));
        let headers = secret("otlp.headers_file", &config.otlp.headers_file)?.map_or_else(|| Ok(HashMap::new()), |text| headers(&text))?;
        let otlp = (!config.otlp.endpoint.is_empty()).then(|| otlp::Settings {
            endpoint: config.otlp.endpoint.clone(),
            service: config.otlp.service.clone(),
            headers,
        });
        let dsn = match dsn.filter(|dsn| !dsn.trim().is_empty()) {
            Some(dsn) => Some(dsn),
            None => secret("sentry.dsn_file", &config.sentry.dsn_file)?,
        };
        let analytics = (!config.analytics.url.is_empty()).then(|| analytics::Settings {
            url: config.analytics.url.clone(),
            website: config.analytics.website.clone(),
            hostname: config.analytics.hostname.clone(),
        });
        Ok(Self {
            otlp: otlp.map(|settings| (settings, within(config.otlp.timeout_ms))),
            sentry: dsn.map(|dsn| (dsn, config.sentry.environment.clone(), within(config.sentry.timeout_ms))),
            analytics: analytics.map(|settings| (settings, within(config.analytics.timeout_ms))),
        })
    }
}

/// The text of the file that `key` names; none where it names none.
fn secret(key: &str, path: &str) -> Result<Option<String>, String> {
    use std::io::Read as _;
    if path.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("{key}: {path} cannot be read: {error}"))?;
    Ok(Some(text.trim().to_owned()))
}

/// A `Name: value` a line.
fn headers(text: &str) -> Result<HashMap<String, String>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let header = |(number, line): (usize, &str)| {
        let (name, value) = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()))?;
        let known = http::HeaderName::from_bytes(name.as_bytes()).is_ok() && http::HeaderValue::from_str(value).is_ok();
        known.then(|| (name.to_owned(), value.to_owned())).ok_or(number).ok()
    };
    // Never the line itself: it may hold the secret.
    let wrong = || "otlp.headers_file: each line must be a header, such as Authorization: Bearer KEY".to_owned();
    lines.enumerate().map(|line| header(line).ok_or_else(wrong)).collect()
}

/// Metrics, and those of `outside`, each behind a queue and a thread of its own.
///
/// # Errors
/// [`CliError`], where one cannot be made.
pub fn all(outside: &Outside, metrics: &Arc<Metrics>) -> Result<Hooks, CliError> {
    let mut hooks: Vec<Arc<dyn Hook>> = vec![Arc::new(metrics.clone())];
    if let Some((settings, client)) = outside.otlp.clone() {
        let hook = Otlp::new(settings, client, metrics.failed(Otlp::NAME));
        hooks.push(queued(hook.map_err(|fault| CliError::Usage(format!("otlp.endpoint: {fault}")))?, Otlp::NAME, metrics)?);
    }
    if let Some((dsn, environment, client)) = outside.sentry.clone() {
        let hook = Sentry::new(&dsn, &environment, client, metrics.failed(Sentry::NAME));
        hooks.push(queued(hook.map_err(|fault| CliError::Usage(format!("the DSN of Sentry: {fault}")))?, Sentry::NAME, metrics)?);
    }
    if let Some((settings, client)) = outside.analytics.clone() {
        hooks.push(queued(Analytics::new(settings, client, metrics), Analytics::NAME, metrics)?);
    }
    Ok(Hooks::new(hooks))
}

fn queued<H: Hook>(hook: H, name: &'static str, metrics: &Metrics) -> Result<Arc<dyn Hook>, CliError> {
    let queued = Queued::new(hook, metrics.dropped(name));
    Ok(Arc::new(queued.map_err(|error| CliError::Refused(format!("there is no thread for {name}: {error}")))?))
}

/// Waits for what is still to be told, for a bounded time; what is not told by then is said to be lost.
pub async fn finish(hooks: Hooks, patience: Duration) {
    let told = tokio::task::spawn_blocking(move || hooks.finish(patience)).await;
    if !matches!(told, Ok(true)) {
        tracing::warn!(?patience, "not all that other servers were to be told was told in time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dsn: Option<&str>) -> Result<Outside, String> {
        Outside::read(&Config::parse(text, "x").unwrap(), dsn.map(str::to_owned))
    }

    #[test]
    fn nobody_is_told_unless_somebody_says_so() {
        let outside = read("", None).unwrap();
        assert!(outside.otlp.is_none() && outside.sentry.is_none() && outside.analytics.is_none());
        assert!(read("", Some(" ")).unwrap().sentry.is_none(), "an empty variable is absent");
    }

    #[test]
    fn secrets_come_from_files_or_the_environment_and_are_never_said() {
        let directory = tempfile::tempdir().unwrap();
        let (dsn, keys) = (directory.path().join("dsn"), directory.path().join("keys"));
        std::fs::write(&dsn, "https://key@errors.example/1\n").unwrap();
        std::fs::write(&keys, "# mine\nAuthorization: Bearer s3cret\n\nx-org: a\n").unwrap();
        let text = format!(
            "[sentry]\ndsn_file = {dsn:?}\nenvironment = \"e\"\n[otlp]\nendpoint = \"http://127.0.0.1:1\"\nheaders_file = {keys:?}\n"
        );
        let outside = read(&text, None).unwrap();
        assert_eq!(outside.sentry.unwrap().0, "https://key@errors.example/1");
        let headers = outside.otlp.unwrap().0.headers;
        assert_eq!((headers["Authorization"].as_str(), headers["x-org"].as_str()), ("Bearer s3cret", "a"));
        assert_eq!(read(&text, Some("https://other@errors.example/2")).unwrap().sentry.unwrap().0, "https://other@errors.example/2");
        std::fs::write(&keys, "s3cret\n").unwrap();
        let fault = read(&text, None).err().unwrap();
        assert!(fault.starts_with("otlp.headers_file: ") && !fault.contains("s3cret"), "{fault}");
        let fault = read("[sentry]\ndsn_file = \"/no/such/file\"", None).err().unwrap();
        assert!(fault.starts_with("sentry.dsn_file: /no/such/file cannot be read"), "{fault}");
        let metrics = Arc::new(Metrics::new([]).unwrap());
        let fault = all(&read("", Some("s3cret")).unwrap(), &metrics).map(|_| ()).unwrap_err().to_string();
        assert!(fault.contains("no DSN") && !fault.contains("s3cret"), "{fault}");
    }
}
