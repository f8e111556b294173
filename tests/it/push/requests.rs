//! What the requests answer: who may, what is taken, and what is refused so that its sender can read why.

use serde_json::{Value, json};

use super::house::{House, digest, look, post, put, runs, taken};
use crate::{
    http::{
        service::{Service, wait_for},
        wire::{Answer, PATIENCE, Request},
    },
    logs::Log,
};

fn log(run: &str, letter: &str, cases: u32) -> String {
    Log::new(run, "t", "2026-11-15T09:00:00+00:00").all(cases, letter).text()
}

fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.reason())
}

#[test]
fn who_may_not_send_learns_nothing() {
    let house = House::new("");
    house.verb(&["project", "create", "acme/other"]);
    let (two, one) = (house.sender(), house.key("zeta", "member", &["runs:write"]));
    let (no_scope, no_role) = (house.key("acme", "owner", &["eval:read", "runs:read"]), house.key("acme", "viewer", &["runs:write"]));
    let service = house.serve();
    let ask = |key: &str, query: &str| service.ask(&post(&service, key, query, log("r", "C", 1)));
    let nobody = service.ask(&post(&service, "x", "", "x").without("authorization"));
    assert_eq!((nobody.status, nobody.header("www-authenticate")), (401, Some("Bearer")), "{nobody:?}");
    assert_eq!(ask("rlk_wrong", "").status, 401);
    let scope = ask(&no_scope, "?project=main");
    assert_eq!(refused(&scope), (403, "insufficient_scope".to_owned()));
    assert_eq!(scope.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\", scope=\"runs:write\""));
    let role = ask(&no_role, "?project=main");
    assert_eq!((refused(&role), role.header("www-authenticate")), ((403, "role".to_owned()), None));
    assert!(role.text().contains("needs role member"), "{role:?}");
    assert_eq!(refused(&ask(&two, "")), (400, "project".to_owned()), "two projects, and none is named");
    // Another's and nobody's project are the same, but for the name that was asked for and the request's own id.
    let plain = |answer: &Answer, name: &str| {
        let mut body = answer.json();
        body["error"]["data"]["requestId"].take();
        (answer.status, body.to_string().replace(name, "NAME"))
    };
    for (foreign, invented) in [("zeta%2Fmain", "nope%2Fmain"), ("acme%2Fnope", "nope")] {
        let names = [foreign, invented].map(|name| name.replace("%2F", "/"));
        let [a, b] = [foreign, invented].map(|name| ask(&two, &format!("?project={name}")));
        assert_eq!(plain(&a, &names[0]), plain(&b, &names[1]));
        assert_eq!(a.status, 404);
    }
    // What one organization has sent in part or whole is not there for another.
    let text = log("secret", "C", 2);
    let name = digest(&text);
    assert_eq!(service.ask(&put(&service, &two, &format!("{name}?project=main&x"), 0, "")).status, 400, "an unknown word");
    let part = put(&service, &two, &name, 0, text.as_bytes()[..100].to_vec()).to(&format!("/v1/uploads/{name}?offset=0&project=main"));
    taken(&service.ask(&part));
    assert_eq!(look(&service, &one, &name), json!({"ok": true, "bytes": 0, "imported": false}));
    assert_eq!(refused(&service.ask(&post(&service, &one, &format!("?upload={name}"), ""))), (404, "not_found".to_owned()));
    taken(&ask(&two, "?project=main"));
    assert_eq!(look(&service, &one, &digest(log("r", "C", 1)))["imported"], false);
    let log = service.log();
    assert!(!log.contains("rlk_") && log.contains("\"event\":\"push\"") && log.contains("\"outcome\":\"insufficient_scope\""), "{log}");
}

