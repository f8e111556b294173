//! The server, as a sender sees it: requests with the key, asked again as long as that makes sense.
//!
//! Promises: https, or http to this machine unless somebody insists; no redirects, so that the key goes nowhere else; what is asked again is
//! bounded in time, honours `Retry-After` and waits longer each time.
//! Does not: know what is sent.

use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use ureq::Agent;

use crate::{
    auth::jwks::is_loopback,
    clock,
    tools::{render::clean, uri},
};

/// The first wait before a request is asked again; each is twice the last, up to ...
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// ... this much.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// A server that asks for a longer wait is not waited for so long at once.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// One request, its body and the reading of a log included.
const WHOLE: Duration = Duration::from_secs(600);
/// Answers are short.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// Why a request did not come to anything.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// The server said no.
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its word for why.
        reason: String,
        /// Its sentence.
        message: String,
        /// The offset that it wants instead.
        offset: Option<u64>,
    },
    /// It could not be asked, or gave no answer.
    Away(String),
    /// The log cannot be read here.
    Local(String),
}

impl Fault {
    /// Whether other logs may fare better.
    pub(super) fn is_of_one_log(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => matches!(reason.as_str(), "unreadable" | "too_large" | "digest" | "argument"),
            Self::Local(_) => true,
            Self::Away(_) => false,
        }
    }

    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason == word)
    }

    /// Whether the server knows no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        self.is("not_found")
    }

    /// Whether the same request will be refused the next time too.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 401 | 403 | 404, .. })
    }

    /// Whether it takes less at once.
    pub(super) fn is_too_large(&self) -> bool {
        // A proxy's own refusal has no word of ours.
        self.is("too_large") || matches!(self, Self::Refused { status: 413, .. })
    }

    /// Whether what came is not what was to come.
    pub(super) fn is_digest(&self) -> bool {
        self.is("digest")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { reason, .. } if reason == "project" => {
                f.write_str("your key may see several projects; name one with --into PROJECT")
            }
            Self::Refused { status, message, .. } => write!(f, "the server refused it ({status}): {}", clean(message)),
            Self::Away(why) => write!(f, "the server cannot be reached: {}", clean(why)),
            Self::Local(why) => f.write_str(why),
        }
    }
}

/// The server and the key for it.
pub(super) struct Client {
    agent: Agent,
    base: String,
    authorization: String,
    patience: Duration,
}

