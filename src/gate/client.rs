//! The address that limits are counted by.
//!
//! Promises: a header names the caller only when the peer is a trusted proxy; what a stranger says of itself counts for nothing. One caller
//! has one address: IPv4-mapped IPv6 is IPv4, IPv6 is its /64.
//! Does not: decide anything by it; and it cannot hold a proxy that passes on what its clients wrote.
//!
//! `X-Forwarded-For` and `Forwarded` are walked right to left over all their lines to the first address that is no trusted proxy; whatever
//! is no address ends the walk at the hop before it. Any other header must be one line with one bare address (decisions 24, 55).

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderName, Request};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
    visit::{Client, Visit},
};

const X_FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED: &str = "forwarded";

/// Who may name the caller, and in which header.
#[derive(Debug, Clone)]
pub struct ClientRules {
    header: Option<HeaderName>,
    trusted: Arc<[IpNet]>,
    ignored: Arc<AtomicU64>,
}

impl ClientRules {
    /// The rules: `header` (none: the connection's own address counts) from peers in `trusted` (empty: loopback only, decision 55).
    #[must_use]
    pub fn new(header: Option<HeaderName>, trusted: Vec<IpNet>) -> Self {
        let trusted = if trusted.is_empty() { loopback() } else { trusted };
        Self { header, trusted: trusted.into(), ignored: Arc::default() }
    }

    /// Headers that came from strangers and were ignored, for metrics.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Whether `address` is a trusted proxy's.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = unmapped(address);
        self.trusted.iter().any(|net| net.contains(&address))
    }

    /// Who is counted for a request from `peer` with `headers`.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let peer = unmapped(peer);
        let named = self.header.as_ref().filter(|name| headers.contains_key(*name));
        let Some(name) = named else { return Client { address: masked(peer), proxied: false } };
        if !self.trusts(peer) {
            self.ignore(name);
            return Client { address: masked(peer), proxied: false };
        }
        // `proxied` even where the header names no one: otherwise garbage would be a way out of the limits of proxied callers.
        Client { address: masked(self.named(name, peer, headers)), proxied: true }
    }

    fn named(&self, name: &HeaderName, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        match name.as_str() {
            X_FORWARDED_FOR => self.walk(peer, lines(headers, name).flat_map(|line| line.rsplit(',').map(|hop| address(hop.trim())))),
            FORWARDED => self.walk(peer, lines(headers, name).flat_map(|line| forwarded(line).into_iter().rev())),
            _ => single(headers, name).unwrap_or(peer),
        }
    }

    /// The first of `hops` that is no trusted proxy; where they end or make no sense before that, the last one that was believed.
    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut believed = peer;
        for hop in hops {
            let Some(hop) = hop.map(unmapped) else { break };
            believed = hop;
            if !self.trusts(hop) {
                break;
            }
        }
        believed
    }

    fn ignore(&self, name: &HeaderName) {
        if self.ignored.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                header = name.as_str(),
                "a client header came from a peer that is no trusted proxy and is ignored (--trusted-proxy)"
            );
        }
    }
}

impl Check for ClientRules {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let peer = Visit::of(request).ok_or(Barred::Internal)?.peer.ip();
        let client = self.client(peer, request.headers());
        request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?.client = client;
        Ok(())
    }
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct ClientLayer {
    rules: ClientRules,
}

impl ClientLayer {
    /// The step.
    #[must_use]
    pub const fn new(rules: ClientRules) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for ClientLayer {
    type Service = Checked<S, ClientRules>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.rules.clone())
    }
}

fn loopback() -> Vec<IpNet> {
    let v4 = Ipv4Net::new(Ipv4Addr::new(127, 0, 0, 0), 8).map(IpNet::V4);
    let v6 = Ipv6Net::new(Ipv6Addr::LOCALHOST, 128).map(IpNet::V6);
    v4.into_iter().chain(v6).collect()
}

/// IPv4-mapped IPv6 is the IPv4 address that it holds.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// IPv6 by its /64: one line of a house or a phone has as many addresses as it likes.
fn masked(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        IpAddr::V4(_) => address,
    }
}

/// The header's lines, the last first; one that is no text is an empty one, which is no address.
fn lines<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    lines.into_iter().rev()
}

fn single(headers: &HeaderMap, name: &HeaderName) -> Option<IpAddr> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?.to_str().ok()?;
    lines.next().is_none().then_some(line.trim()).and_then(bare).map(unmapped)
}

fn bare(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// `1.2.3.4`, `1.2.3.4:5`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:5`. No zone, no name, no port out of range.
fn address(text: &str) -> Option<IpAddr> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return bare(text).or_else(|| text.parse::<SocketAddrV4>().ok().map(|socket| IpAddr::V4(*socket.ip())));
    };
    let (inside, after) = bracketed.split_once(']')?;
    let port = after.is_empty() || after.strip_prefix(':').is_some_and(|port| digits(port) && port.parse::<u16>().is_ok());
    inside.parse::<Ipv6Addr>().ok().filter(|_| port).map(IpAddr::V6)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The `for` of each element of a `Forwarded` line (RFC 7239), in its order; none where an element has none, two, or another thing. A line