#[test]
fn the_same_bytes_change_nothing_and_another_log_takes_no_ones_place() {
    let house = House::new("");
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let send = |query: &str, text: &str| service.ask(&post(&service, &key, query, text));
    let first = taken(&send("?name=out.json", &log("a", "C", 2)));
    assert_eq!((&first["runId"], &first["changed"], &first["attempts"]), (&json!("a"), &json!(true), &json!(2)));
    let generation = house.generation();
    for query in ["?name=out.json", "?name=out.json&project=main", "", "?name=elsewhere%2Fout.json"] {
        let again = taken(&send(query, &log("a", "C", 2)));
        assert_eq!((&again["runId"], &again["changed"]), (&json!("a"), &json!(false)), "{query}");
    }
    assert_eq!(house.generation(), generation);
    assert_eq!(taken(&send("?name=out.json", &log("b", "I", 1)))["runId"], "b");
    assert_eq!(runs(&service, &reader).len(), 2, "each CI job writes the same name");
    // The same log as it went on takes its own place, under whatever name it had to take.
    assert_eq!(taken(&send("?name=out.json", &log("b", "I", 3)))["attempts"], 3);
    assert_eq!(taken(&send("?name=out.json", &log("a", "C", 4)))["attempts"], 4);
    assert_eq!(runs(&service, &reader).len(), 2);
    // What is no log, or breaks off, takes nothing away.
    let generation = house.generation();
    let whole = log("a", "C", 5);
    for (text, word) in [("garbage", "no JSON"), (&whole[..whole.len() - 40], ""), ("{}", "")] {
        let answer = send("?name=out.json", text);
        assert_eq!(refused(&answer), (422, "unreadable".to_owned()), "{answer:?}");
        assert!(answer.text().contains(word) && !answer.text().contains("/projects/"), "{answer:?}");
    }
    assert_eq!((house.generation(), runs(&service, &reader).len()), (generation, 2));
    // The run can be said, and be said otherwise.
    assert_eq!(taken(&send("?name=out.json&run=ci%201", &log("a", "C", 4)))["runId"], "ci 1");
    assert_eq!(taken(&send("?name=out.json", &log("a", "C", 4)))["runId"], "a");
    assert!(house.spooled("in-").is_empty());
}

