//! HTTP/2 without TLS, by prior knowledge, frame by frame (HARDENING "Requests").

use std::time::Duration;

use serde_json::{Value, json};

use super::{service::Service, wire::Connection};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Each header as a literal that nobody indexes.
fn packed(headers: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        assert!(text.len() < 127, "a longer text needs a longer prefix");
        [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    };
    headers.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

struct H2 {
    connection: Connection,
    next: u32,
}

impl H2 {
    fn open(service: &Service) -> Self {
        let mut connection = service.connect();
        connection.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, &[])].concat());
        Self { connection, next: 1 }
    }

    fn read(&mut self) -> Option<Frame> {
        use std::io::Read as _;
        let mut head = [0; 9];
        self.connection.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.connection.stream.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Sends a request; its stream.
    fn send(&mut self, headers: &[(&str, &str)], body: &[u8]) -> u32 {
        let stream = self.next;
        self.next += 2;
        self.connection.send(frame(HEADERS, END_HEADERS, stream, &packed(headers)));
        self.connection.send(frame(DATA, END_STREAM, stream, body));
        stream
    }

    /// The status and body of `stream`'s answer; status 0 where the stream or the connection was ended instead.
    fn answer(&mut self, stream: u32) -> (u16, Vec<u8>) {
        let (mut status, mut body) = (0, Vec::new());
        while let Some(frame) = self.read() {
            match frame.kind {
                HEADERS if frame.stream == stream => status = status_of(&frame.payload),
                DATA if frame.stream == stream => body.extend(frame.payload),
                RST_STREAM if frame.stream == stream => return (status, body),
                GOAWAY => return (status, body),
                _ => {}
            }
            if frame.stream == stream && frame.flags & END_STREAM != 0 && matches!(frame.kind, DATA | HEADERS) {
                return (status, body);
            }
        }
        (status, body)
    }

    /// Reads to the end; whether a GOAWAY came. A connection that is reset counts: the frame may be lost with it.
    fn goes_away(&mut self) -> bool {
        self.connection.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        loop {
            match self.read() {
                Some(frame) if frame.kind == GOAWAY => return true,
                Some(_) => {}
                None => {
                    return !self.connection.try_send(frame(PING, 0, 0, &[0; 8])) || !self.connection.try_send(frame(PING, 0, 0, &[0; 8]));
                }
            }
        }
    }
}

/// `:status` is the first header of an answer: indexed where it is common, else a literal under an indexed name.
fn status_of(block: &[u8]) -> u16 {
    match block.first() {
        Some(0x88) => 200,
        Some(0x89) => 204,
        Some(0x8c) => 400,
        Some(0x8d) => 404,
        Some(0x8e) => 500,
        Some(0x08 | 0x48 | 0x18) if block.get(1) == Some(&3) => std::str::from_utf8(&block[2..5]).unwrap().parse().unwrap(),
        // Huffman-coded digits: five bits each for 0, 1 and 2, six for the others.
        Some(0x08 | 0x48 | 0x18) => huffman_digits(&block[2..2 + usize::from(block[1] & 0x7f)]),
        _ => 0,
    }
}

fn huffman_digits(bytes: &[u8]) -> u16 {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let (mut at, mut number) = (0, 0);
    for _ in 0..3 {
        let (digit, width) = match &bits[at..at + 5] {
            "00000" => (0, 5),
            "00001" => (1, 5),
            "00010" => (2, 5),
            _ => (u16::from_str_radix(&bits[at..at + 6], 2).unwrap() - 0b01_1001 + 3, 6),
        };
        number = number * 10 + digit;
        at += width;
    }
    number
}

fn request<'a>(authority: &'a str, rest: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers =
        vec![(":method", "POST"), (":scheme", "http"), (":path", "/mcp"), (":authority", authority), ("content-type", "application/json")];
    headers.extend(rest);
    headers
}

fn ping() -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string().into_bytes()
}

#[test]
fn it_is_spoken() {
    let service = Service::start(&[]);
    let authority = format!("127.0.0.1:{}", service.port);
    let mut h2 = H2::open(&service);
    for _ in 0..3 {
        let stream = h2.send(&request(&authority, &[]), &ping());
        let (status, body) = h2.answer(stream);
        assert_eq!((status, serde_json::from_slice::<Value>(&body).unwrap()["result"].to_string()), (200, "{}".to_owned()));
    }
    let stream = h2.send(&request("evil.example", &[]), &ping());
    assert_eq!(h2.answer(stream).0, 421);
}

#[test]
fn authority_and_host_may_not_differ() {
    let service = Service::start(&[]);
    let authority = format!("127.0.0.1:{}", service.port);
    for (authority, host) in [(authority.as_str(), "evil.example"), ("evil.example", authority.as_str())] {
        let mut h2 = H2::open(&service);
        let stream = h2.send(&request(authority, &[("host", host)]), &ping());
        let (status, body) = h2.answer(stream);
        assert!(matches!(status, 400 | 421), "{authority} {host}: {status} {}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn streams_have_a_number() {
    let service = Service::start(&[]);
    let mut h2 = H2::open(&service);
    let settings = h2.read().unwrap();
    assert_eq!(settings.kind, SETTINGS);
    let pairs: Vec<(u16, u32)> = settings
        .payload
        .chunks(6)
        .map(|pair| (u16::from_be_bytes([pair[0], pair[1]]), u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]])))
        .collect();
    let of = |key: u16| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    assert!(of(3).is_some_and(|streams| streams <= 128), "concurrent streams: {pairs:?}");
    assert!(of(6).is_some_and(|bytes| bytes <= 65_536), "header list: {pairs:?}");
}

/// Writes until the server stops taking it; how many were written.
fn flood(h2: &mut H2, most: u32, mut piece: impl FnMut(u32) -> Vec<u8>) -> u32 {
    h2.connection.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    (0..most).take_while(|n| h2.connection.try_send(piece(*n))).count().try_into().unwrap()
}

#[test]
fn floods_are_ended_and_memory_stays_flat() {
    let service = Service::start(&[]);
    let authority = format!("127.0.0.1:{}", service.port);
    service.serves();
    let before = service.resident_kib();
    let block = packed(&request(&authority, &[]));

    let mut resets = H2::open(&service);
    flood(&mut resets, 20_000, |n| {
        [frame(HEADERS, END_HEADERS, n * 2 + 1, &block), frame(RST_STREAM, 0, n * 2 + 1, &8_u32.to_be_bytes())].concat()
    });
    assert!(resets.goes_away(), "rapid reset");

    let mut continuations = H2::open(&service);
    continuations.connection.send(frame(HEADERS, 0, 1, &block));
    let long = "x".repeat(100);
    let pad = packed(&[("x-pad", long.as_str()); 100]);
    flood(&mut continuations, 20_000, |_| frame(CONTINUATION, 0, 1, &pad));
    assert!(continuations.goes_away(), "CONTINUATION");

    let mut empty = H2::open(&service);
    empty.connection.send(frame(HEADERS, END_HEADERS, 1, &block));
    flood(&mut empty, 200_000, |_| frame(DATA, 0, 1, &[]));
    assert!(empty.goes_away(), "empty DATA");

    service.serves();
    let grown = service.resident_kib().saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB more");
}
