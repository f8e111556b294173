//! The real Caddy before the real server, with the files of `deploy/` as they stand: TLS, who is counted, what ends at the edge, what is never
//! reached (decision 11).
//!
//! Promises: requests come from addresses of their own (127.0.0.x) through a real client, curl; whom the server counts is read from its
//! analytics event. Only ports, the certificate and Caddy's own directory are put in the files' place.
//! Does not: pass where Caddy or curl is missing: tests/run installs them.

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use serde_json::{Value, json};

use crate::{
    examples::file,
    harness::{Project, ran},
    http::{
        receiver::{Manner, Receiver},
        service::{Service, free_port, wait_for},
    },
};

const HOST: &str = "evals.example";

/// Caddy, and the server behind it.
struct Edge {
    port: u16,
    caddy: Child,
    service: Service,
    umami: Receiver,
    _home: tempfile::TempDir,
}

/// What curl said of an answer.
#[derive(Debug)]
struct Got {
    status: u16,
    version: String,
    connects: String,
    body: String,
}

impl Edge {
    fn public(flags: &[&str]) -> Self {
        let umami = Receiver::start(Manner::Answers(200));
        let analytics = format!("[analytics]\nurl = \"{}\"\nwebsite = \"w\"\nhostname = \"h\"\n", umami.url("/api/send"));
        let flags = [&["--public", "--allowed-host", HOST, "--client-header", "X-Real-IP"], flags].concat();
        let service = Service::with(Project::demo(), &analytics, &flags);
        Self::before(service, umami, "deploy/Caddyfile.public", &[])
    }

    fn before(service: Service, umami: Receiver, name: &str, environment: &[(&str, String)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (port, plain) = (free_port(), free_port());
        let own = format!(
            "{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port {plain}\n\thttps_port {port}\n\tstorage file_system {}\n",
            home.path().display()
        );
        let text = file(name).replacen("\n{\n", &format!("\n{own}"), 1);
        assert!(text.contains("local_certs"));
        let config = home.path().join("Caddyfile");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config).env("HOME", home.path());
        command.env("RUNLORE_HOST", format!("https://{HOST}:{port}")).env("RUNLORE_PORT", service.port.to_string());
        command.env("RUNLORE_NEXT_PORT", free_port().to_string()).env("RUNLORE_EDGE_RANGES", "127.0.0.9/32");
        let command = command.envs(environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        let caddy =
            command.stdout(Stdio::null()).stderr(log).spawn().unwrap_or_else(|error| panic!("caddy: {error}; tests/run installs it"));
        let edge = Self { port, caddy, service, umami, _home: home };
        wait_for("Caddy", || (edge.curl("127.0.0.1", "/mcp/health", &[]).status == 200).then_some(()));
        edge
    }

    /// A request from `address` with `words` of curl's.
    fn curl(&self, address: &str, path: &str, words: &[&str]) -> Got {
        let target = if address.contains(':') { "[::1]" } else { "127.0.0.1" };
        let mut command = Command::new("curl");
        command.args(["--silent", "--insecure", "--noproxy", "*", "--max-time", "20", "--path-as-is", "--interface", address]);
        command.args(["--resolve", &format!("{HOST}:{}:{target}", self.port)]);
        if !words.iter().any(|word| word.starts_with("Host: ")) {
            // As callers write it where Caddy has its usual port.
            command.args(["--header", &format!("Host: {HOST}")]);
        }
        command.args(["--write-out", "\n%{http_code} %{http_version} %{num_connects}"]).args(words);
        let ran = ran(command.arg(format!("https://{HOST}:{}{path}", self.port)).output().expect("curl; tests/run installs it"));
        let (body, end) = ran.out.rsplit_once('\n').unwrap_or(("", &ran.out));
        let mut end = end.split(' ').map(str::to_owned);
        let mut next = || end.next().unwrap_or_default();
        Got { status: next().parse().unwrap_or(0), version: next(), connects: next(), body: body.to_owned() }
    }

    /// A call of `history` from `address`.
    fn call(&self, address: &str, words: &[&str]) -> Got {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "history", "arguments": {}}}).to_string();
        self.post(address, &message, words)
    }

    fn post(&self, address: &str, body: &str, words: &[&str]) -> Got {
        let own = ["--header", "content-type: application/json", "--header", "mcp-protocol-version: 2025-11-25", "--data-binary", body];
        self.curl(address, "/mcp", &[&own, words].concat())
    }

    /// The address that the server counted the newest call for, once it has told of `count`.
    fn counted(&self, count: usize) -> String {
        let got = self.umami.wait(count);
        serde_json::from_slice::<Value>(&got[count - 1].body).unwrap()["payload"]["ip"].as_str().unwrap().to_owned()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.caddy.kill();
        let _ = self.caddy.wait();
    }
}

