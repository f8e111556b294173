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
