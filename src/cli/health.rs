//! `runlore health [URL]`: whether a server answers; the image's health check (decision 79).
//!
//! Over `std::net`, in one GET by hand: the image has no shell and no curl, the answer is one line from our own server, and an HTTP client
//! with TLS and redirects would be more code than the rest of the command line. So `http://` only: a check runs beside its server.
//!
//! Promises: ends within [`DEADLINE`], with 0 where the server says that it is well, else 1 with a sentence.
//! Does not: follow redirects, or read more than [`ANSWER_BYTES_MAX`].

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use clap::{Arg, ArgMatches, Command};

use super::{CliError, output::Output};
use crate::clock;

/// Where `runlore mcp --http` is, by default.
const DEFAULT_URL: &str = "http://127.0.0.1:4986/mcp/health";
/// The server itself gives its store one second.
const DEADLINE: Duration = Duration::from_secs(5);
/// The answer has some 300 bytes.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// The verb.
#[must_use]
pub fn command() -> Command {
    let url = Arg::new("url")
        .value_name("URL")
        .default_value(DEFAULT_URL)
        .help("The health of an endpoint, or the private listener's /readyz; http only");
    Command::new("health").about("Asks a server whether it is well; exits with 0 if so, else with 1").arg(url)
}

/// Asks.
///
/// # Errors
/// [`CliError::Refused`] where the server is not well, [`CliError::Usage`] where the URL is none.
pub fn run(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    let url = matches.get_one::<String>("url").map_or(DEFAULT_URL, String::as_str);
    let (authority, path) = split(url).ok_or_else(|| CliError::Usage(format!("{url} is no http:// URL")))?;
    let answer = ask(&authority, &path).map_err(|error| CliError::Refused(format!("{url} does not answer: {error}")))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("nothing");
    if head.starts_with("HTTP/1.") && status == "200" {
        output.say(body.trim_end());
        return Ok(0);
    }
    Err(CliError::Refused(format!("{url} is not well: it answered {status}")))
}

/// The host with its port, and the path.
fn split(url: &str) -> Option<(String, String)> {
    let uri: http::Uri = url.parse().ok().filter(|uri: &http::Uri| uri.scheme_str() == Some("http"))?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    Some((format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80)), path.to_owned()))
}

fn ask(authority: &str, path: &str) -> std::io::Result<String> {
    let until = clock::monotonic() + DEADLINE;
    let mut stream = connect(authority, until)?;
    stream.set_write_timeout(Some(left(until)?))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: application/json\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 1024];
    // A deadline for the whole, not for each read: a server that drips is not well either.
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        let count = stream.read(&mut part)?;
        answer.extend(part.iter().take(count));
        if count == 0 || answer.len() as u64 > ANSWER_BYTES_MAX {
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
    }
}

fn connect(authority: &str, until: Instant) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(clock::monotonic());
    if left.is_zero() { Err(std::io::Error::other(format!("not within {} s", DEADLINE.as_secs()))) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn against(answer: &'static str) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let count = stream.read(&mut head).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&head[..count]).into_owned()
        });
        let matches = command().try_get_matches_from(["health", &format!("http://{authority}/mcp/health")]).unwrap();
        let code = run(&matches, &mut Output::standard());
        let head = server.join().unwrap();
        assert!(head.starts_with("GET /mcp/health HTTP/1.1\r\n") && head.contains(&format!("Host: {authority}\r\n")), "{head}");
        code.map(|code| code.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn well_is_0_and_all_else_a_sentence() {
        assert_eq!(against("HTTP/1.1 200 OK\r\n\r\n{\"ok\":true}").as_deref(), Ok("0"));
        assert!(against("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ok\":false}").unwrap_err().ends_with("is not well: it answered 503"));
        assert!(against("SSH-2.0-200\r\n").unwrap_err().contains("is not well"));
        assert!(against("").unwrap_err().contains("is not well: it answered nothing"));
    }

    #[test]
    fn a_url_is_http_without_a_name_and_password() {
        assert_eq!(split("http://[::1]:80/x?y"), Some(("[::1]:80".into(), "/x?y".into())));
        assert_eq!(split("http://server"), Some(("server:80".into(), "/".into())));
        for bad in ["https://server/", "server:1", "http://a@server/", "http://", "x"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
