//! The client-address step: a peer and header lines, to the address that limits are counted by.
//!
//! Promises: a stranger names no one; an address has one name; what a client wrote before its proxy counts for nothing; where every hop is a bare
//! address, the answer is that of a plain walk from the right.
//! Does not: repeat the step's rules on ports, brackets and quotes; its own tests do.

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderName, HeaderValue};
use runlore::gate::client::ClientRules;

use crate::mutate::Fuzz;

const HEADERS: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];
const PEERS: [&str; 6] = ["127.0.0.1", "::1", "10.1.2.3", "::ffff:10.1.2.3", "198.51.100.7", "2001:db8::7"];

const WORDS: &[&str] = &[
    "192.0.2.1",
    "198.51.100.7",
    "10.1.2.3",
    "127.0.0.1",
    "::1",
    "2001:db8:0:1::1",
    "2001:db8:0:1:ffff::2",
    "::ffff:192.0.2.1",
    "[2001:db8::1]",
    "[2001:db8::1]:4711",
    "192.0.2.1:80",
    "fe80::1%eth0",
    "unknown",
    "_hidden",
    "for=",
    "For=\"",
    ";proto=https",
    ";by=10.0.0.1",
    "\"",
    "\\",
    ", ",
    ",",
    "\n",
    " ",
    "\t",
    "garbage",
    "999.1.1.1",
    "é",
];

/// A letter for the header, one for the peer, and the header's lines.
fn corpus() -> Vec<Vec<u8>> {
    let lines = [
        "192.0.2.1",
        "198.51.100.7, 192.0.2.1",
        "198.51.100.7\n192.0.2.1",
        "192.0.2.1, 10.1.2.3, 127.0.0.1",
        "192.0.2.9, garbage",
        "192.0.2.1:4711",
        "[2001:db8::1]:4711, ::1",
        "for=192.0.2.1",
        "for=198.51.100.1, For=\"192.0.2.1:4711\";proto=https;by=10.0.0.1",
        "for=\"[2001:db8::1]:80\"",
        "for=\"a\\\"b, for=192.0.2.1",
        "::ffff:192.0.2.1",
        "2001:db8:0:1:ffff::2",
        "fe80::1%eth0",
        "",
    ];
    let choices = (0..HEADERS.len()).flat_map(|header| (0..PEERS.len()).map(move |peer| (header, peer)));
    choices.flat_map(|(header, peer)| lines.map(|lines| format!("{header}{peer}{lines}").into_bytes())).collect()
}

struct Asked<'a> {
    header: &'static str,
    peer: IpAddr,
    lines: Vec<&'a [u8]>,
}

fn asked(input: &[u8]) -> Asked<'_> {
    let byte = |at: usize| usize::from(input.get(at).copied().unwrap_or_default());
    Asked {
        header: HEADERS[byte(0) % HEADERS.len()],
        peer: PEERS[byte(1) % PEERS.len()].parse().unwrap(),
        lines: input.get(2..).unwrap_or_default().split(|byte| *byte == b'\n').collect(),
    }
}

fn headers(name: &'static str, lines: &[Vec<u8>]) -> HeaderMap {
    let values = lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok());
    values.map(|value| (HeaderName::from_static(name), value)).collect()
}

fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// One caller's address: a line of a house or a phone has a /64.
fn counted(address: IpAddr) -> IpAddr {
    match plain(address) {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

fn trusted(address: IpAddr) -> bool {
    let address = plain(address);
    address.is_loopback() || matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10)
}

/// The plain walk, where every hop of every line is a bare address.
fn walked(peer: IpAddr, headers: &HeaderMap, name: &str) -> Option<IpAddr> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("-")).collect();
    let hops = lines.join(",").split(',').map(|hop| hop.trim().parse().ok()).collect::<Option<Vec<IpAddr>>>()?;
    let stranger = hops.iter().rev().find(|hop| !trusted(**hop));
    Some(*stranger.or(hops.first()).unwrap_or(&peer))
}

fn check(input: &[u8]) -> String {
    let Asked { header, peer, lines } = asked(input);
    let rules = ClientRules::new(
        Some(HeaderName::from_static(header)),
        ["127.0.0.0/8", "::1/128", "10.0.0.0/8"].map(|net| net.parse().unwrap()).to_vec(),
    );
    let lines: Vec<Vec<u8>> = lines.into_iter().map(<[u8]>::to_vec).collect();
    let sent = headers(header, &lines);
    let client = rules.client(peer, &sent);
    assert_eq!(client.address, counted(client.address), "an address has one name");
    assert_eq!(client.proxied, trusted(peer) && !sent.is_empty());
    if !client.proxied {
        assert_eq!(client.address, counted(peer), "only a trusted proxy names another");
        return "nobody named".to_owned();
    }
    if let Some(expected) = walked(peer, &sent, header).filter(|_| header == HEADERS[0]) {
        assert_eq!(client.address, counted(expected));
    }
    let named = client.address != counted(peer);
    // The IPv6 loopback by its /64 is no loopback address any more.
    let proxy = trusted(client.address) || client.address == counted(Ipv6Addr::LOCALHOST.into());
    if header == HEADERS[2] {
        assert!(!named || sent.len() == 1, "one line or nothing");
    } else if named && !proxy {
        // What stands before the first stranger is his own claim, in the same line or in one before.
        let claim: &[u8] = if header == HEADERS[0] { b"203.0.113.5" } else { b"for=203.0.113.5" };
        let before: Vec<Vec<u8>> = [claim.to_vec()].into_iter().chain(lines.iter().cloned()).collect();
        assert_eq!(rules.client(peer, &headers(header, &before)), client, "a line before");
        let mut first = lines.clone();
        first[0] = [claim, b", ", first[0].as_slice()].concat();
        if HeaderValue::from_bytes(&lines[0]).is_ok() {
            assert_eq!(rules.client(peer, &headers(header, &first)), client, "a hop before");
        }
    }
    let class = if proxy { "a proxy" } else { "a stranger" };
    format!("{header} {} {class} {}", client.address.is_ipv4(), if named { "named" } else { "not named" })
}

#[test]
fn nobody_is_taken_for_another() {
    let outcomes = Fuzz { corpus: corpus(), words: WORDS }.run("client", check);
    for header in HEADERS {
        assert!(outcomes.contains(&format!("{header} true a stranger named")), "{header}: {outcomes:?}");
        assert!(outcomes.iter().any(|outcome| outcome.starts_with(header) && outcome.ends_with("not named")), "{header}: {outcomes:?}");
    }
}
