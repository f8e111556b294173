//! Resources over a plain store.
//!
//! Promises: what is read is held against what the tools give, and what was put in.
//! Does not: speak a transport (`tests/it` does).

use serde_json::json;

use super::*;
use crate::{
    auth::Role,
    domain::{attempt::Attempt, outcome::Outcome},
    gate::{Bounds, message::Era},
    mcp::trial::{House, by, house, plain, remote},
    store::contract::{attempt, log},
    telemetry::redaction::Redactor,
    tools::Limits,
    transcript::Packer,
};

/// A secret that every redactor knows by its form.
const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

fn with_lines(case: &str, lines: &[String]) -> Attempt {
    // As a store that was filled with redaction off.
    let redactor = Redactor::off();
    let mut packer = Packer::new(&redactor);
    lines.iter().for_each(|line| packer.line(line));
    Attempt { transcript: packer.finish(), ..attempt(case, Outcome::Fail) }
}

fn code(fault: &Fault) -> (i64, &Value) {
    (fault.code, fault.data.as_ref().map_or(&Value::Null, |data| &data["reason"]))
}

async fn titles(house: &House, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let page = house.local("resources/list", json!({"cursor": cursor})).await;
    assert_eq!((&page["ttlMs"], &page["cacheScope"], &page["resultType"]), (&json!(0), &json!("private"), &json!("complete")));
    let titles = page["resources"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect();
    (titles, page.get("nextCursor").map(|next| next.as_str().unwrap().to_owned()))
}

#[tokio::test]
async fn runs_are_listed_newest_first_by_pages() {
    let house = plain();
    assert_eq!(titles(&house, None).await, (vec![], None));
    for at in 0..250 {
        log(&format!("{at:03}"), at).put(&*house.store).unwrap();
    }
    let (first, next) = titles(&house, None).await;
    // A run that comes between two pages moves nothing.
    log("999", 999).run("é / 1").put(&*house.store).unwrap();
    let (second, then) = titles(&house, next.as_deref()).await;
    let (third, last) = titles(&house, then.as_deref()).await;
    assert_eq!((first.len(), second.len(), third.len(), last), (100, 100, 50, None));
    let all: Vec<String> = [first, second, third].concat();
    let time = |at: i64| format!("1970-01-01T00:{:02}:{:02}Z", at / 60, at % 60);
    let expected: Vec<String> = (0..250).rev().map(|at| format!("R{at:03} {} recorded", time(at))).collect();
    assert_eq!(all, expected);
    let newest = house.local("resources/list", json!({})).await["resources"][0].clone();
    assert_eq!(
        newest,
        json!({"uri": "runlore://runs/%C3%A9%20%2F%201", "name": "é / 1", "title": "é / 1 1970-01-01T00:16:39Z recorded", "mimeType": "application/json"})
    );
}

#[tokio::test]
async fn a_cursor_of_others_is_refused() {
    let house = plain();
    for at in 0..101 {
        log(&format!("{at:03}"), at).put(&*house.store).unwrap();
    }
    let cursor = titles(&house, None).await.1.unwrap();
    assert_eq!(titles(&house, Some(&cursor)).await.0.len(), 1);
    let shorter: String = cursor.chars().skip(1).collect();
    let altered = format!("A{shorter}");
    let altered = if altered == cursor { format!("B{shorter}") } else { altered };
    for wrong in [json!(altered), json!(shorter), json!(""), json!("1000.R001"), json!(7), json!(["a"])] {
        let fault = house.asked(&by(Caller::local()), "resources/list", json!({"cursor": wrong})).await.unwrap_err();
        assert_eq!(fault.code, -32602, "{wrong}");
        assert!(fault.message.contains("cursor"), "{}", fault.message);
    }
}

#[tokio::test]
async fn a_run_is_read_as_show_gives_it() {
    let house = plain();
    let attempts = (0..30).map(|case| attempt(&format!("c{case}"), if case % 3 == 0 { Outcome::Fail } else { Outcome::Pass }));
    log("a", 1).run("2026/é #1 @x %41").with(attempts).put(&*house.store).unwrap();
    let shown = house.local("tools/call", json!({"name": "show", "arguments": {"limit": 1000}})).await["structuredContent"].clone();
    let uri = uri::run("2026/é #1 @x %41");
    let text = house.read(&uri).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), shown);
    assert_eq!(shown["evals"][0]["attempts"].as_array().map(Vec::len), Some(30));
    // Compact, and its members in the order of the tool's.
    let raw = house.core.answer("tools/call", json!({"name": "show"}).as_object().cloned().unwrap(), &by(Caller::local())).await.unwrap();
    assert!(raw.contains(&format!("\"structuredContent\":{text},")));
    assert_eq!(house.read(&uri.replace("runlore", "reeval")).await.unwrap(), text);
}