/// What a request carries.
#[derive(Clone, Copy)]
pub(super) enum Carries<'a> {
    /// Nothing: it asks.
    Nothing,
    /// A part of a log.
    Part(&'a [u8]),
    /// JSON.
    Json(&'a str),
}

impl Client {
    /// The server at `url`.
    ///
    /// # Errors
    /// A sentence that says which URLs are taken.
    pub(super) fn new(url: &str, key: &str, insecure: bool, patience: Duration) -> Result<Self, String> {
        let kind = kind(url).ok_or_else(|| format!("{url}: give the server's URL, such as https://evals.example, without a query"))?;
        if kind == Kind::Clear && !insecure {
            return Err(format!("{url}: the key would go over the network in the clear; give an https:// URL, or --insecure-http"));
        }
        let config = Agent::config_builder()
            .https_only(kind == Kind::Secure)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .user_agent(concat!("runlore/", env!("CARGO_PKG_VERSION")));
        // To this machine nothing goes by a proxy.
        let config = if kind == Kind::Loopback { config.proxy(None) } else { config };
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { agent: config.build().new_agent(), base, authorization: format!("Bearer {key}"), patience })
    }

    /// Asks for `path` with `query`, again where the server is away or busy.
    ///
    /// # Errors
    /// [`Fault`], the last one.
    pub(super) fn ask(&self, path: &str, query: &[(&str, &str)], carries: Carries<'_>) -> Result<Value, Fault> {
        let began = clock::monotonic();
        let mut wait = FIRST_WAIT;
        loop {
            let (fault, after) = match self.once(path, query, carries) {
                Ok(answer) => return Ok(answer),
                Err((fault, Some(after))) => (fault, after),
                Err((fault, None)) => return Err(fault),
            };
            let pause = wait.max(after.min(RETRY_AFTER_MAX));
            if !has_time(began, pause, self.patience) {
                return Err(fault);
            }
            thread::sleep(pause);
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// One try: the answer, or why not, and after how long another makes sense.
    fn once(&self, path: &str, query: &[(&str, &str)], carries: Carries<'_>) -> Result<Value, (Fault, Option<Duration>)> {
        let url = format!("{}{path}{}", self.base, encoded(query));
        let named = |builder: ureq::RequestBuilder<ureq::typestate::WithBody>| builder.header("authorization", &self.authorization);
        let answer = match carries {
            Carries::Nothing => self.agent.get(&url).header("authorization", &self.authorization).call(),
            Carries::Part(bytes) => named(self.agent.put(&url))
                .header("content-type", "application/octet-stream")
                // What is refused is refused before a part of megabytes is on its way: else the refusal is lost in a broken pipe.
                .header("expect", "100-continue")
                .send(bytes),
            Carries::Json(text) => named(self.agent.post(&url)).header("content-type", "application/json").send(text),
        };
        let mut answer = answer.map_err(|error| (Fault::Away(error.to_string()), Some(Duration::ZERO)))?;
        let status = answer.status().as_u16();
        let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let text = text.map_err(|error| (Fault::Away(error.to_string()), Some(Duration::ZERO)))?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status == 200 && body.get("ok") == Some(&Value::Bool(true)) {
            return Ok(body);
        }
        let again = matches!(status, 408 | 429 | 502 | 503 | 504).then(|| after.unwrap_or_default());
        Err((refused(status, &body), again))
    }
}

fn has_time(began: Instant, pause: Duration, patience: Duration) -> bool {
    clock::monotonic().saturating_duration_since(began) + pause <= patience
}

fn refused(status: u16, body: &Value) -> Fault {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Fault::Refused {
        status,
        reason: text("/error/data/reason").unwrap_or_default(),
        message: text("/error/message").unwrap_or_else(|| "it gave no reason; is this the URL of a runlore server?".to_owned()),
        offset: body.pointer("/error/data/offset").and_then(Value::as_u64),
    }
}

/// The query, percent-encoded.
fn encoded(query: &[(&str, &str)]) -> String {
    use fmt::Write as _;
    let mut out = String::new();
    for (name, value) in query {
        let _ = write!(out, "{}{name}={}", if out.is_empty() { '?' } else { '&' }, uri::encoded(value));
    }
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secure,
    Loopback,
    Clear,
}

fn kind(url: &str) -> Option<Kind> {
    let uri: http::Uri = url.parse().ok()?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())?;
    if uri.query().is_some() || url.contains('#') {
        return None;
    }
    let loopback = is_loopback(authority.host());
    match uri.scheme_str()? {
        "https" => Some(Kind::Secure),
        "http" => Some(if loopback { Kind::Loopback } else { Kind::Clear }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_goes_over_https_or_stays_on_this_machine() {
        let of = |url: &str, insecure| Client::new(url, "k", insecure, Duration::ZERO).map(|client| client.base);
        assert_eq!(of("https://evals.example/x/", false), Ok("https://evals.example/x".to_owned()));
        for url in ["http://localhost:1", "http://LocalHost:1", "http://127.0.0.1:4986", "http://[::1]:5"] {
            assert!(of(url, false).is_ok(), "{url}");
        }
        assert!(of("http://evals.example", false).unwrap_err().contains("--insecure-http"));
        assert!(of("http://evals.example", true).is_ok());
        for url in ["evals.example", "ftp://a", "https://u:p@a", "https://a/?x=1", "https://a/#x", ""] {
            assert!(of(url, true).is_err(), "{url}");
        }
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(encoded(&[("name", "a b/ä&.json"), ("x", "1")]), "?name=a%20b%2F%C3%A4%26.json&x=1");
        assert_eq!(encoded(&[]), "");
    }
}
