//! JSON lines over standard input and output, as rmcp's transport.
//!
//! Promises: every line that is no message is answered with what was wrong (rmcp's own transport leaves the client waiting); a line over the
//! cap is dropped as it comes; lines of two answers never mix.
//! Does not: know methods.

use std::{borrow::Cow, io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{ClientRequest, CustomRequest, JsonRpcMessage, JsonRpcRequest},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
};

use super::faults::Fault;
use crate::gate::{
    decode::envelope::{self, Envelope},
    message::Id,
    refusal::Barred,
};

/// Bytes of one line: arguments are small, and a client that sends more has lost its way.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The transport over a reader and a writer.
pub struct Lines<R, W> {
    input: R,
    output: Arc<Mutex<W>>,
    /// What of the present line has come: kept here, since rmcp drops the future that reads.
    line: Vec<u8>,
    /// Whether the present line is over the cap and its rest is dropped.
    over: bool,
}

impl<R, W> Lines<R, W> {
    /// The transport.
    #[must_use]
    pub fn new(input: R, output: W) -> Self {
        Self { input, output: Arc::new(Mutex::new(output)), line: Vec::new(), over: false }
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// The next whole line into `self.line`; whether there was one.
    async fn next(&mut self) -> io::Result<bool> {
        loop {
            let (taken, ended) = {
                let bytes = self.input.fill_buf().await?;
                if bytes.is_empty() {
                    return Ok(false);
                }
                let end = memchr::memchr(b'\n', bytes);
                let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
                self.over |= self.line.len() + part.len() > LINE_BYTES_MAX;
                if !self.over {
                    self.line.extend_from_slice(part);
                }
                (part.len() + usize::from(end.is_some()), end.is_some())
            };
            self.input.consume(taken);
            if ended {
                return Ok(true);
            }
        }
    }

    /// The message in the line, or the answer that says why it is none.
    fn read(&self) -> Result<RxJsonRpcMessage<RoleServer>, String> {
        if self.over {
            let fault = Fault::parse(format!("the line has more than {LINE_BYTES_MAX} bytes"));
            return Err(answer(None, &fault));
        }
        let envelope = envelope::read(&self.line).map_err(|barred| refused(&barred))?;
        if envelope.params.get("arguments").is_some_and(|arguments| !arguments.is_object() && !arguments.is_null()) {
            return Err(answer(envelope.id.as_ref(), &Fault::parameters("params.arguments must be an object")));
        }
        // rmcp reads the same bytes into its own types; what it does not know is no fault of the line.
        let read = if misread(&envelope) { self.custom() } else { serde_json::from_slice(&self.line) };
        read.map_err(|_| answer(envelope.id.as_ref(), &Fault::parameters("the parameters of this method are wrong")))
    }

    /// The request as rmcp hands it on whole.
    fn custom(&self) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
        let JsonRpcRequest { jsonrpc, id, request } = serde_json::from_slice::<JsonRpcRequest<CustomRequest>>(&self.line)?;
        Ok(JsonRpcMessage::Request(JsonRpcRequest { jsonrpc, id, request: ClientRequest::CustomRequest(request) }))
    }
}

/// Whether rmcp would take parameters that do not fit for none at all: a list's cursor that is no text would be its first page.
fn misread(envelope: &Envelope) -> bool {
    let cursor = envelope.params.get("cursor").filter(|cursor| !cursor.is_null());
    envelope.is_request() && envelope.method.ends_with("/list") && cursor.is_some_and(|cursor| !cursor.is_string())
}

fn refused(barred: &Barred) -> String {
    match barred {
        Barred::Malformed { code, message, data, id } => {
            answer(id.as_ref(), &Fault { code: *code, message: message.clone(), data: data.clone(), lacks: None })
        }
        _ => answer(None, &Fault::parse("the line is no message")),
    }
}

fn answer(id: Option<&Id>, fault: &Fault) -> String {
    let id = id.map_or_else(|| "null".to_owned(), Id::json);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", fault.json())
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<W>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncBufRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "runlore stdio".into()
    }

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        async move { write(&output, serde_json::to_vec(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A broken pipe ends the session as a closed one does.
            if !self.next().await.unwrap_or(false) {
                return None;
            }
            let blank = !self.over && self.line.iter().all(u8::is_ascii_whitespace);
            let message = if blank { None } else { Some(self.read()) };
            (self.line, self.over) = (Vec::new(), false);
            match message {
                None => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(answer)) => write(&self.output, answer.into_bytes()).await.ok()?,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output.lock().await.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answers(input: Vec<u8>) -> Vec<serde_json::Value> {
        let (written, mut seen) = tokio::io::duplex(1 << 16);
        let mut lines = Lines::new(std::io::Cursor::new(input), written);
        while lines.receive().await.is_some() {}
        drop(lines);
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut seen, &mut text).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered() {
        for (line, code) in [
            ("{", -32700),
            ("no json", -32700),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32700),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"history\",\"arguments\":[1]}}", -32602),
        ] {
            let answers = answers(format!("{line}\n").into_bytes()).await;
            assert_eq!(answers.len(), 1, "{line}");
            assert!(
                answers[0]["error"]["code"] == code || (code == -32700 && answers[0]["error"]["code"] == -32600),
                "{line}: {}",
                answers[0]
            );
        }
    }

    #[tokio::test]
    async fn messages_and_blank_lines_are_not_answered() {
        let mut lines = Lines::new(&b"\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"[..], tokio::io::sink());
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().await.is_none());
    }
}
