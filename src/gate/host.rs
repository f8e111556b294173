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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(bind: Option<&str>, port: u16, allowed: &[&str]) -> HostRules {
        HostRules::new(bind.map(|address| address.parse().unwrap()), port, &allowed.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    fn request(version: Version, target: &str, hosts: &[&[u8]]) -> Request<()> {
        let mut request = Request::builder().version(version).uri(target).body(()).unwrap();
        for host in hosts {
            request.headers_mut().append(header::HOST, http::HeaderValue::from_bytes(host).unwrap());
        }
        request
    }

    fn passes(version: Version, target: &str, hosts: &[&str]) -> bool {
        let hosts: Vec<&[u8]> = hosts.iter().map(|host| host.as_bytes()).collect();
        rules(None, 4986, &["evals.example", "other.example:8443"]).check(&mut request(version, target, &hosts)).is_ok()
    }

    #[test]
    fn only_configured_names_pass() {
        let good = ["127.0.0.1:4986", "localhost:4986", "LocalHost:4986", "[::1]:4986", "evals.example", "EVALS.example:443"];
        for host in good.into_iter().chain(["evals.example:80", "evals.example:4986", "other.example:8443"]) {
            assert!(passes(Version::HTTP_11, "/mcp", &[host]), "{host}");
        }
        let strangers =
            ["evil.example", "", "localhost", "127.0.0.1", "[::1]", "localhost:80", "localhost:4987", "other.example", "other.example:443"];
        let userinfo = ["u@localhost:4986", "localhost:4986@evil.example", "evals.example@evil.example", "evil.example#evals.example"];
        let spellings =
            ["localhost.:4986", "evals.example.", "localhost:04986", "localhost:+4986", "localhost:", "localhost:4986x", "evals.example:"];
        let brackets =
            ["[::1", "::1:4986", "[::1]4986", "[0:0:0:0:0:0:0:1]:4986", "[::1]:4986]", "[localhost]:4986", "[::ffff:127.0.0.1]:4986"];
        let numbers = ["2130706433:4986", "127.1:4986", "0x7f.0.0.1:4986", "127.0.0.2:4986", "0.0.0.0:4986", "evals.example:99999"];
        let lookalikes =
            ["evals.example.evil.example", "xevals.example", "evals.example:4986,evil.example", " evals.example", "evals\texample"];
        for host in [&strangers[..], &userinfo, &spellings, &brackets, &numbers, &lookalikes].concat() {
            assert!(!passes(Version::HTTP_11, "/mcp", &[host]), "{host:?}");
        }
    }

    #[test]
    fn two_sources_that_differ_never_pass() {
        let (v1, v2) = (Version::HTTP_11, Version::HTTP_2);
        let (good, bad) = ("http://localhost:4986/mcp", "http://evil.example/mcp");
        assert!(!passes(v1, "/mcp", &["localhost:4986", "localhost:4986"]) && !passes(v1, "/mcp", &["localhost:4986", "evil.example"]));
        assert!(!passes(v1, "/mcp", &[]) && !passes(Version::HTTP_10, "/mcp", &[]));
        assert!(passes(v1, good, &["localhost:4986"]) && passes(v1, good, &["LOCALHOST:4986"]));
        assert!(!passes(v1, good, &[]), "HTTP/1 asks for the header");
        assert!(!passes(v1, bad, &["localhost:4986"]) && !passes(v1, good, &["evil.example"]) && !passes(v1, good, &["127.0.0.1:4986"]));
        assert!(passes(v2, good, &[]) && passes(v2, good, &["localhost:4986"]) && passes(v2, "/mcp", &["localhost:4986"]));
        assert!(!passes(v2, bad, &[]) && !passes(v2, bad, &["localhost:4986"]) && !passes(v2, good, &["evil.example"]));
        assert!(!passes(v2, "http://u@localhost:4986/mcp", &[]) && !passes(v2, "/mcp", &[]));
        let unreadable = &mut request(v1, "/mcp", &[b"local\xffhost:4986"]);
        assert!(rules(None, 4986, &[]).check(unreadable).is_err());
    }

    #[test]
    fn the_port_may_be_missing_only_where_it_is_80() {
        let eighty = rules(None, 80, &[]);
        assert!(["localhost", "localhost:80", "127.0.0.1", "[::1]"].iter().all(|host| eighty.admits(host)));
        let tls = rules(None, 443, &[]);
        assert!(tls.admits("localhost:443") && !tls.admits("localhost"));
    }

    #[test]
    fn the_bound_address_is_one_of_ours_unless_it_is_none() {
        assert!(rules(Some("192.0.2.7"), 4986, &[]).admits("192.0.2.7:4986"));
        assert!(rules(Some("2001:db8::7"), 4986, &[]).admits("[2001:db8::7]:4986"));
        assert!(!rules(Some("0.0.0.0"), 4986, &[]).admits("0.0.0.0:4986") && !rules(Some("::"), 4986, &[]).admits("[::]:4986"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn one_letter_more_or_less_is_another_host(at in 0_usize..20, letter in proptest::char::range(' ', '~'), which in 0_usize..6) {
            let rules = rules(None, 4986, &["evals.example"]);
            let all = ["127.0.0.1:4986", "localhost:4986", "[::1]:4986", "evals.example", "evals.example:443", "evals.example:4986"];
            let mut more = all[which].to_owned();
            more.insert(at.min(more.len()), letter);
            prop_assert!(!rules.admits(&more), "{}", more);
            let mut less = all[which].to_owned();
            less.remove(at.min(less.len() - 1));
            prop_assert!(!rules.admits(&less), "{}", less);
        }

        #[test]
        fn no_host_panics_and_none_but_ours_passes(host in "[!-~]{0,40}", target in "(/|http://)[!-~]{0,30}") {
            let rules = rules(None, 4986, &[]);
            let ours = ["127.0.0.1:4986", "localhost:4986", "[::1]:4986"].contains(&host.to_ascii_lowercase().as_str());
            prop_assert_eq!(rules.admits(&host), ours);
            if let Ok(uri) = target.parse::<http::Uri>() {
                let mut request = request(Version::HTTP_11, "/", &[host.as_bytes()]);
                *request.uri_mut() = uri;
                prop_assert!(ours || rules.check(&mut request).is_err());
            }
        }
    }
}
