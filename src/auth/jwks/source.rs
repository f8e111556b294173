//! Where key sets come from: a file, a URL, or our own key.
//!
//! Promises: https, or http to this machine only; no redirects; a whole answer within its deadline and its bytes. Blocking: whoever calls
//! does so on a thread that may wait.
//! Does not: read what comes, or decide when to ask.

use std::{
    fs::File,
    io::Read,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ureq::{
    Agent,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem},
};

/// Bytes of a file of certificates.
const CERTIFICATES_BYTES_MAX: u64 = 1024 * 1024;

/// A place of a key set.
pub trait Fetch: Send + Sync + 'static {
    /// The document as it is now. May block.
    ///
    /// # Errors
    /// [`FetchFault`].
    fn fetch(&self) -> Result<Vec<u8>, FetchFault>;
}

/// Why there is no document; for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchFault {
    /// The file cannot be read, or the server does not answer.
    #[error("it cannot be read: {0}")]
    Unreachable(String),
    /// It is larger than may be.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The server says something else than 200.
    #[error("the server answered {0}, not 200")]
    Status(u16),
}

/// A file.
#[derive(Debug, Clone)]
pub struct FromFile {
    path: PathBuf,
    bytes_max: u64,
}

impl FromFile {
    /// The file at `path`, of at most `bytes_max` bytes.
    #[must_use]
    pub const fn new(path: PathBuf, bytes_max: u64) -> Self {
        Self { path, bytes_max }
    }
}

impl Fetch for FromFile {
    fn fetch(&self) -> Result<Vec<u8>, FetchFault> {
        let file = File::open(&self.path).map_err(|error| FetchFault::Unreachable(error.to_string()))?;
        bounded(file, self.bytes_max)
    }
}

fn bounded(from: impl Read, bytes_max: u64) -> Result<Vec<u8>, FetchFault> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| FetchFault::Unreachable(error.to_string()))?;
    if bytes.len() as u64 > bytes_max { Err(FetchFault::TooLarge(bytes_max)) } else { Ok(bytes) }
}

/// A document that is here already: the set of our own key.
#[derive(Debug, Clone)]
pub struct Fixed(pub String);

impl Fetch for Fixed {
    fn fetch(&self) -> Result<Vec<u8>, FetchFault> {
        Ok(self.0.clone().into_bytes())
    }
}

/// A URL.
#[derive(Debug, Clone)]
pub struct FromUrl {
    agent: Agent,
    url: String,
    bytes_max: u64,
}

impl FromUrl {
    /// `url`, of at most `bytes_max` bytes within `deadline`; `authorities` stand for the public certificate authorities where given.
    ///
    /// # Errors
    /// A sentence that says which URLs are taken.
    pub fn new(url: &str, bytes_max: u64, deadline: Duration, authorities: Option<&Authorities>) -> Result<Self, String> {
        let kind = kind(url).ok_or_else(|| format!("{url} must be an https:// URL, or http:// to this machine"))?;
        let roots = authorities.map_or(RootCerts::WebPki, |own| RootCerts::from(own.0.clone()));
        let config = Agent::config_builder()
            .https_only(kind == Kind::Https)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_global(Some(deadline))
            .user_agent(concat!("runlore/", env!("CARGO_PKG_VERSION")))
            .accept("application/jwk-set+json, application/json")
            .tls_config(TlsConfig::builder().root_certs(roots).build());
        // To this machine nothing goes by a proxy.
        let config = if kind == Kind::Loopback { config.proxy(None) } else { config };
        Ok(Self { agent: config.build().new_agent(), url: url.to_owned(), bytes_max })
    }
}

impl Fetch for FromUrl {
    fn fetch(&self) -> Result<Vec<u8>, FetchFault> {
        let mut answer = self.agent.get(&self.url).call().map_err(|error| FetchFault::Unreachable(error.to_string()))?;
        let status = answer.status().as_u16();
        if status == 200 { bounded(answer.body_mut().as_reader(), self.bytes_max) } else { Err(FetchFault::Status(status)) }
    }
}