#[tokio::test]
async fn more_evaluations_than_show_gives_at_once_are_all_there() {
    let house = plain();
    let mut log = log("a", 1);
    log.header.evaluations = (0..1100).map(|number| crate::store::contract::evaluation(&format!("e{number:04}"))).collect();
    log.put(&*house.store).unwrap();
    let record: Value = serde_json::from_str(&house.read("runlore://runs/Ra").await.unwrap()).unwrap();
    assert_eq!((&record["returned"], &record["total"], &record["complete"]), (&json!(1100), &json!(1100), &json!(true)));
}

#[tokio::test]
async fn a_transcript_is_read_whole_by_the_uri_that_the_tool_gives() {
    let house = plain();
    let lines: Vec<String> = (0..1300).map(|number| format!("{{\"n\":{number},\"text\":\"é\\n{}\"}}", "x".repeat(500))).collect();
    let run = "r/1 é";
    log("a", 1).run(run).with([with_lines("a/b@c#d%é", &lines), attempt("none", Outcome::Pass)]).put(&*house.store).unwrap();
    let attempts = house.local("tools/call", json!({"name": "show"})).await["structuredContent"]["evals"][0]["attempts"].clone();
    let key = attempts.as_array().unwrap().iter().find(|one| one["case"] == "a/b@c#d%é").unwrap()["attempt"].clone();
    let page = house.local("tools/call", json!({"name": "transcript", "arguments": {"attempt": key, "limit": 2}})).await;
    let uri = page["structuredContent"]["uri"].as_str().unwrap();
    let text = house.read(uri).await.unwrap();
    assert_eq!(text, lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(text.lines().take(2).collect::<Vec<_>>(), [lines[0].as_str(), &lines[1]]);
    let result = house.local("resources/read", json!({"uri": uri})).await;
    assert_eq!((&result["contents"][0]["mimeType"], &result["ttlMs"]), (&json!("application/jsonl"), &json!(0)));
    assert_eq!(house.read(&uri.replace("runlore", "reeval")).await.unwrap(), text);
    // Whoever does not know the run or the key, or an attempt without one, gets what any unknown thing gets.
    for wrong in [
        "runlore://runs/Ra/transcripts/e%2Fnone%231",
        "runlore://runs/r%2F1%20%C3%A9/transcripts/e%2Fnone%231",
        uri.strip_suffix("%231").unwrap(),
    ] {
        assert_eq!(house.read(wrong).await.unwrap_err(), Fault::resource(wrong, Era::Modern), "{wrong}");
    }
}

#[tokio::test]
async fn what_is_not_there_has_the_code_of_its_era() {
    let house = plain();
    log("a", 1).put(&*house.store).unwrap();
    log("ab", 2).put(&*house.store).unwrap();
    for uri in ["runlore://runs/nothing", "runlore://runs/latest", "runlore://runs/R", "file:///etc/passwd", "", "runlore://runs/Ra/"] {
        for (era, expected) in [(Era::Modern, -32602), (Era::Legacy, -32002)] {
            let fault = house.asked(&Asker { era, ..by(Caller::local()) }, "resources/read", json!({"uri": uri})).await.unwrap_err();
            assert_eq!((fault.code, &fault.data), (expected, &Some(json!({"uri": uri}))), "{uri}");
        }
    }
    assert_eq!(house.asked(&by(Caller::local()), "resources/read", json!({})).await.unwrap_err().code, -32602);
    let legacy =
        house.asked(&Asker { era: Era::Legacy, ..by(Caller::local()) }, "resources/read", json!({"uri": "runlore://runs/Ra"})).await;
    assert_eq!(legacy.unwrap().as_object().unwrap().keys().collect::<Vec<_>>(), ["contents"]);
}

#[tokio::test]
async fn what_is_over_the_cap_is_refused_with_the_way_to_its_parts() {
    let house = house(Limits { resource_bytes: 4000, ..Limits::default() }, Bounds::default());
    let lines: Vec<String> = (0..40).map(|number| format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(100))).collect();
    let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(whole > 4000);
    log("a", 1).with([with_lines("1", &lines), with_lines("2", &lines[..30])]).put(&*house.store).unwrap();
    // So many that it is not even read, and so few that it is.
    log("b", 2).with((0..40).map(|case| attempt(&case.to_string(), Outcome::Pass))).put(&*house.store).unwrap();
    log("c", 3).with((0..14).map(|case| attempt(&case.to_string(), Outcome::Pass))).put(&*house.store).unwrap();
    for (uri, named) in [
        ("runlore://runs/Ra/transcripts/e%2F1%231", "the tool transcript gives them in pages: use its arguments offset and limit"),
        ("runlore://runs/Rb", "the tool show gives it in parts: use its arguments filter and limit, attempts: false, or format: md"),
        ("runlore://runs/Rc", "the tool show gives it in parts"),
    ] {
        let fault = house.read(uri).await.unwrap_err();
        assert_eq!(code(&fault), (-32000, &json!("too_large")), "{uri}");
        assert!(fault.message.contains(named) && fault.message.contains("4000 bytes"), "{}", fault.message);
    }
    assert_eq!(house.read("runlore://runs/Ra/transcripts/e%2F2%231").await.unwrap().lines().count(), 30);
    assert!(house.read("runlore://runs/Ra").await.is_ok());
}