/// whose quotes do not pair is one that makes no sense.
fn forwarded(line: &str) -> Vec<Option<IpAddr>> {
    let Some(elements) = split(line, ',') else { return vec![None] };
    elements.into_iter().map(element).collect()
}

fn element(text: &str) -> Option<IpAddr> {
    let pairs = split(text, ';')?;
    let mut fors = pairs.iter().filter_map(|pair| pair.split_once('=')).filter(|(key, _)| key.trim().eq_ignore_ascii_case("for"));
    let (_, value) = fors.next()?;
    let value = value.trim();
    let value = value.strip_prefix('"').map_or(Some(value), |rest| rest.strip_suffix('"'))?;
    fors.next().is_none().then(|| address(value)).flatten()
}

/// `text` at each `separator` outside quotes; none where a quote stays open. An address needs no escape: a backslash makes no sense.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let mut quoted = false;
    let parts = text.split(|letter| {
        quoted ^= letter == '"';
        letter == separator && !quoted
    });
    let parts: Vec<&str> = parts.collect();
    (!quoted && !text.contains('\\')).then_some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROXY: &str = "127.0.0.1";

    fn rules(header: &'static str) -> ClientRules {
        let trusted = ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "2001:db8:aaaa::/48"].map(|net| net.parse().unwrap());
        ClientRules::new(Some(HeaderName::from_static(header)), trusted.to_vec())
    }

    fn headers(name: &'static str, lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (HeaderName::from_static(name), http::HeaderValue::from_bytes(line.as_bytes()).unwrap())).collect()
    }

    fn seen(name: &'static str, peer: &str, lines: &[&str]) -> (String, bool) {
        let client = rules(name).client(peer.parse().unwrap(), &headers(name, lines));
        (client.address.to_string(), client.proxied)
    }

    #[test]
    fn x_forwarded_for_is_walked_from_the_right() {
        let rows: &[(&[&str], &str)] = &[
            (&["203.0.113.9"], "203.0.113.9"),
            (&["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
            (&["198.51.100.1, 203.0.113.9, 10.1.2.3"], "203.0.113.9"),
            (&["198.51.100.1", "203.0.113.9", "10.1.2.3,10.0.0.1"], "203.0.113.9"),
            (&["203.0.113.9,10.1.2.3", "198.51.100.1"], "198.51.100.1"),
            (&["10.1.2.3, 10.0.0.1"], "10.1.2.3"),
            // What is no address ends the walk at the hop before it.
            (&["203.0.113.9, unknown, 10.1.2.3"], "10.1.2.3"),
            (&["203.0.113.9, , 10.1.2.3"], "10.1.2.3"),
            (&["203.0.113.9", "", "10.1.2.3"], "10.1.2.3"),
            (&["203.0.113.9", "\u{e4}", "10.1.2.3"], "10.1.2.3"),
            (&["203.0.113.9, garbage"], PROXY),
            (&[""], PROXY),
            // Ports are left off; zones, names and ports out of range are no address.
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2::"),
            (&["[2001:db8:1:2::4]"], "2001:db8:1:2::"),
            (&["2001:db8:1:2:ffff::4"], "2001:db8:1:2::"),
            (&["203.0.113.9:99999"], PROXY),
            (&["203.0.113.9:"], PROXY),
            (&["[2001:db8::1]x"], PROXY),
            (&["[2001:db8::1]:+1"], PROXY),
            (&["[203.0.113.9]"], PROXY),
            (&["[2001:db8::1"], PROXY),
            (&["fe80::1%eth0"], PROXY),
            (&["[fe80::1%1]:80"], PROXY),
            (&["0203.0.113.9"], PROXY),
            (&["3405803785"], PROXY),
            (&["localhost"], PROXY),
            // One caller, one address; a mapped proxy is a proxy.
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9, ::ffff:10.1.2.3"], "203.0.113.9"),
            (&["203.0.113.9, 2001:db8:aaaa:1::1"], "203.0.113.9"),
        ];
        for (lines, address) in rows {
            assert_eq!(seen(X_FORWARDED_FOR, PROXY, lines), ((*address).to_owned(), true), "{lines:?}");
        }
    }

    #[test]
    fn forwarded_is_walked_from_the_right() {
        let rows: &[(&[&str], &str)] = &[
            (&["for=203.0.113.9"], "203.0.113.9"),
            (&["For=198.51.100.1;proto=https, for=203.0.113.9;by=10.0.0.1;host=\"a,b;for=x\""], "203.0.113.9"),
            (&["for=203.0.113.9", "for=10.1.2.3"], "203.0.113.9"),
            (&["for=\"[2001:db8:1:2::4]:4711\""], "2001:db8:1:2::"),
            (&["for=\"203.0.113.9:80\""], "203.0.113.9"),
            (&["for=203.0.113.9, for=unknown"], PROXY),
            (&["for=203.0.113.9, for=_hidden, for=10.1.2.3"], "10.1.2.3"),
            (&["for=203.0.113.9, by=10.0.0.1"], PROXY),
            (&["for=203.0.113.9;for=198.51.100.1"], PROXY),
            (&["for=\"203.0.113.9"], PROXY),
            (&["for=\"203.0.113.\\9\""], PROXY),
            (&["203.0.113.9"], PROXY),
            (&["for=203.0.113.9", "for=\"x", "for=10.1.2.3"], "10.1.2.3"),
        ];
        for (lines, address) in rows {
            assert_eq!(seen(FORWARDED, PROXY, lines), ((*address).to_owned(), true), "{lines:?}");
        }
    }

    #[test]
    fn any_other_header_is_one_line_with_one_bare_address() {
        let name = "x-real-ip";
        for (line, address) in
            [("203.0.113.9", "203.0.113.9"), ("::ffff:203.0.113.9", "203.0.113.9"), ("2001:db8:1:2:3::4", "2001:db8:1:2::")]
        {
            assert_eq!(seen(name, PROXY, &[line]), (address.to_owned(), true));
        }
        let bad: [&[&str]; 6] = [
            &["203.0.113.9:80"],
            &["203.0.113.9, 198.51.100.1"],
            &["[2001:db8::1]"],
            &["203.0.113.9", "203.0.113.9"],
            &[""],
            &["fe80::1%eth0"],
        ];
        for lines in bad {
            assert_eq!(seen(name, PROXY, lines), (PROXY.to_owned(), true), "{lines:?}");
        }
    }

    #[test]
    fn a_stranger_names_no_one() {
        for (peer, address) in
            [("203.0.113.77", "203.0.113.77"), ("2001:db8:1:2:3::4", "2001:db8:1:2::"), ("::ffff:203.0.113.77", "203.0.113.77")]
        {
            for name in [X_FORWARDED_FOR, FORWARDED, "x-real-ip"] {
                let rules = rules(name);
                let headers = headers(name, &["198.51.100.1"]);
                let client = rules.client(peer.parse().unwrap(), &headers);
                assert_eq!((client.address.to_string(), client.proxied, rules.ignored()), (address.to_owned(), false, 1));
            }
        }
    }

    #[test]
    fn without_a_header_the_connection_names_the_caller() {
        let none = ClientRules::new(None, Vec::new());
        let client = none.client("127.0.0.1".parse().unwrap(), &headers(X_FORWARDED_FOR, &["203.0.113.9"]));
        assert_eq!((client.address.to_string(), client.proxied, none.ignored()), (PROXY.to_owned(), false, 0));
        assert_eq!(seen(X_FORWARDED_FOR, "::ffff:127.0.0.1", &[]), (PROXY.to_owned(), false));
        assert_eq!(seen(X_FORWARDED_FOR, "::ffff:127.0.0.1", &["203.0.113.9"]), ("203.0.113.9".to_owned(), true));
        let default = ClientRules::new(Some(HeaderName::from_static("x-real-ip")), Vec::new());
        assert!(default.trusts("127.8.9.1".parse().unwrap()) && default.trusts("::1".parse().unwrap()));
        assert!(!default.trusts("10.0.0.1".parse().unwrap()) && !default.trusts("::".parse().unwrap()));
    }

    /// Text that looks like the real thing, as well as any other.
    fn line() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[ -~]{0,12}",
            r#"[0-9a-f:.\[\]%,;="]{0,24}"#,
            any::<Ipv4Addr>().prop_map(|address| address.to_string()),
            any::<Ipv6Addr>().prop_map(|address| format!("for=\"[{address}]:1\"")),
            Just("10.0.0.1".to_owned()),
            Just("for=10.0.0.1".to_owned()),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.join(","))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn nothing_panics_and_nothing_a_client_writes_before_its_proxy_counts(lines in proptest::collection::vec(line(), 0..4)) {
            let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
            for name in [X_FORWARDED_FOR, FORWARDED, "x-real-ip"] {
                let stranger = seen(name, "203.0.113.77", &texts);
                prop_assert_eq!(stranger, ("203.0.113.77".to_owned(), false));
                let (address, _) = seen(name, PROXY, &texts);
                let address: IpAddr = address.parse().unwrap();
                prop_assert_eq!(address, masked(unmapped(address)));
            }
            // What the proxy itself wrote stands last, on a line of its own or at the end of the client's.
            let own_line: Vec<&str> = texts.iter().copied().chain(["198.51.100.7"]).collect();
            prop_assert_eq!(seen(X_FORWARDED_FOR, PROXY, &own_line).0, "198.51.100.7");
            let appended = format!("{}, 198.51.100.7", texts.join(","));
            prop_assert_eq!(seen(X_FORWARDED_FOR, PROXY, &[&appended]).0, "198.51.100.7");
            let own_line: Vec<&str> = texts.iter().copied().chain(["for=198.51.100.7"]).collect();
            prop_assert_eq!(seen(FORWARDED, PROXY, &own_line).0, "198.51.100.7");
        }
    }
}
