//! Who is counted: addresses, proxies and their headers (decisions 6, 24, 33, 55).

use std::net::{IpAddr, TcpStream, UdpSocket};

use serde_json::json;

use super::{
    held, metrics,
    service::{Service, wait_for},
    wire::{Connection, Request},
};

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

/// Whether `first` and `second`, each the lines of one request, count as one caller where each caller has one request a minute.
fn one_caller(header: &str, first: &[&str], second: &[&str]) -> bool {
    let service = Service::start(&["--client-header", header, "--request-rate", "1", "--trusted-proxy", "10.0.0.0/8"]);
    let ask = |lines: &[&str]| {
        let request = lines.iter().fold(ping(&service), |request, line| request.and(&header.to_lowercase(), line));
        service.ask(&request).status
    };
    assert_eq!(ask(first), 200, "{first:?}");
    match ask(second) {
        200 => false,
        429 => true,
        other => panic!("{second:?}: {other}"),
    }
}

#[test]
fn forwarded_for_is_walked_from_the_right_over_all_lines() {
    let same = |first: &[&str], second: &[&str]| assert!(one_caller("X-Forwarded-For", first, second), "{first:?} and {second:?} are one");
    let two = |first: &[&str], second: &[&str]| assert!(!one_caller("X-Forwarded-For", first, second), "{first:?} and {second:?} are two");
    two(&["192.0.2.1"], &["192.0.2.2"]);
    // What stands left of the first stranger is his own claim.
    same(&["192.0.2.1"], &["198.51.100.7, 192.0.2.1"]);
    same(&["192.0.2.1"], &["198.51.100.7", "192.0.2.1"]);
    // Trusted proxies are passed over.
    same(&["192.0.2.1"], &["192.0.2.1, 10.1.2.3, 127.0.0.1"]);
    same(&["192.0.2.1"], &["192.0.2.1", "10.1.2.3"]);
    // Ports and brackets are no part of an address.
    same(&["192.0.2.1"], &["192.0.2.1:4711"]);
    same(&["2001:db8::1"], &["[2001:db8::1]:4711"]);
    // Garbage stops the walk: it is the last trusted hop's request.
    same(&["unknown"], &["192.0.2.9, garbage"]);
    two(&["192.0.2.1"], &["192.0.2.1, garbage"]);
}

#[test]
fn one_address_has_one_name() {
    assert!(one_caller("X-Forwarded-For", &["192.0.2.1"], &["::ffff:192.0.2.1"]));
    assert!(one_caller("X-Forwarded-For", &["2001:db8:0:1::1"], &["2001:db8:0:1:ffff::2"]), "one /64 is one caller");
    assert!(!one_caller("X-Forwarded-For", &["2001:db8:0:1::1"], &["2001:db8:0:2::1"]));
}

#[test]
fn other_headers_are_one_line_with_one_address_or_nothing() {
    assert!(!one_caller("X-Real-IP", &["192.0.2.1"], &["192.0.2.2"]));
    assert!(one_caller("X-Real-IP", &["192.0.2.1"], &["192.0.2.1"]));
    // Ignored: both are the peer's.
    for ignored in [&["192.0.2.1", "192.0.2.2"][..], &["192.0.2.1, 192.0.2.2"], &["192.0.2.1:80"], &["fe80::1%eth0"], &["x"], &[""]] {
        assert!(one_caller("X-Real-IP", &[], ignored), "{ignored:?}");
    }
}

#[test]
fn forwarded_is_read_as_its_standard_says() {
    assert!(one_caller("Forwarded", &["for=192.0.2.1"], &["for=198.51.100.1, For=\"192.0.2.1:4711\";proto=https;by=10.0.0.1"]));
    assert!(one_caller("Forwarded", &["for=\"[2001:db8::1]\""], &["for=\"[2001:db8::1]:80\""]));
    assert!(!one_caller("Forwarded", &["for=192.0.2.1"], &["for=192.0.2.2"]));
}

/// An address of this machine that is not the loopback's; none in a container without a network.
fn outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn reached_from_outside(flags: &[&str], http: &str) -> Option<(Service, IpAddr)> {
    let ip = outside()?;
    let project = crate::harness::Project::demo();
    project.write(".runlore/config.toml", format!("[index]\nwait_ms = 60000\n[http]\n{http}\n"));
    let text = ip.to_string();
    let service = Service::reached_at(ip, project, |command, port, admin| {
        command.args(["mcp", "--http", "--host", &text, "--allowed-host", "evals.example", "--port", &port.to_string()]);
        command.args(["--admin-listen", &format!("127.0.0.1:{admin}")]).args(flags);
    });
    Some((service, ip))
}