/// Certificate authorities of the operator's own.
#[derive(Debug, Clone)]
pub struct Authorities(Vec<Certificate<'static>>);

impl Authorities {
    /// Those in the PEM file at `path`.
    ///
    /// # Errors
    /// A sentence, where the file cannot be read or has none.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let file = File::open(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
        let text = bounded(file, CERTIFICATES_BYTES_MAX).map_err(|fault| format!("{name}: {fault}"))?;
        let certificate = |item| if let Ok(PemItem::Certificate(one)) = item { Some(one) } else { None };
        let all: Vec<_> = parse_pem(&text).filter_map(certificate).collect();
        if all.is_empty() { Err(format!("{name} holds no certificate in PEM")) } else { Ok(Self(all)) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Https,
    Loopback,
}

/// Whether key sets may be fetched from `url`: https anywhere, http on this machine; a host, and neither user nor password in it.
#[must_use]
pub fn is_fetchable(url: &str) -> bool {
    kind(url).is_some()
}

fn kind(url: &str) -> Option<Kind> {
    let uri: http::Uri = url.parse().ok()?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())?;
    match uri.scheme_str()? {
        "https" => Some(Kind::Https),
        "http" if is_loopback(authority.host()) => Some(Kind::Loopback),
        _ => None,
    }
}

/// Whether a URL's host is this machine, however it is written.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write as _, net::TcpListener, thread::JoinHandle};

    const DEADLINE: Duration = Duration::from_secs(20);

    /// A server that answers one request with exactly `answer`, and tells what it was asked.
    fn serving(answer: Vec<u8>) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 2048];
            let count = stream.read(&mut head).unwrap();
            // A client that has read enough may have left.
            let _ = stream.write_all(&answer);
            String::from_utf8_lossy(&head[..count]).into_owned()
        });
        (url, thread)
    }

    fn fetched(answer: &str, bytes_max: u64) -> Result<Vec<u8>, FetchFault> {
        let (url, thread) = serving(answer.as_bytes().to_vec());
        let got = FromUrl::new(&url, bytes_max, DEADLINE, None).unwrap().fetch();
        let head = thread.join().unwrap().to_lowercase();
        assert!(
            head.starts_with("get /keys http/1.1\r\n") && head.contains("user-agent: runlore/") && !head.contains("authorization"),
            "{head}"
        );
        got
    }

    #[test]
    fn an_answer_is_200_whole_and_within_its_bytes() {
        assert_eq!(fetched("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 2), Ok(b"{}".to_vec()));
        assert_eq!(fetched("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{ }", 2), Err(FetchFault::TooLarge(2)));
        assert_eq!(fetched("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{ }\r\n0\r\n\r\n", 2), Err(FetchFault::TooLarge(2)));
        assert_eq!(
            fetched("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 2),
            Err(FetchFault::Status(302))
        );
        assert_eq!(fetched("HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n", 2), Err(FetchFault::Status(503)));
        assert!(matches!(fetched("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", 20), Err(FetchFault::Unreachable(_))), "cut off");
        assert!(matches!(fetched("SSH-2.0\r\n", 20), Err(FetchFault::Unreachable(_))));
    }

    /// The server keeps what it accepted open: only the deadline ends it.
    #[test]
    fn a_server_that_says_nothing_or_half_is_left_at_the_deadline() {
        for half in ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"keys\""] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap());
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(half.as_bytes()).unwrap();
                // Open until the client leaves.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
            let fetch = FromUrl::new(&url, 100, Duration::from_millis(50), None).unwrap();
            assert!(matches!(fetch.fetch(), Err(FetchFault::Unreachable(_))), "{half:?}");
            drop(fetch);
            server.join().unwrap();
        }
    }

    #[test]
    fn https_is_asked_for_in_tls_and_never_without() {
        let (url, thread) = serving(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec());
        let fetch = FromUrl::new(&url.replace("http:", "https:"), 100, DEADLINE, None).unwrap();
        assert!(matches!(fetch.fetch(), Err(FetchFault::Unreachable(_))));
        assert!(thread.join().unwrap().starts_with('\u{16}'), "a TLS handshake begins so");
    }

    #[test]
    fn https_anywhere_and_http_on_this_machine() {
        for good in
            ["https://id.example/keys", "https://id.example:8443/a?b=c", "http://127.0.0.1:8080/k", "http://[::1]/k", "http://localhost/k"]
        {
            assert!(is_fetchable(good), "{good}");
        }
        let bad = [
            "http://id.example/keys",
            "http://127.0.0.1.evil.example/",
            "http://10.0.0.1/",
            "https://u:p@id.example/",
            "file:///etc/x",
            "id.example",
            "",
            "https://",
        ];
        for bad in bad {
            assert!(!is_fetchable(bad) && FromUrl::new(bad, 1, DEADLINE, None).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_read_within_its_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{}").unwrap();
        assert_eq!(FromFile::new(file.path().to_owned(), 2).fetch(), Ok(b"{}".to_vec()));
        assert_eq!(FromFile::new(file.path().to_owned(), 1).fetch(), Err(FetchFault::TooLarge(1)));
        assert!(matches!(FromFile::new("no/such/file".into(), 1).fetch(), Err(FetchFault::Unreachable(_))));
        assert!(Authorities::read(file.path()).is_err_and(|text| text.ends_with("holds no certificate in PEM")));
    }
}
