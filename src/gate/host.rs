//! Which host a request is meant for: the wall against DNS rebinding.
//!
//! Promises: only names that were configured pass, whole and exact but for case (decision 54), so that userinfo, a trailing dot, a port in
//! another spelling or odd brackets need no rule of their own; two sources that differ never pass, even if one of them is good.
//! Does not: parse a host; it compares with a list made at start.

use std::{net::IpAddr, sync::Arc};

use http::{Request, Version, header};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
};

/// The hosts that a server answers for.
#[derive(Debug, Clone)]
pub struct HostRules {
    /// Lower case, with the port where one is asked for.
    authorities: Arc<[Box<str>]>,
}

impl HostRules {
    /// The rules of a server that listens on `bind` and `port` and was told `allowed` (`--allowed-host`, each `name` or `name:port`).
    #[must_use]
    pub fn new(bind: Option<IpAddr>, port: u16, allowed: &[String]) -> Self {
        let local = locals(bind).into_iter().flat_map(|name| with_port(&name, port));
        let named = allowed.iter().flat_map(|host| spellings(host, port));
        Self { authorities: local.chain(named).map(|name| name.to_ascii_lowercase().into_boxed_str()).collect() }
    }

    /// Whether `authority` is one of ours.
    #[must_use]
    pub fn admits(&self, authority: &str) -> bool {
        self.authorities.iter().any(|ours| ours.eq_ignore_ascii_case(authority))
    }

    /// Whether the request says, and says only once, that it is for one of ours.
    fn meant<B>(&self, request: &Request<B>) -> bool {
        let mut lines = request.headers().get_all(header::HOST).iter();
        let host = match lines.next().map(|line| line.to_str()) {
            None => None,
            Some(Ok(host)) => Some(host),
            Some(Err(_)) => return false,
        };
        if lines.next().is_some() {
            return false;
        }
        // The target's own authority: `:authority` of HTTP/2, the absolute form of HTTP/1.
        let target = request.uri().authority().map(http::uri::Authority::as_str);
        match (target, host) {
            (None, Some(host)) => self.admits(host),
            // HTTP/1 asks for the header whatever the target says; a request of HTTP/1.0 without one names no host.
            (Some(target), None) => request.version() >= Version::HTTP_2 && self.admits(target),
            (Some(target), Some(host)) => self.admits(target) && target.eq_ignore_ascii_case(host),
            (None, None) => false,
        }
    }
}

/// The loopback's names, and the address that was bound where it is a real one (the seed's rule).
pub(super) fn locals(bind: Option<IpAddr>) -> Vec<String> {
    let bound = bind.filter(|address| !address.is_unspecified() && !address.is_loopback()).map(|address| match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    });
    ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned).into_iter().chain(bound).collect()
}

/// `name` with the port; bare too where the port is the one that clients leave out.
pub(super) fn with_port(name: &str, port: u16) -> Vec<String> {
    let bare = (port == 80).then(|| name.to_owned());
    std::iter::once(format!("{name}:{port}")).chain(bare).collect()
}

/// The spellings of an allowed host: with a port only that, else bare and with the ports that a proxy in front or we listen on.
fn spellings(host: &str, port: u16) -> Vec<String> {
    if has_port(host) {
        return vec![host.to_owned()];
    }
    let mut all = vec![host.to_owned(), format!("{host}:443"), format!("{host}:80")];
    if port != 443 && port != 80 {
        all.push(format!("{host}:{port}"));
    }
    all
}

/// Whether a configured host names a port: a colon after the brackets of an IPv6 address, if it is one.
pub(super) fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':')
}

impl Check for HostRules {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        if self.meant(request) { Ok(()) } else { Err(Barred::Host) }
    }
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct HostLayer {
    rules: HostRules,
}

impl HostLayer {
    /// The step.
    #[must_use]
    pub const fn new(rules: HostRules) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for HostLayer {
    type Service = Checked<S, HostRules>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.rules.clone())
    }
}
