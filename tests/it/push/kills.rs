//! kill -9 of the server and of the client at each step of a push: what was answered for is there, the rest is as it was, and the same command
//! brings the rest.
//!
//! Promises: a step is seen from outside before anything is killed: a file that is there, a line of the log, a request that waits.
//! Does not: sleep.

use std::{fs::File, process::Child};

use nix::sys::signal::Signal;
use serde_json::json;

use super::{
    formats::every_format,
    house::{House, call, digest, look, post, push, pushed, put, runs, taken, told},
};
use crate::{
    harness::Project,
    http::service::{Service, wait_for},
    logs::Log,
};

/// The one log of a project: larger than a block, so that some of it is on the disk before all of it came.
fn one() -> (Project, String) {
    let project = Project::new();
    let text = Log::new("killed", "t", "2026-11-15T09:00:00+00:00").all(2000, "C").text();
    project.write("logs/a.json", &text);
    (project, text)
}

fn kill(mut service: Service) {
    service.signal(Signal::SIGKILL);
    service.ended();
}

fn kill_client(mut client: Child) {
    client.kill().unwrap();
    client.wait().unwrap();
}

/// After whatever happened, the same command ends well, the run is whole, and nothing is left behind.
fn all_is_well(house: &House, project: &Project, key: &str, reader: &str) {
    let service = house.serve();
    assert!(house.spooled("in-").is_empty(), "a server that starts removes what another left");
    let ran = push(project, &service, key, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let listed = call(&service, reader, "runs_list", &json!({}));
    assert_eq!((&listed["runs"][0]["runId"], &listed["runs"][0]["counts"]["passed"]), (&json!("killed"), &json!(2000)), "{listed}");
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    let generation = house.generation();
    assert!(push(project, &service, key, &[]).out.contains("0 sent, 1 there already"));
    assert_eq!(house.generation(), generation);
    assert!(house.spooled("in-").is_empty() && house.spooled(".part").is_empty());
}

#[test]
fn the_server_is_killed_while_a_body_comes() {
    let (house, (project, text)) = (House::new(""), one());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let mut connection = service.connect();
    let request = post(&service, &key, "?name=logs%2Fa.json", text.clone());
    connection.send(request.head());
    connection.send(&text.as_bytes()[..600_000]);
    let written = || house.spooled("in-").iter().any(|path| path.join("body").metadata().is_ok_and(|found| found.len() > 0));
    wait_for("a block on the disk", || written().then_some(()));
    kill(service);
    assert!(!house.spooled("in-").is_empty(), "that is what a killed server leaves");
    let service = house.serve();
    assert!(runs(&service, &reader).is_empty());
    drop(service);
    all_is_well(&house, &project, &key, &reader);
}

#[test]
fn the_server_is_killed_while_a_part_comes_and_after_parts_came() {
    let (house, (project, text)) = (House::new(""), one());
    let (key, reader, name) = (house.sender(), house.reader(), digest(one().1));
    let service = house.serve();
    taken(&service.ask(&put(&service, &key, &name, 0, &text.as_bytes()[..100_000])));
    kill(service);
    let service = house.serve();
    assert_eq!(look(&service, &key, &name)["bytes"], 100_000, "what was answered for is there");
    let mut connection = service.connect();
    connection.send(put(&service, &key, &name, 100_000, &text.as_bytes()[100_000..]).head());
    connection.send(&text.as_bytes()[100_000..800_000]);
    wait_for("a block on the disk", || (house.spooled(".part")[0].metadata().unwrap().len() > 100_000).then_some(()));
    kill(service);
    let service = house.serve();
    let held = look(&service, &key, &name)["bytes"].as_u64().unwrap();
    assert!(held > 100_000 && held <= 800_000, "{held}");
    let ran = push(&project, &service, &key, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let parts: Vec<String> = service.log().lines().filter(|line| line.contains("\"what\":\"part\"")).map(str::to_owned).collect();
    assert!(parts.len() == 1 && parts[0].contains(&format!("\"bytes\":{}", text.len() as u64 - held)), "the rest alone is sent: {parts:?}");
    drop(service);
    all_is_well(&house, &project, &key, &reader);
}

#[test]
fn the_server_is_killed_between_the_last_part_and_the_reading() {
    let (house, (project, text)) = (House::new(""), one());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    taken(&service.ask(&put(&service, &key, &digest(&text), 0, text.clone())));
    kill(service);
    all_is_well(&house, &project, &key, &reader);
}

#[test]
fn the_server_is_killed_while_it_reads() {
    let (house, (project, text)) = (House::new("[store]\nbusy_timeout_ms = 60000\n"), one());
    let (key, reader) = (house.sender(), house.reader());
    // By one request, and by the client, which waits for the next server.
    for whole in [true, false] {
        let service = house.serve();
        assert!(runs(&service, &reader).is_empty());
        let generation = house.generation();
        let held = house.hold();
        let mut connection = service.connect();
        let client = if whole {
            connection.send(post(&service, &key, "?name=logs%2Fa.json", text.clone()).bytes());
            None
        } else {
            Some(pushed(&project, &service, &key, &["--retry-for", "0"]))
        };
        wait_for("the log to be read", || {
            house.spooled("in-").iter().any(|path| path.join("log").read_dir().is_ok_and(|mut all| all.next().is_some())).then_some(())
        });
        kill(service);
        held.release();
        if let Some(mut client) = client {
            let status = wait_for("the client's end", || client.try_wait().unwrap());
            assert_eq!(status.code(), Some(1), "the server went away");
        }
        assert_eq!(house.generation(), generation, "nothing of it is there");
    }
    all_is_well(&house, &project, &key, &reader);
}

#[test]
fn the_server_is_killed_after_it_read_and_before_it_answered() {
    let (house, (project, text)) = (House::new(""), one());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let name = digest(&text);
    taken(&service.ask(&put(&service, &key, &name, 0, text.clone())));
    let part = house.spooled(".part").remove(0);
    std::fs::copy(&part, part.with_extension("kept")).unwrap();
    taken(&service.ask(&post(&service, &key, &format!("?upload={name}&name=logs%2Fa.json"), "")));
    kill(service);
    // As it stands where it had not come to removing what it has read.
    std::fs::rename(part.with_extension("kept"), &part).unwrap();
    let service = house.serve();
    let again = service.ask(&post(&service, &key, &format!("?upload={name}&name=logs%2Fa.json"), ""));
    assert_eq!(taken(&again)["changed"], false);
    assert_eq!(look(&service, &key, &name), json!({"ok": true, "bytes": 0, "imported": true}));
    drop(service);
    all_is_well(&house, &project, &key, &reader);
}

#[test]
fn the_client_is_killed_at_each_step() {
    let (house, (project, text)) = (House::new("[store]\nbusy_timeout_ms = 60000\n"), one());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let name = digest(&text);
    // While it asks: the server stands still.
    service.signal(Signal::SIGSTOP);
    let client = pushed(&project, &service, &key, &[]);
    wait_for("the client's question", || established(service.port).then_some(()));
    kill_client(client);
    service.signal(Signal::SIGCONT);
    // While a part comes: what came of it stays.
    let mut gone = service.connect();
    gone.send(put(&service, &key, &name, 0, text.clone()).head());
    gone.send(&text.as_bytes()[..600_000]);
    let part = || house.spooled(".part").into_iter().next();
    wait_for("a block on the disk", || part().filter(|path| path.metadata().unwrap().len() > 0));
    drop(gone);
    wait_for("the server to see it", || File::open(part().unwrap()).unwrap().try_lock().ok());
    let came = look(&service, &key, &name)["bytes"].as_u64().unwrap();
    assert!(came > 0 && came <= 600_000, "{came}");
    // While the next part is refused for now: somebody else sends it.
    let busy = File::open(house.spooled(".part").remove(0)).unwrap();
    busy.lock().unwrap();
    let before = told(&service, "part");
    let client = pushed(&project, &service, &key, &[]);
    wait_for("a refused part", || (told(&service, "part") > before).then_some(()));
    kill_client(client);
    drop(busy);
    assert_eq!(look(&service, &key, &name), json!({"ok": true, "bytes": came, "imported": false}));
    // While its log is read: it is read to its end.
    runs(&service, &reader);
    let held = house.hold();
    let client = pushed(&project, &service, &key, &[]);
    wait_for("the log to be read", || house.spooled("in-").iter().any(|path| path.join("log").exists()).then_some(()));
    kill_client(client);
    held.release();
    wait_for("the run", || (runs(&service, &reader) == ["killed"]).then_some(()));
    drop(service);
    all_is_well(&house, &project, &key, &reader);
}

/// Whether somebody is connected to `port`, with a request on its way.
fn established(port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // The listener's end: bytes that nobody has read.
    table.lines().skip(1).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].ends_with(&format!(":{port:04X}")) && words[3] == "01" && !words[4].ends_with(":00000000")
    })
}

#[test]
fn a_client_that_waits_finds_the_next_server() {
    let (house, project) = (House::new(""), every_format());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let ran = push(&project, &service, &key, &["logs/results.json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    kill(service);
    let service = house.serve();
    let ran = push(&project, &service, &key, &[]);
    assert!(ran.code == 0 && ran.out.contains("6 sent, 1 there already"), "{}{}", ran.out, ran.err);
    assert_eq!(runs(&service, &reader).len(), 7);
}