#[test]
fn bodies_are_bounded_and_their_senders_told() {
    let house = House::new("[ingest]\nbody_bytes_max = 65536\npart_bytes_max = 65536\nbody_deadline_s = 1\nuploads_max = 1\n");
    let (key, service) = (house.sender(), house.serve());
    let large = "x".repeat(65_537);
    let name = digest(&large);
    assert_eq!(refused(&service.ask(&post(&service, &key, "", large.clone()))), (413, "too_large".to_owned()));
    assert_eq!(refused(&service.ask(&put(&service, &key, &name, 0, large.clone()))), (413, "too_large".to_owned()));
    let chunked = |request: Request| {
        let mut connection = service.connect();
        connection.send(request.with("transfer-encoding", "chunked").with("connection", "close").head());
        connection.try_send(format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len()));
        connection.answer()
    };
    assert_eq!(refused(&chunked(post(&service, &key, "", ""))), (413, "too_large".to_owned()));
    assert_eq!(refused(&service.ask(&post(&service, &key, "", "x").with("content-encoding", "gzip"))), (415, "media_type".to_owned()));
    let mut slow = service.connect();
    slow.send(post(&service, &key, "", "x").with("content-length", "2").bytes());
    assert_eq!(refused(&slow.answer()), (408, "timeout".to_owned()));
    for (method, path, allow) in [("GET", "/v1/runs".to_owned(), "POST"), ("POST", format!("/v1/uploads/{name}"), "PUT, GET, HEAD")] {
        let answer = service.ask(&post(&service, &key, "", "").by(method).to(&path));
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)));
    }
    for path in ["/v1/uploads/x".to_owned(), "/v1".to_owned(), format!("/v1/uploads/{}", name.to_uppercase())] {
        assert_eq!(service.ask(&post(&service, &key, "", "").by("PUT").to(&path)).status, 404, "{path}");
    }
    for query in ["?name=..%2Fx", "?name=%2Fetc%2Fpasswd", "?name=a%00", "?run=latest", "?kind=other", "?bundle=a%2Fb", "?upload=x", "?x=1"]
    {
        assert_eq!(refused(&service.ask(&post(&service, &key, query, log("r", "C", 1)))), (400, "argument".to_owned()), "{query}");
    }
    taken(&service.ask(&put(&service, &key, &name, 0, "abc")));
    assert_eq!(refused(&service.ask(&put(&service, &key, &digest("other"), 0, "abc"))), (507, "quota".to_owned()));
    let wrong = service.ask(&put(&service, &key, &name, 7, "abc"));
    assert_eq!((refused(&wrong), &wrong.json()["error"]["data"]["offset"]), ((409, "offset".to_owned()), &json!(3)));
    let mut head = service.connect();
    let request = Request::get(service.port, &format!("/v1/uploads/{name}")).by("HEAD").bearer(&key).with("connection", "close");
    head.send(request.bytes());
    let (bytes, _) = head.until_closed(PATIENCE);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("upload-offset: 3\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn parts_are_held_against_the_digest_of_the_whole() {
    let house = House::new("");
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let text = log("a", "C", 3);
    let name = digest(&text);
    let (left, right) = text.as_bytes().split_at(500);
    taken(&service.ask(&put(&service, &key, &name, 0, left)));
    // The right length and other bytes: it is none of what it was sent under, and begins anew.
    taken(&service.ask(&put(&service, &key, &name, 500, "x".repeat(right.len()))));
    let read = |body: &str| {
        service.ask(&post(&service, &key, &format!("?upload={name}&name=a.json"), body).with("content-type", "application/json"))
    };
    assert_eq!(refused(&read("")), (422, "digest".to_owned()));
    assert_eq!(look(&service, &key, &name)["bytes"], 0);
    taken(&service.ask(&put(&service, &key, &name, 0, left)));
    let again = service.ask(&put(&service, &key, &name, 500, right));
    assert_eq!(taken(&again)["bytes"].as_u64(), Some(text.len() as u64));
    for wrong in ["{\"ancestors\":[\"--all\"]}", "[", "{\"x\":1}"] {
        assert_eq!(refused(&read(wrong)), (400, "argument".to_owned()), "{wrong}");
    }
    assert_eq!(taken(&read("{\"ancestors\":[\"abcdef0123\"],\"modified\":5}"))["changed"], true);
    assert_eq!(runs(&service, &reader), ["a"]);
    assert_eq!(look(&service, &key, &name), json!({"ok": true, "bytes": 0, "imported": true}));
}

#[test]
fn a_log_that_is_being_read_keeps_nobody_else_waiting() {
    let house = House::new("[store]\nbusy_timeout_ms = 60000\n[ingest]\nwait_s = 1\n");
    let (key, reader, zeta) = (house.sender(), house.reader(), house.key("zeta", "member", &["*"]));
    let service = house.serve();
    taken(&service.ask(&post(&service, &key, "", log("first", "C", 1))));
    let held = house.hold();
    let late = service.ask(&post(&service, &key, "?name=a.json", log("a", "C", 2)));
    assert_eq!((refused(&late), late.header("retry-after")), ((503, "overloaded".to_owned()), Some("2")), "{late:?}");
    // One more waits for its turn in this project; others have theirs.
    assert_eq!(refused(&service.ask(&post(&service, &key, "?name=b.json", log("b", "C", 2)))).0, 503);
    taken(&service.ask(&post(&service, &zeta, "", log("z", "C", 1))));
    assert_eq!(runs(&service, &zeta), ["z"]);
    held.release();
    wait_for("the log to be read after all", || (runs(&service, &reader).contains(&"a".to_owned())).then_some(()));
    assert_eq!(taken(&service.ask(&post(&service, &key, "?name=a.json", log("a", "C", 2))))["changed"], false);
}

