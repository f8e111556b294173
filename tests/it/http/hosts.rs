//! Host, Origin, CORS and addresses of bind (decisions 20, 54).

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    service::Service,
    wire::{Answer, Request},
};
use crate::harness::{Project, command};

fn asked_as(service: &Service, host: &str) -> Answer {
    service.ask(&ping(service).with("host", host))
}

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

#[test]
fn only_names_of_the_loopback_are_answered() {
    let service = Service::start(&[]);
    let port = service.port;
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}")] {
        assert_eq!(asked_as(&service, &host).status, 200, "{host}");
    }
    let wrong = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("user@127.0.0.1:{port}"),
        format!("127.0.0.1.:{port}"),
        format!("localhost.:{port}"),
        "localhost".to_owned(),
        "localhost:".to_owned(),
        "localhost:99999".to_owned(),
        format!("localhost:{port}x"),
        format!("localhost:0{port}"),
        format!("[::1:{port}"),
        format!("::1:{port}"),
        format!("[localhost]:{port}"),
        format!("localhost:{port}:{port}"),
        "localhost:1".to_owned(),
        format!("127.0.0.1:{port}, evil.example"),
        format!("0.0.0.0:{port}"),
        String::new(),
    ];
    for host in wrong {
        let answer = asked_as(&service, &host);
        assert!(matches!(answer.status, 400 | 421), "{host:?}: {answer:?}");
        if answer.status == 421 {
            assert_eq!((answer.code(), answer.reason()), (-32000, "host".to_owned()), "{host:?}: {answer:?}");
        }
    }
}

#[test]
fn a_wrong_host_is_refused_before_the_body_is_read() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    connection.send(ping(&service).with("host", "evil.example").with("content-length", "60000").head());
    assert_eq!(connection.answer().status, 421);
}

#[test]
fn two_hosts_or_another_target_are_never_resolved_in_favour_of_the_good_one() {
    let service = Service::start(&[]);
    let good = format!("127.0.0.1:{}", service.port);
    let two = [
        ping(&service).and("host", "evil.example"),
        ping(&service).with("host", "evil.example").and("host", &good),
        ping(&service).and("host", &good),
        ping(&service).to("http://evil.example/mcp"),
        ping(&service).to(&format!("http://{good}/mcp")).with("host", "evil.example"),
        ping(&service).without("host"),
    ];
    for (index, request) in two.iter().enumerate() {
        let answer = service.ask(request);
        assert!(matches!(answer.status, 400 | 421), "{index}: {answer:?}");
    }
    service.serves();
}

#[test]
fn allowed_hosts_hold_as_written() {
    let service = Service::start(&["--allowed-host", "evals.example", "--allowed-host", "other.example:8443"]);
    let port = service.port;
    let right = [
        "evals.example".to_owned(),
        "Evals.Example:443".into(),
        "evals.example:80".into(),
        format!("evals.example:{port}"),
        "other.example:8443".into(),
    ];
    for host in right {
        assert_eq!(asked_as(&service, &host).status, 200, "{host}");
    }
    for host in ["evals.example:8080", "sub.evals.example", "evals.example.", "xevals.example", "other.example", "other.example:443"] {
        assert_eq!(asked_as(&service, host).status, 421, "{host}");
    }
}

#[test]
fn origins_are_exact_and_absence_passes() {
    let service = Service::start(&["--allowed-host", "evals.example", "--allowed-origin", "https://app.example"]);
    let port = service.port;
    let right = [
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        "https://evals.example".into(),
        "https://app.example".into(),
    ];
    for origin in right {
        let answer = service.ask(&ping(&service).with("origin", &origin));
        // Pages of the server's own hosts need no CORS.
        let told = (origin == "https://app.example").then_some(origin.as_str());
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, told), "{answer:?}");
    }
    let wrong = [
        "null",
        "https://app.example.evil.test",
        "https://evilapp.example",
        "https://user@app.example",
        "http://app.example",
        "https://app.example:444",
        "https://app.example/",
        "file://",
        "",
        "https://evals.example:8443",
        "https://app.example https://evil.example",
    ];
    for origin in wrong {
        let answer = service.ask(&ping(&service).with("origin", origin));
        assert_eq!((answer.status, answer.reason()), (403, "origin".to_owned()), "{origin:?}: {answer:?}");
    }
    let two = service.ask(&ping(&service).with("origin", "https://app.example").and("origin", "https://evil.example"));
    assert_eq!(two.status, 403, "{two:?}");
}

#[test]
fn without_allowed_origins_there_is_no_cors() {
    let service = Service::start(&[]);
    let answer = service.ask(&ping(&service));
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{answer:?}");
    let preflight = ping(&service).by("OPTIONS").with("origin", "https://app.example").with("access-control-request-method", "POST");
    assert_eq!(service.ask(&preflight).status, 403);
}

#[test]
fn browsers_of_an_allowed_origin_may_ask_first() {
    let service = Service::start(&["--allowed-origin", "https://app.example", "--token", "t"]);
    let options = Request { body: None, ..ping(&service).without("content-type").by("OPTIONS") };
    let asked = options.clone().with("origin", "https://app.example").with("access-control-request-method", "POST");
    let answer = service.ask(&asked);
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
    let headers = answer.header("access-control-allow-headers").unwrap().to_lowercase();
    for name in ["content-type", "accept", "authorization", "mcp-protocol-version", "mcp-method", "mcp-name"] {
        assert!(headers.contains(name), "{headers}");
    }
    assert_eq!(answer.header("access-control-max-age"), Some("600"));
    let plain = service.ask(&options);
    assert_eq!((plain.status, plain.header("allow")), (405, Some("POST")), "{plain:?}");
}

#[test]
fn a_cross_site_form_with_json_in_it_runs_nothing() {
    let service = Service::start(&[]);
    let form = Request::call(service.port, "history", &json!({})).with("content-type", "text/plain");
    assert_eq!(service.ask(&form).status, 415);
    assert_eq!(service.ask(&form.with("origin", "https://evil.example")).status, 403);
    assert!(!service.log().contains("\"event\":\"call\""), "{}", service.log());
}

#[test]
fn what_the_operator_may_not_say_ends_with_2() {
    let project = Project::demo();
    for words in [
        &["mcp", "--http", "--host", "0.0.0.0"][..],
        &["mcp", "--http", "--bind", "0.0.0.0"],
        &["mcp", "--http", "--host", "::"],
        &["mcp", "--http", "--public", "--token", "t"],
        &["mcp", "--http", "--token", ""],
        &["mcp", "--token", "t"],
        &["mcp", "--http", "--port", "0"],
        &["mcp", "--http", "--port", "65536"],
        &["mcp", "--http", "--trusted-proxy", "10.0.0.0/33"],
        &["mcp", "--http", "--allowed-origin", "not an origin"],
        &["mcp", "--http", "--path", "mcp"],
        &["mcp", "--http", "--admin-listen", "0.0.0.0:4987"],
    ] {
        let mut child = command().current_dir(project.path()).args(words).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        let code = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if began.elapsed() > Duration::from_secs(5) => break child.kill().ok().and(None),
                None => std::thread::park_timeout(Duration::from_millis(5)),
            }
        };
        let said = child.wait_with_output().unwrap();
        assert_eq!(code, Some(2), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
}