#[tokio::test]
async fn no_secret_leaves_by_a_resource() {
    let house = plain();
    let line = format!("{{\"text\":\"the key is {SECRET}\"}}");
    let broken = Attempt { error: Some(format!("401 for {SECRET}")), ..attempt("2", Outcome::InfraError) };
    log("a", 1).with([with_lines("1", &[line]), broken]).put(&*house.store).unwrap();
    for uri in ["runlore://runs/Ra", "runlore://runs/Ra/transcripts/e%2F1%231"] {
        let text = house.read(uri).await.unwrap();
        assert!(!text.contains(SECRET) && text.contains("[REDACTED]"), "{text}");
    }
}

#[tokio::test]
async fn who_may_not_read_texts_is_not_offered_them() {
    let house = plain();
    log("a", 1).with([with_lines("1", &["{}".to_owned()])]).put(&*house.store).unwrap();
    let names = async |caller: Caller| {
        let list = house.asked(&by(caller), "resources/templates/list", json!({})).await.unwrap();
        list["resourceTemplates"].as_array().unwrap().iter().map(|one| one["uriTemplate"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Caller::local()).await, ["runlore://runs/{runId}", "runlore://runs/{runId}/transcripts/{attempt}"]);
    assert_eq!(names(Caller::public()).await, ["runlore://runs/{runId}"]);
    let stranger = Caller::scoped("k", Role::Owner, &["runs:read"]);
    assert!(names(stranger.clone()).await.is_empty());
    let none = house.asked(&by(stranger.clone()), "resources/list", json!({})).await.unwrap();
    assert_eq!(none["resources"], json!([]));
    // There or not, the refusal is the same.
    for uri in ["runlore://runs/Ra/transcripts/e%2F1%231", "runlore://runs/none/transcripts/none"] {
        let fault = house.asked(&by(Caller::public()), "resources/read", json!({"uri": uri})).await.unwrap_err();
        assert_eq!(
            (code(&fault), fault.message.as_str()),
            ((-32000, &json!("insufficient_scope")), "resources/transcript needs scope traces:read")
        );
    }
    let fault = house.asked(&by(stranger), "resources/read", json!({"uri": "runlore://runs/Ra"})).await.unwrap_err();
    assert_eq!(code(&fault), (-32000, &json!("insufficient_scope")));
    assert!(house.asked(&by(Caller::public()), "resources/read", json!({"uri": "runlore://runs/Ra"})).await.is_ok());
}

#[tokio::test]
async fn reads_and_lists_count_on_the_callers_rate() {
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "runlore://runs/Ra"})),
        ("resources/read", json!({"uri": "nothing"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "triage_failures"}, "argument": {"name": "run", "value": ""}}),
        ),
    ] {
        let house = house(Limits::default(), Bounds { rate: 1, ..Bounds::default() });
        log("a", 1).put(&*house.store).unwrap();
        let asker = remote(Caller::open());
        let first = house.asked(&asker, method, params.clone()).await;
        assert!(first.map_or_else(|fault| fault.code == -32602, |_| true), "{method}");
        let fault = house.asked(&asker, method, params).await.unwrap_err();
        assert_eq!(fault.data, Some(json!({"reason": "rate", "requestId": "r", "retryAfterSeconds": 60})), "{method}");
    }
}
