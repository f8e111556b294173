//! HTTP/1.1 over a plain socket: requests as bytes, answers as read.
//!
//! Promises: a request says exactly what the test wrote; every read has a deadline.
//! Does not: follow, retry or repair anything.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Longer than any wait that a test asks of the server.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub struct Connection {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The header's value; it must not stand twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert!(found.next().is_none(), "{name} stands twice in {self:?}");
        first
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, or the one event's data.
    pub fn json(&self) -> Value {
        let text = self.text();
        let json = match text.strip_prefix("event: message\ndata: ") {
            Some(data) => data.trim_end(),
            None => &text,
        };
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON-RPC error code, 0 where there is none.
    pub fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }

    /// `error.data.reason`.
    pub fn reason(&self) -> String {
        self.json()["error"]["data"]["reason"].as_str().unwrap_or_default().to_owned()
    }
}

impl Connection {
    pub fn open(port: u16) -> Self {
        Self::over(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    pub fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what a server that has already answered may refuse to take.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    pub fn ask(&mut self, request: &Request) -> Answer {
        self.send(request.bytes());
        self.answer()
    }

    /// The next answer.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().unwrap_or_else(|why| panic!("no answer: {why}"))
    }

    /// The next answer, or why there is none.
    pub fn try_answer(&mut self) -> Result<Answer, String> {
        let head = self.up_to(b"\r\n\r\n")?;
        let head = String::from_utf8(head).map_err(|error| error.to_string())?;
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.split(' ').nth(1).and_then(|text| text.parse().ok()).ok_or_else(|| format!("{status_line:?}"))?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let of = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let body = match (of("transfer-encoding"), of("content-length")) {
            (Some(_), _) => self.chunks()?,
            (None, Some(length)) => self.exactly(length.parse().map_err(|_| "a wrong content-length")?)?,
            (None, None) => Vec::new(),
        };
        Ok(Answer { status, headers, body })
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let line = self.up_to(b"\r\n")?;
            let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).map_err(|error| error.to_string())?;
            body.extend(self.exactly(size)?);
            self.up_to(b"\r\n")?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn up_to(&mut self, end: &[u8]) -> Result<Vec<u8>, String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                return Ok(self.buffer.drain(..at + end.len()).collect());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn more(&mut self) -> Result<(), String> {
        let mut piece = [0; 16_384];
        match self.stream.read(&mut piece) {
            Ok(0) => Err(format!("closed after {:?}", String::from_utf8_lossy(&self.buffer))),
            Ok(count) => {
                self.buffer.extend(&piece[..count]);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Everything until the server closes, and when it did; a panic if it does not within `within`.
    pub fn until_closed(&mut self, within: Duration) -> (Vec<u8>, Duration) {
        let began = Instant::now();
        self.stream.set_read_timeout(Some(within)).unwrap();
        let mut all = std::mem::take(&mut self.buffer);
        let mut piece = [0; 16_384];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return (all, began.elapsed()),
                Ok(count) => all.extend(&piece[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return (all, began.elapsed()),
                Err(error) => panic!("still open after {:?}: {error}: {:?}", began.elapsed(), String::from_utf8_lossy(&all)),
            }
        }
    }
}

/// A request, as it will be written.
#[derive(Clone)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A POST of `message` to `/mcp` with what every client sends.
    pub fn post(port: u16, message: &Value) -> Self {
        Self::raw(port, message.to_string())
    }

    /// The same with any body.
    pub fn raw(port: u16, body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("host", format!("127.0.0.1:{port}")),
            ("content-type", "application/json".into()),
            ("accept", "application/json, text/event-stream".into()),
        ];
        Self {
            method: "POST".into(),
            target: "/mcp".into(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            body: Some(body.into()),
        }
    }

    /// A request of the older era.
    pub fn legacy(port: u16, method: &str, params: &Value) -> Self {
        Self::post(port, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).with("mcp-protocol-version", "2025-11-25")
    }

    /// A request of the era without a handshake, its headers as they should be.
    pub fn modern(port: u16, method: &str, params: &Value) -> Self {
        let mut params = params.clone();
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        if params.get("_meta").is_none() {
            params["_meta"] = meta();
        }
        let request = Self::post(port, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method);
        match name {
            Some(name) => request.with("mcp-name", &name),
            None => request,
        }
    }

    /// A tool call of the older era.
    pub fn call(port: u16, tool: &str, arguments: &Value) -> Self {
        Self::legacy(port, "tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// A GET.
    pub fn get(port: u16, target: &str) -> Self {
        Self { method: "GET".into(), target: target.into(), headers: vec![("host".into(), format!("127.0.0.1:{port}"))], body: None }
    }

    pub fn to(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub fn by(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// In place of the header that is there, or one more.
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// One more line, beside what is there.
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// The head alone, with a content-length unless the test wrote its own framing.
    pub fn head(&self) -> Vec<u8> {
        let framed = self.headers.iter().any(|(name, _)| name == "content-length" || name == "transfer-encoding");
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.target)];
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if let (Some(body), false) = (&self.body, framed) {
            lines.push(format!("content-length: {}", body.len()));
        }
        format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend(self.body.iter().flatten());
        bytes
    }
}

/// The `_meta` of a modern request.
pub fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"}})
}
