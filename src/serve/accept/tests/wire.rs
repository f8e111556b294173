//! HTTP/2 by hand: frames as an attacker makes them, and as much of a client as the tests need.

use super::*;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request's fields, by HPACK's static table and plain literals.
pub fn fields(path: &str, more: usize) -> Vec<u8> {
    let mut block = vec![0x83, 0x86, 0x01, 1, b'a', 0x04, u8::try_from(path.len()).unwrap()];
    block.extend_from_slice(path.as_bytes());
    for index in 0..more {
        let name = format!("x-{index}");
        block.extend_from_slice(&[0x00, u8::try_from(name.len()).unwrap()]);
        block.extend_from_slice(name.as_bytes());
        block.extend_from_slice(&[1, b'v']);
    }
    block
}

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub struct Client {
    pub stream: TcpStream,
    seen: Vec<Frame>,
}

impl Client {
    pub async fn connect(server: &Server) -> Self {
        Self::with_settings(server, &[]).await
    }

    pub async fn with_settings(server: &Server, settings: &[u8]) -> Self {
        let stream = server.send([PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await;
        Self { stream, seen: Vec::new() }
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        self.stream.write_all(&frame(kind, flags, stream, payload)).await.is_ok()
    }

    pub async fn request(&mut self, stream: u32, path: &str) {
        assert!(self.send(HEADERS, END_HEADERS | END_STREAM, stream, &fields(path, 0)).await);
    }

    /// The next frame; none at the end. Acknowledges pings and settings, as a client does.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        tokio::time::timeout(PATIENCE, self.stream.read_exact(&mut head)).await.expect("nothing came").ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        if frame.flags & ACK == 0 && matches!(frame.kind, PING | SETTINGS) {
            let echo = if frame.kind == PING { frame.payload.clone() } else { Vec::new() };
            self.send(frame.kind, ACK, 0, &echo).await;
        }
        Some(frame)
    }

    /// The body of the answer on a stream; frames of others are kept for later.
    pub async fn answer(&mut self, stream: u32) -> String {
        while !self.seen.iter().any(|frame| frame.stream == stream && frame.kind < 2 && frame.flags & END_STREAM != 0) {
            let frame = self.next().await.expect("the connection ended before the answer");
            self.seen.push(frame);
        }
        let body = self.seen.iter().filter(|frame| frame.stream == stream && frame.kind == DATA);
        body.map(|frame| String::from_utf8_lossy(&frame.payload).into_owned()).collect()
    }

    /// The first byte of the answer's fields: 0x88 is `:status: 200`.
    pub fn status(&self, stream: u32) -> &[u8] {
        self.seen.iter().find(|frame| frame.stream == stream && frame.kind == HEADERS).map_or(&[], |frame| &frame.payload)
    }

    /// Reads to the end of the connection; whether a GOAWAY came.
    pub async fn ends_with_goaway(&mut self) -> bool {
        let mut goaway = self.seen.iter().any(|frame| frame.kind == GOAWAY);
        while let Some(frame) = self.next().await {
            goaway |= frame.kind == GOAWAY;
        }
        goaway
    }
}