#[test]
fn a_stranger_cannot_name_himself() {
    let Some((service, ip)) = reached_from_outside(&["--client-header", "X-Forwarded-For", "--request-rate", "2"], "") else { return };
    let ask = |address: &str| {
        let request = ping(&service).with("host", "evals.example").with("x-forwarded-for", address);
        Connection::over(TcpStream::connect((ip, service.port)).unwrap()).ask(&request).status
    };
    assert_eq!([ask("192.0.2.1"), ask("192.0.2.2"), ask("192.0.2.3")], [200, 200, 429]);
    assert!(service.log().lines().filter(|line| line.to_lowercase().contains("x-forwarded-for")).count() <= 1, "{}", service.log());
}

#[test]
fn one_address_has_its_share_of_connections() {
    let Some((service, ip)) = reached_from_outside(&[], "idle_s = 60\nper_caller_max = 3") else { return };
    let ping = ping(&service).with("host", "evals.example");
    // What was answered came after whatever the harness opened.
    wait_for("a first answer", || {
        let mut first = Connection::over(TcpStream::connect((ip, service.port)).unwrap());
        let answer = first.try_send(ping.bytes()).then(|| first.try_answer().ok()).flatten();
        answer.is_some_and(|answer| answer.status == 200).then_some(())
    });
    wait_for("the harness's own connection to be gone", || (service.metric(metrics::CONNECTIONS, &[]) < 1.0).then_some(()));
    let mut open: Vec<Connection> = (0..3).map(|_| Connection::over(TcpStream::connect((ip, service.port)).unwrap())).collect();
    for connection in &mut open {
        assert_eq!(connection.ask(&ping).status, 200);
    }
    let mut fourth = Connection::over(TcpStream::connect((ip, service.port)).unwrap());
    let refused = !fourth.try_send(ping.bytes()) || fourth.try_answer().map_or(true, |answer| matches!(answer.status, 429 | 503));
    assert!(refused);
    open.pop();
    let mut later = None;
    wait_for("a place", || {
        let mut connection = Connection::over(TcpStream::connect((ip, service.port)).unwrap());
        later = (connection.try_send(ping.bytes())).then(|| connection.try_answer().ok()).flatten();
        later.as_ref().is_some_and(|answer| answer.status == 200).then_some(())
    });
}

#[test]
fn behind_a_proxy_each_caller_has_eight_requests_at_once() {
    let (service, held) = held::service("", &["--client-header", "X-Real-IP", "--trusted-proxy", "127.0.0.0/8"]);
    let from = |address: &str| held::call(&service).with("x-real-ip", address);
    let mut eight: Vec<_> = (0..8).map(|_| held::in_flight(&service, &from("192.0.2.1"))).collect();
    let ninth = service.ask(&from("192.0.2.1"));
    assert_eq!((ninth.status, ninth.reason()), (429, "overloaded".to_owned()), "{ninth:?}");
    assert!(ninth.header("retry-after").is_some() && ninth.text().contains("at most 8 at once"), "{ninth:?}");
    let mut other = held::in_flight(&service, &from("192.0.2.2"));
    held.release();
    for connection in eight.iter_mut().chain([&mut other]) {
        assert_eq!(connection.answer().status, 200);
    }
}

#[test]
fn what_two_callers_have_in_flight_under_one_id_is_never_crossed() {
    let (service, held) = held::service("", &["--client-header", "X-Real-IP", "--trusted-proxy", "127.0.0.0/8"]);
    // 1 and "1" are two ids, and the same id of another caller is another request; each asks for another number of runs.
    let asked: Vec<(serde_json::Value, &str, usize)> =
        vec![(json!(1), "192.0.2.1", 1), (json!("1"), "192.0.2.2", 2), (json!("1"), "192.0.2.1", 3), (json!(1), "192.0.2.2", 4)];
    let mut waiting: Vec<Connection> = asked
        .iter()
        .map(|(id, address, limit)| {
            let params = json!({"name": "runs_list", "arguments": {"limit": limit}});
            let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            held::in_flight(&service, &Request::post(service.port, &message).with("x-real-ip", address))
        })
        .collect();
    held.release();
    for ((id, address, limit), connection) in asked.iter().zip(&mut waiting) {
        let answer = connection.answer().json();
        assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["returned"]), (id, &json!(limit)), "{address}: {answer}");
    }
}