#[test]
fn the_server_counts_who_really_called_whatever_they_write() {
    let edge = Edge::public(&[]);
    let forged = ["--header", "X-Real-IP: 9.9.9.9", "--header", "X-Forwarded-For: 9.9.9.9", "--header", "Forwarded: for=9.9.9.9"];
    let cdn = |caller: &str| ["--header".to_owned(), format!("CF-Connecting-IP: {caller}")];
    let mut told = 0;
    let mut counted = |address: &str, words: &[&str]| {
        let got = edge.call(address, words);
        assert_eq!(got.status, 200, "{got:?}");
        told += 1;
        edge.counted(told)
    };
    assert_eq!(counted("127.0.0.2", &[]), "127.0.0.2");
    assert_eq!(counted("127.0.0.3", &forged), "127.0.0.3");
    assert_eq!(counted("::1", &forged), "::", "an IPv6 caller by its /64");
    let words = cdn("203.0.113.7");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(counted("127.0.0.9", &words), "203.0.113.7", "from the CDN's networks its header counts");
    assert_eq!(counted("127.0.0.4", &words), "127.0.0.4", "from anywhere else it does not");
    let words = cdn("2001:db8:7:8:1:2:3:4");
    let words: Vec<&str> = words.iter().map(String::as_str).chain(forged).collect();
    assert_eq!(counted("127.0.0.9", &words), "2001:db8:7:8::");
}

#[test]
fn each_real_caller_has_a_rate_of_its_own() {
    let edge = Edge::public(&["--rate", "3"]);
    let refused = |got: &Got| got.body.contains("at most 3 a minute from one caller");
    for number in 0..5 {
        let forged = format!("X-Real-IP: 9.9.9.{number}");
        let got = edge.call("127.0.0.2", &["--header", &forged]);
        assert_eq!((got.status, refused(&got)), (200, number > 2), "{number}: {got:?}");
    }
    let other = edge.call("127.0.0.3", &[]);
    assert!(other.status == 200 && !refused(&other), "{other:?}");
}

#[test]
fn a_body_that_is_too_large_ends_at_the_edge() {
    let edge = Edge::public(&[]);
    let asked = || edge.service.metric("runlore_http_requests_total", &["route=\"mcp\""]);
    let ping = |bytes: usize| {
        let empty = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"pad": ""}}).to_string();
        empty.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(bytes - empty.len())))
    };
    let fits = edge.post("127.0.0.2", &ping(65_536), &[]);
    assert_eq!(fits.status, 200, "{fits:?}");
    let before = asked();
    for words in [&[][..], &["--header", "transfer-encoding: chunked"], &["--http1.1", "--header", "transfer-encoding: chunked"]] {
        let got = edge.post("127.0.0.2", &ping(65_537), words);
        assert_eq!(got.status, 413, "{words:?}: {got:?}");
    }
    let huge = edge.post("127.0.0.2", &ping(100_000), &[]);
    assert_eq!(huge.status, 413, "{huge:?}");
    assert_eq!(edge.call("127.0.0.3", &[]).status, 200, "nobody else suffers from it");
    // What the server saw of them broke off: it answered none.
    let ok = edge.service.metric("runlore_http_requests_total", &["route=\"mcp\"", "outcome=\"ok\""]);
    assert!(ok <= before + 1.0, "{ok} after {before} and one good call");
    edge.service.serves();
}

#[test]
fn nothing_but_the_endpoint_is_reached() {
    let edge = Edge::public(&[]);
    for path in [
        "/metrics",
        "/livez",
        "/readyz",
        "/",
        "/api/mcp",
        "/v1/runs",
        "/.well-known/oauth-protected-resource",
        "/mcpx",
        "/mcp/../metrics",
        "/mcp/%2e%2e/metrics",
        "/mcp/..%2fmetrics",
        "//metrics",
        "/mcp//metrics",
        "/mcp/metrics",
        "/mcp/livez",
    ] {
        let got = edge.curl("127.0.0.2", path, &[]);
        assert!(matches!(got.status, 404 | 405) && !got.body.contains("runlore_"), "{path}: {got:?}");
    }
    let other = edge.curl("127.0.0.2", "/mcp/health", &["--header", "Host: other.example"]);
    assert!(!other.body.contains("\"ok\":true"), "{other:?}");
}

