//! A server that others send to: it keeps what it gets and answers as a test says, or never.
//!
//! Promises: requests are kept whole, in the order that they came; a hanging one takes connections and says nothing.
//! Does not: understand what it gets; its tests do.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use super::service::wait_for;

/// What came.
#[derive(Debug, Clone)]
pub struct Got {
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers with this status.
    Answers(u16),
    /// Takes a connection and says nothing.
    Hangs,
}

/// The server.
pub struct Receiver {
    pub port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::<Mutex<Vec<Got>>>::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), kept) = (stream, kept.clone()) else { return };
                std::thread::spawn(move || answer(stream, manner, &kept));
            }
        });
        Self { port, got }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Waits until so many have come.
    pub fn wait(&self, count: usize) -> Vec<Got> {
        wait_for("what is sent", || Some(self.got()).filter(|got| got.len() >= count))
    }
}

fn answer(stream: TcpStream, manner: Manner, kept: &Mutex<Vec<Got>>) {
    let mut reader = BufReader::new(stream);
    while let Some(got) = read(&mut reader) {
        kept.lock().unwrap().push(got);
        let Manner::Answers(status) = manner else {
            // Open until the client leaves.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
            return;
        };
        let line = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
        if reader.get_mut().write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut line = || {
        let mut text = String::new();
        reader.read_line(&mut text).ok().filter(|count| *count > 0)?;
        Some(text.trim_end().to_owned())
    };
    let target = line()?.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let text = line()?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { target, headers, body })
}