#[test]
fn one_organizations_slow_bodies_leave_places_for_others() {
    let house = House::new("[ingest]\nreceiving = 4\n");
    let (key, zeta) = (house.sender(), house.key("zeta", "member", &["*"]));
    let service = house.serve();
    let mut slow = service.connect();
    slow.send(post(&service, &key, "", "x").with("content-length", "2").bytes());
    wait_for("its place", || (!house.spooled("in-").is_empty()).then_some(()));
    let full = service.ask(&post(&service, &key, "", log("a", "C", 1)));
    assert_eq!((refused(&full), full.header("retry-after")), ((503, "overloaded".to_owned()), Some("1")));
    taken(&service.ask(&post(&service, &zeta, "", log("z", "C", 1))));
    // Who leaves gives the place back.
    drop(slow);
    wait_for("the place", || (service.ask(&post(&service, &key, "", log("a", "C", 1))).status == 200).then_some(()));
    wait_for("nothing to be left", || house.spooled("in-").is_empty().then_some(()));
}

/// A server that may write files of so many KiB.
fn confined(house: &House, kib: u32) -> Service {
    house.serve_by(|command, config| {
        let program = env!("CARGO_BIN_EXE_runlore");
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec {program} serve --config {}", config.display());
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &script]);
        shell.current_dir(command.get_current_dir().unwrap()).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        *command = shell;
    })
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    let house = House::new("");
    let (key, reader) = (house.sender(), house.reader());
    // Spaces behind a log are nothing to it, and fill a disk as well as anything.
    let text = format!("{}{}", log("a", "C", 20), " ".repeat(5 * 1024 * 1024));
    let name = digest(&text);
    {
        let service = house.serve();
        taken(&service.ask(&post(&service, &key, "?name=before.json", log("before", "C", 1))));
    }
    {
        let service = confined(&house, 4096);
        let full = service.ask(&post(&service, &key, "?name=a.json", text.clone()));
        assert_eq!(refused(&full), (507, "disk_full".to_owned()), "{}", service.log());
        let part = service.ask(&put(&service, &key, &name, 0, text.clone()));
        assert_eq!(refused(&part), (507, "disk_full".to_owned()), "{part:?}");
        assert_eq!(runs(&service, &reader), ["before"]);
    }
    let service = house.serve();
    assert_eq!(look(&service, &key, &name)["bytes"], 0, "what filled the disk does not keep it full");
    taken(&service.ask(&put(&service, &key, &name, 0, text)));
    let read = service.ask(&post(&service, &key, &format!("?upload={name}&name=a.json"), ""));
    assert_eq!(taken(&read)["attempts"], Value::from(20));
    assert!(house.spooled("in-").is_empty() && house.spooled(".part").is_empty());
}

#[test]
fn a_server_of_one_project_takes_nothing() {
    let service = Service::start(&["--token", "t"]);
    assert_eq!(service.ask(&post(&service, "t", "", "x")).status, 404);
}

#[test]
fn a_name_that_no_disk_takes_is_the_senders_fault_and_a_recorded_run_is_no_scratch_run() {
    let house = House::new("");
    let (key, service) = (house.sender(), house.serve());
    let long = "x".repeat(300);
    assert_eq!(refused(&service.ask(&post(&service, &key, &format!("?name={long}.json"), log("a", "C", 1)))).0, 400);
    let text = log("scr", "C", 1);
    taken(&service.ask(&post(&service, &key, "?name=a.json&kind=scratch", text.clone())));
    let name = digest(&text);
    let imported = |query: &str| {
        let request = Request::get(service.port, &format!("/v1/uploads/{name}{query}")).bearer(&key);
        service.ask(&request).json()["imported"] == true
    };
    assert_eq!((imported("?kind=scratch"), imported("")), (true, false), "recorded since, it is sent again");
    assert_eq!(taken(&service.ask(&post(&service, &key, "?name=a.json", text)))["changed"], true);
    assert!(imported(""));
}