#[test]
fn both_versions_of_http_and_connections_that_stay() {
    let edge = Edge::public(&[]);
    for (word, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let got = edge.call("127.0.0.2", &[word]);
        assert_eq!((got.status, got.version.as_str()), (200, version), "{got:?}");
    }
    let again = format!("https://{HOST}:{}/mcp/health", edge.port);
    let got = edge.curl("127.0.0.2", "/mcp/health", &["--http1.1", &again]);
    assert!(got.body.contains("\"ok\":true") && got.connects == "0", "the second request came over the first one's connection: {got:?}");
    // Those to the server are Caddy's: however many call, they are few.
    for number in 0..20 {
        assert_eq!(edge.call(&format!("127.0.0.{}", 20 + number), &[]).status, 200);
    }
    let accepted = edge.service.metric("runlore_connections_total", &["outcome=\"accepted\""]);
    assert!(edge.service.metric("runlore_connections_open", &[]) <= 8.0, "{accepted}");
}

#[test]
fn a_release_is_switched_while_callers_go_on() {
    let edge = Edge::public(&["--rate", "0", "--rate-total", "0", "--request-rate", "0"]);
    // Another on the second port, as deploy/release starts it; then the first goes, and comes again.
    let next = Service::start(&["--public", "--allowed-host", HOST, "--client-header", "X-Real-IP"]);
    let home = Edge::before(
        next,
        Receiver::start(Manner::Hangs),
        "deploy/Caddyfile.public",
        &[("RUNLORE_NEXT_PORT", edge.service.port.to_string())],
    );
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let (mut answered, mut broken) = (0, 0);
            while !stop.load(Relaxed) {
                let got = home.call("127.0.0.2", &[]);
                assert!(matches!(got.status, 200 | 502), "{got:?}");
                *if got.status == 200 { &mut answered } else { &mut broken } += 1;
            }
            (answered, broken)
        });
        wait_for("calls", || (home.service.metric("runlore_calls_total", &[]) > 2.0).then_some(()));
        home.service.signal(nix::sys::signal::Signal::SIGTERM);
        wait_for("the first to end", || std::net::TcpStream::connect(("127.0.0.1", home.service.port)).is_err().then_some(()));
        wait_for("the other to be asked", || (edge.service.metric("runlore_calls_total", &[]) > 2.0).then_some(()));
        stop.store(true, Relaxed);
        let (answered, broken) = asking.join().unwrap();
        // What is on its way to a connection that ends is not sent again: Caddy cannot know that nothing was done.
        assert!(answered > 4 && broken <= 1, "{answered} answered, {broken} not");
    });
}

#[test]
fn a_team_reaches_its_paths_and_strangers_none() {
    let service = Service::serve(&format!("allowed_hosts = [\"{HOST}\"]\nclient_header = \"X-Real-IP\"\n"));
    let ranges = [("RUNLORE_TEAM_RANGES", "127.0.0.0/29 ::1".to_owned())];
    let edge = Edge::before(service, Receiver::start(Manner::Hangs), "deploy/Caddyfile.team", &ranges);
    assert_eq!(edge.call("127.0.0.2", &[]).status, 200);
    let legacy = edge.curl("127.0.0.2", "/api/mcp/health", &[]);
    assert_eq!(legacy.status, 200, "{legacy:?}");
    for path in ["/metrics", "/livez", "/readyz", "/", "/mcp/../metrics"] {
        let got = edge.curl("127.0.0.2", path, &[]);
        assert!(matches!(got.status, 404 | 405) && !got.body.contains("runlore_"), "{path}: {got:?}");
    }
    for path in ["/mcp", "/mcp/health", "/v1/runs", "/metrics"] {
        assert_eq!(edge.curl("127.0.0.99", path, &[]).status, 403, "{path}");
    }
    let large = "x".repeat(70_000);
    assert_eq!(edge.post("127.0.0.2", &large, &[]).status, 413);
    // A log may be larger: it goes on to the server, which has no organizations here and says so.
    let pushed = edge.curl("127.0.0.2", "/v1/runs", &["--data-binary", &large]);
    assert!(pushed.status != 413 && pushed.body.contains("jsonrpc") || pushed.body.contains("error"), "{pushed:?}");
}
