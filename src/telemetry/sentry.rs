//! Faults of ours to Sentry, or to a server that speaks like it.
//!
//! Promises: a fault's kind, tool, request id and its redacted text, the program's version, and nothing of the caller: no address, no
//! arguments, no environment, no host name. One envelope per fault; a server that says "too many" is left alone as long as it asks, ten
//! minutes at most. Nothing is registered globally: no panic handler, no hub.
//! Does not: hold up a call: it stands behind a [`super::queued::Queued`].

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use prometheus::IntCounter;
use sentry::{Client, ClientOptions, Envelope, Level, Transport, protocol::Event, types::Dsn};

use super::{
    hook::{Fault, Hook},
    outside::{Outside, Untold},
};
use crate::clock;

/// The longest that a server is left alone because it asks for it.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Where it says "too many" and not for how long.
const PAUSE: Duration = Duration::from_secs(60);

/// The hook.
pub struct Sentry {
    client: Client,
}

impl Sentry {
    /// The word for this hook in metrics.
    pub const NAME: &'static str = "sentry";

    /// The hook that tells `dsn`; `failed` counts what could not be told.
    ///
    /// # Errors
    /// A sentence that does not repeat the DSN: it is a secret.
    pub fn new(dsn: &str, environment: &str, outside: Outside, failed: IntCounter) -> Result<Self, String> {
        let dsn: Dsn = dsn.trim().parse().map_err(|_| "it is no DSN, such as https://KEY@errors.example/1".to_owned())?;
        let carrier = Carrier {
            url: dsn.envelope_api_url().to_string(),
            auth: dsn.to_auth(Some(concat!("runlore/", env!("CARGO_PKG_VERSION")))).to_string(),
            outside,
            failed,
            until: Mutex::default(),
        };
        let mut options = ClientOptions::default()
            .release(concat!("runlore@", env!("CARGO_PKG_VERSION")))
            .default_integrations(false)
            .attach_stacktrace(false)
            .send_default_pii(false)
            .transport(Arc::new(carrier));
        options.dsn = Some(dsn);
        options.environment = Some(environment.to_owned()).filter(|name| !name.is_empty()).map(Into::into);
        Ok(Self { client: Client::with_options(options) })
    }
}

impl Hook for Sentry {
    fn error(&self, fault: &Fault) {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(fault.at.millis()).unwrap_or(0));
        let tool = fault.tool.unwrap_or("none");
        let mut event = Event {
            timestamp: at,
            level: Level::Error,
            message: Some(fault.text.clone()),
            logger: Some("runlore".to_owned()),
            // The same fault of the same tool is one issue there, whatever ids its text has.
            fingerprint: vec![fault.kind.into(), tool.into()].into(),
            ..Event::default()
        };
        let tags = [("kind", fault.kind), ("tool", tool), ("request_id", &fault.request_id)];
        event.tags.extend(tags.map(|(name, value)| (name.to_owned(), value.to_owned())));
        self.client.capture_event(event, None);
    }
}

/// Envelopes over our own client, on the hook's thread.
struct Carrier {
    url: String,
    auth: String,
    outside: Outside,
    failed: IntCounter,
    /// Nothing is sent before this.
    until: Mutex<Option<Instant>>,
}

impl Carrier {
    fn paused(&self) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| clock::monotonic() < until)
    }

    fn pause(&self, asked: Option<Duration>) {
        let until = clock::monotonic() + asked.unwrap_or(PAUSE).min(PAUSE_MAX);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }
}

impl Transport for Carrier {
    fn send_envelope(&self, envelope: Envelope) {
        let mut body = Vec::new();
        let written = envelope.to_writer(&mut body);
        if written.is_err() || self.paused() {
            return self.failed.inc();
        }
        let headers = [("content-type", "application/x-sentry-envelope"), ("x-sentry-auth", self.auth.as_str())];
        if let Err(untold) = self.outside.post(&self.url, &headers, &body) {
            self.failed.inc();
            if let Untold::Refused(429, asked) = untold {
                self.pause(asked);
            }
        }
    }
}
