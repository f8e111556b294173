//! What the hooks tell other servers, over one HTTP client.
//!
//! Promises: one answer within its deadline, of which a bounded part is read; no redirects, so that what is told goes nowhere else.
//! Blocking: only a hook's own thread waits.
//! Does not: ask again: what could not be told is counted and gone.

use std::{fmt, io::Read as _, time::Duration};

use http::Response;
use ureq::Agent;

/// So much of an answer is read, so that its connection can be used again.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// The client.
#[derive(Debug, Clone)]
pub struct Outside {
    agent: Agent,
    within: Duration,
}

/// Why something was not told; for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untold {
    /// Nobody answered in time, or not in HTTP.
    Unreachable(String),
    /// The server answered something else than 2xx; for how long it asks to be left alone, where it says so.
    Refused(u16, Option<Duration>),
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => write!(f, "it does not answer: {reason}"),
            Self::Refused(status, _) => write!(f, "it answered {status}"),
        }
    }
}

impl std::error::Error for Untold {}

impl Outside {
    /// A client whose every exchange ends `within`.
    #[must_use]
    pub fn new(within: Duration) -> Self {
        let config = Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_global(Some(within))
            .user_agent(concat!("runlore/", env!("CARGO_PKG_VERSION")));
        Self { agent: config.build().new_agent(), within }
    }

    /// How long an exchange may take.
    #[must_use]
    pub const fn within(&self) -> Duration {
        self.within
    }

    /// Sends `body` to `url`.
    ///
    /// # Errors
    /// [`Untold`].
    pub fn post(&self, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Vec<u8>, Untold> {
        let request = headers.iter().fold(self.agent.post(url), |request, (name, value)| request.header(*name, *value));
        let answer = request.send(body).map_err(|error| Untold::Unreachable(error.to_string()))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(Untold::Refused(status.as_u16(), again_after(&answer)));
        }
        let mut read = Vec::new();
        let reading = answer.into_body().into_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut read);
        reading.map(|_| read).map_err(|error| Untold::Unreachable(error.to_string()))
    }
}

fn again_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
