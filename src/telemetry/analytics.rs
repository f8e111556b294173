//! One event per call to a server of web analytics, in Umami's form (decision 38).
//!
//! Promises: the tool's listed name, how the call ended and the caller's address (an IPv6 one by its /64), and nothing else of the call; the
//! words of the event are ours. Umami counts a visitor by address and user agent and drops what looks like a machine, so the user agent is
//! that of a browser, always the same.
//! Does not: hold up a call: it stands behind a [`super::queued::Queued`]; or tell of calls that come from no address (stdio).

use serde_json::json;

use super::{
    hook::{CallEvent, Hook},
    metrics::Metrics,
    outside::{Outside, Untold},
};

/// No machine says this of itself.
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Where events go.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL that takes them, such as `https://umami.example/api/send`.
    pub url: String,
    /// The website's id there.
    pub website: String,
    /// The host name that they are counted under.
    pub hostname: String,
}

/// The hook.
pub struct Analytics {
    settings: Settings,
    outside: Outside,
    sent: prometheus::IntCounter,
    refused: prometheus::IntCounter,
    failed: prometheus::IntCounter,
    lost: prometheus::IntCounter,
}

impl Analytics {
    /// The word for this hook in metrics.
    pub const NAME: &'static str = "analytics";

    /// The hook of `settings`.
    #[must_use]
    pub fn new(settings: Settings, outside: Outside, metrics: &Metrics) -> Self {
        let counter = |outcome| metrics.analytics(outcome);
        let lost = metrics.failed(Self::NAME);
        Self { settings, outside, sent: counter("sent"), refused: counter("refused"), failed: counter("failed"), lost }
    }

    fn event(&self, event: &CallEvent, address: &str) -> serde_json::Value {
        let Settings { website, hostname, .. } = &self.settings;
        json!({"type": "event", "payload": {
            "website": website,
            "hostname": hostname,
            "url": "/mcp",
            "name": format!("mcp:{}", event.tool),
            "ip": address,
            "data": {"outcome": event.outcome.word()},
        }})
    }
}

impl Hook for Analytics {
    fn request(&self, event: &CallEvent) {
        let Some(address) = event.address.map(|address| address.to_string()) else { return };
        let body = self.event(event, &address).to_string();
        let headers = [("content-type", "application/json"), ("user-agent", USER_AGENT), ("x-forwarded-for", address.as_str())];
        match self.outside.post(&self.settings.url, &headers, body.as_bytes()) {
            Ok(_) => return self.sent.inc(),
            Err(Untold::Refused(..)) => self.refused.inc(),
            Err(Untold::Unreachable(_)) => self.failed.inc(),
        }
        self.lost.inc();
    }
}
