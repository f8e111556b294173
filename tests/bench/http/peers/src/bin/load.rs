//! The load: keep-alive POSTs over plain sockets, the same for every server; prints one JSON line.
//!
//! `load PORT CONNECTIONS REQUESTS HEAD BODY`: HEAD and BODY are files; `@N@` in either becomes the request's number, and `@A@` an address of
//! 100,000 (for `X-Forwarded-For`). An answer that is no 200, or an error result, is counted as bad.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

static NEXT: AtomicU64 = AtomicU64::new(0);
static BAD: AtomicU64 = AtomicU64::new(0);

fn number(at: usize) -> u64 {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn file(at: usize) -> std::io::Result<String> {
    std::fs::read_to_string(std::env::args().nth(at).unwrap_or_default())
}

fn filled(template: &str, n: u64) -> String {
    let address = n % 100_000;
    template.replace("@N@", &n.to_string()).replace("@A@", &format!("198.{}.{}.{}", 18 + address / 65_536, address / 256 % 256, address % 256))
}

fn connect(port: u16) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    Ok(BufReader::new(stream))
}

/// Reads one answer; its status, its body, and whether the server closes after it.
fn answer(stream: &mut BufReader<TcpStream>) -> std::io::Result<(String, Vec<u8>, bool)> {
    let mut status = String::new();
    stream.read_line(&mut status)?;
    let (mut length, mut chunked, mut closes) = (0, false, false);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or_default();
        }
        chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
        closes |= line == "connection: close";
    }
    let mut body = Vec::new();
    if !chunked {
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    }
    while chunked {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or_default();
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..])?;
        stream.read_line(&mut line)?;
        chunked = size > 0;
    }
    Ok((status, body, closes))
}

fn worker(port: u16, requests: u64, head: &str, body: &str) -> std::io::Result<(Vec<u64>, usize)> {
    let mut stream = connect(port)?;
    let (mut took, mut bytes) = (Vec::new(), 0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        if n >= requests {
            return Ok((took, bytes));
        }
        let body = filled(body, n);
        let message = format!("{}content-length: {}\r\n\r\n{body}", filled(head, n), body.len());
        let began = Instant::now();
        stream.get_mut().write_all(message.as_bytes())?;
        let (status, said, closes) = answer(&mut stream)?;
        took.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        bytes = said.len();
        let text = String::from_utf8_lossy(&said);
        if !status.contains(" 200 ") || !text.contains("structuredContent") || text.contains("\"isError\":true") {
            if BAD.fetch_add(1, Ordering::Relaxed) == 0 {
                eprintln!("bad answer: {status}{text}");
            }
        }
        if closes {
            stream = connect(port)?;
        }
    }
}

fn main() -> std::io::Result<()> {
    let (port, connections, requests) = (u16::try_from(number(1)).unwrap_or_default(), number(2), number(3));
    let (head, body) = (file(4)?, file(5)?);
    let began = Instant::now();
    let mut took = Vec::new();
    let mut bytes = 0;
    let mut broken = 0;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections).map(|_| scope.spawn(|| worker(port, requests, &head, &body))).collect();
        for worker in workers {
            match worker.join() {
                Ok(Ok((times, size))) => {
                    took.extend(times);
                    bytes = bytes.max(size);
                }
                Ok(Err(error)) => {
                    broken += 1;
                    eprintln!("a connection broke: {error}");
                }
                Err(_) => broken += 1,
            }
        }
    });
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 1000).copied().unwrap_or_default() / 1000;
    println!(
        "{{\"requests\":{},\"bad\":{},\"broken\":{broken},\"seconds\":{:.3},\"p50_us\":{},\"p99_us\":{},\"bytes\":{bytes}}}",
        took.len(),
        BAD.load(Ordering::Relaxed),
        began.elapsed().as_secs_f64(),
        at(500),
        at(990)
    );
    Ok(())
}
