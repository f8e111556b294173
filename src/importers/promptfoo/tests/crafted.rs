//! Files that promptfoo writes and the corpus has none of: older versions, other orders, arms that are hard to tell apart, secrets.

use serde_json::{Value, json};

use super::{MODIFIED, Written, file, import, import_with};
use crate::{
    domain::{outcome::Outcome, time::Timestamp},
    importers::{Limits, Refused},
};

fn row(test: &str, provider: Value, prompt: (&str, u64), test_idx: u64, success: bool) -> Value {
    json!({
        "id": format!("{test}-{prompt:?}-{test_idx}"), "provider": provider, "prompt": {"raw": format!("say {test}"), "label": prompt.0},
        "promptId": format!("digest of {}", prompt.0), "promptIdx": prompt.1, "testIdx": test_idx, "success": success,
        "failureReason": u8::from(!success), "score": u8::from(success), "vars": {"q": test}, "testCase": {"vars": {"q": test}},
        "response": {"output": "x"}, "gradingResult": {"pass": success, "score": u8::from(success), "reason": "why"}
    })
}

fn envelope(rows: &[Value], config: Value) -> Value {
    json!({"evalId": "eval-abc-2026-01-02T03:04:05", "results": {"version": 3, "results": rows, "prompts": []}, "config": config})
}

fn arms(file: &Value) -> Vec<(String, String)> {
    let whole = import(file.to_string()).unwrap();
    whole.attempts.iter().map(|attempt| (attempt.arm.clone(), attempt.case.clone())).collect()
}

fn names(file: &Value) -> Vec<String> {
    import(file.to_string()).unwrap().header.arms.into_iter().map(|arm| arm.name).collect()
}

#[test]
fn the_order_of_members_and_rows_does_not_count() {
    let whole: Value = serde_json::from_slice(&file("generated/promptfoo/repeat3.json")).unwrap();
    let mut rows = whole["results"]["results"].as_array().unwrap().clone();
    rows.reverse();
    let rows = Value::from(rows);
    // Rows before everything that says what they are.
    let of = |key: &str| whole[key].to_string();
    let results = format!(
        r#"{{"results":{rows},"prompts":{},"stats":{},"timestamp":{},"version":3}}"#,
        whole["results"]["prompts"], whole["results"]["stats"], whole["results"]["timestamp"]
    );
    let text = format!(
        r#"{{"results":{results},"traces":[{{"x":[]}}],"metadata":{},"config":{},"runtimeOptions":{},"evalId":{}}}"#,
        of("metadata"),
        of("config"),
        of("runtimeOptions"),
        of("evalId")
    );
    let (a, b) = (import(whole.to_string()).unwrap(), import(text).unwrap());
    let keys = |whole: &super::Whole| {
        let mut keys: Vec<_> = whole.attempts.iter().map(|one| (one.uuid.clone(), one.case.clone(), one.arm.clone(), one.epoch)).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&a), keys(&b));
    assert_eq!((a.header.evaluations, a.header.arms, a.header.log_id), (b.header.evaluations, b.header.arms, b.header.log_id));
}

#[test]
fn the_time_is_the_best_that_the_file_says() {
    let rows = [row("a", json!({"id": "p"}), ("q", 0), 0, true)];
    let created = |change: &dyn Fn(&mut Value)| {
        let mut file = envelope(&rows, json!({}));
        change(&mut file);
        import(file.to_string()).unwrap().header.created_at.rfc3339()
    };
    assert_eq!(created(&|_| {}), "2026-01-02T03:04:05Z");
    assert_eq!(created(&|file| file["metadata"] = json!({"evaluationCreatedAt": "2026-01-01T00:00:00+01:00"})), "2025-12-31T23:00:00Z");
    // When it was exported says nothing of when it ran.
    assert_eq!(created(&|file| file["metadata"] = json!({"exportedAt": "2026-05-01T00:00:00Z"})), "2026-01-02T03:04:05Z");
    let nameless = |file: &mut Value| {
        file.as_object_mut().unwrap().remove("evalId");
    };
    assert_eq!(created(&|file| nameless(file)), MODIFIED.rfc3339());
    assert_eq!(
        created(&|file| {
            nameless(file);
            file["results"]["timestamp"] = json!("2026-03-01T00:00:00Z");
        }),
        "2026-03-01T00:00:00Z"
    );
}

#[test]
fn two_exports_of_one_evaluation_are_one_log() {
    let rows = [row("a", json!({"id": "p"}), ("q", 0), 0, true)];
    let mut again = envelope(&rows, json!({}));
    again["metadata"] = json!({"exportedAt": "2026-05-01T00:00:00Z", "author": "ann@example.com"});
    let (a, b) = (import(envelope(&rows, json!({})).to_string()).unwrap().header, import(again.to_string()).unwrap().header);
    assert_eq!((a.log_id.as_str(), a.run_key), ("eval-abc-2026-01-02T03:04:05", b.run_key));
    assert_eq!((b.log_id, b.metadata["author"].as_str()), (a.log_id, Some("ann@example.com")));
    // An evaluation that ran nothing is one all the same.
    assert_eq!(import(envelope(&[], json!({})).to_string()).unwrap().attempts.len(), 0);
}

#[test]
fn version_two_gets_its_tests_from_its_table() {
    let test = |description: &str, value: &str| json!({"description": description, "vars": {"q": "x"}, "assert": [{"type": "equals", "value": value}]});
    let old = |q: &str, success: bool, grading: Value| {
        json!({"provider": {"id": "openai:gpt-4"}, "prompt": {"raw": format!("say {q}"), "display": "say {{q}}"}, "vars": {"q": q},
            "response": {"output": "x"}, "success": success, "error": if success { Value::Null } else { json!("Expected y") }, "gradingResult": grading})
    };
    let mut broke = old("z", false, Value::Null);
    (broke["error"], broke["response"]) = (json!("API error"), json!({"error": "API error"}));
    let mut file = json!({"version": 2, "createdAt": "2024-02-03T04:05:06.000Z", "config": {"description": "old"}, "results": {
        "version": 2, "timestamp": "2024-02-03T04:05:07.000Z", "stats": {"successes": 1, "failures": 2},
        "results": [old("x", true, json!({"pass": true})), old("y", false, json!({"pass": false})), broke],
        "table": {"head": {"vars": ["q"], "prompts": []}, "body": [
            {"vars": ["x"], "test": test("first", "1"), "outputs": []},
            {"vars": ["y"], "test": {"vars": {"q": "y"}}, "outputs": []},
            {"vars": ["z"], "test": {"vars": {"q": "z"}, "description": "third"}, "outputs": []}]}}});
    let whole = import(file.to_string()).unwrap();
    let found: Vec<_> = whole.attempts.iter().map(|one| (one.case.as_str(), one.outcome)).collect();
    assert_eq!(found, [("first", Outcome::Pass), ("q=y", Outcome::Fail), ("third", Outcome::InfraError)]);
    assert_eq!((whole.header.created_at, whole.complaints), (Timestamp::parse("2024-02-03T04:05:07Z").unwrap(), Vec::<String>::new()));
    assert_eq!(whole.header.arms[0].factors["prompt"], "say {{q}}");
    assert!(whole.header.log_id.starts_with("sha256-") && whole.header.evaluations[0].scorer_digest.is_some());
    // promptfoo writes the head first; the copy above has its members in the order of the alphabet.
    let text = file.to_string();
    let (body, head) = (file["results"]["table"]["body"].to_string(), file["results"]["table"]["head"].to_string());
    let other = text.replace(&format!(r#"{{"body":{body},"head":{head}}}"#), &format!(r#"{{"head":{head},"body":{body}}}"#));
    assert_ne!(text, other);
    assert_eq!(import(other).unwrap().attempts[0].case, "first");
    // Two tests of the same variables: the rows do not say which is whose, and that is said.
    file["results"]["table"]["body"][1] = json!({"vars": ["x"], "test": test("second", "2"), "outputs": []});
    let whole = import(file.to_string()).unwrap();
    assert_eq!((whole.attempts[0].case.as_str(), whole.complaints.len()), ("q=x", 1));
    file["results"]["results"] = json!([]);
    assert!(matches!(import(file.to_string()), Err(Refused::Broken(why)) if why.contains("table")));
}

/// As promptfoo's evaluator wrote cells before version 3: the output below the reason, and no grading where the provider broke.
#[test]
fn a_table_alone_is_read_where_its_cells_say_how_they_ended() {
    let cell = |pass: bool, text: &str, grading: Value| {
        json!({"pass": pass, "score": u8::from(pass), "namedScores": {}, "text": text, "prompt": "say it", "provider": "openai:gpt-4", "latencyMs": 12,
            "tokenUsage": {"total": 9, "prompt": 5, "completion": 4}, "gradingResult": grading, "cost": 0.25})
    };
    let graded = |pass: bool, reason: &str| {
        json!({"pass": pass, "score": u8::from(pass), "reason": reason, "componentResults": [
            {"pass": pass, "score": u8::from(pass), "reason": reason, "assertion": {"type": "equals", "value": "y"}}]})
    };
    let line = |q: &str, outputs: Value| json!({"description": q, "vars": [q], "test": {"vars": {"q": q}, "description": format!("case {q}"), "assert": [{"type": "equals", "value": "y"}]}, "outputs": outputs});
    let column = |label: &str| json!({"raw": format!("say {label}"), "label": label, "id": format!("digest of {label}"), "provider": "openai:gpt-4", "metrics": {"testPassCount": 1}});
    let mut file = json!({"version": 2, "createdAt": "2024-02-03T04:05:06.000Z", "config": {"description": "old"}, "results": {
        "version": 2, "timestamp": "2024-02-03T04:05:07.000Z", "results": [], "table": {
            "head": {"vars": ["q"], "prompts": [column("one"), column("two")]},
            "body": [
                line("a", json!([cell(true, "y", graded(true, "ok")), cell(false, "Expected y\n---\nx", graded(false, "Expected y"))])),
                line("b", json!([cell(false, "API error: 500\n---\n", Value::Null), null]))]}}});
    let whole = import(file.to_string()).unwrap();
    let found: Vec<_> =
        whole.attempts.iter().map(|one| (one.case.as_str(), one.arm.as_str(), one.outcome, one.output.as_deref())).collect();
    let arms: Vec<&str> = whole.header.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(
        found,
        [
            ("case a", arms[0], Outcome::Pass, Some("y")),
            ("case a", arms[1], Outcome::Fail, Some("x")),
            ("case b", arms[0], Outcome::InfraError, None),
        ]
    );
    let passed = &whole.attempts[0];
    assert_eq!((passed.usage.total_tokens, passed.cost_usd, passed.duration_ms, passed.score), (Some(9), Some(0.25), Some(12), Some(1.0)));
    assert_eq!((passed.input.as_deref(), passed.target.as_deref()), (Some("a"), Some("equals: y")));
    assert_eq!(whole.attempts[1].checks[0].reason.as_deref(), Some("Expected y"));
    assert_eq!((whole.attempts[2].error.as_deref(), whole.attempts[2].score), (Some("API error: 500"), None));
    assert_eq!(whole.lines(0)[..2], [r#"{"role":"user","content":"say it"}"#, r#"{"role":"assistant","content":"y"}"#]);
    assert_eq!((whole.complaints, whole.header.arms[1].factors["prompt"].as_str()), (Vec::<String>::new(), "two"));
    assert_eq!(
        (whole.header.metrics[0].metric.as_str(), whole.header.created_at),
        ("testPassCount", Timestamp::parse("2024-02-03T04:05:07Z").unwrap())
    );
    // What later releases wrote there says it itself.
    file["results"]["table"]["body"] = json!([line(
        "c",
        json!([{"pass": false, "failureReason": 2, "text": "no", "error": "no"}, {"pass": false, "failureReason": 1, "text": "x"}])
    )]);
    let whole = import(file.to_string()).unwrap();
    assert_eq!(whole.attempts.iter().map(|one| one.outcome).collect::<Vec<_>>(), [Outcome::InfraError, Outcome::Fail]);
    // A line that is too big is named, and the others stand.
    let big = "x".repeat(3000);
    let good = line("a", json!([cell(true, "y", graded(true, "ok"))]));
    file["results"]["table"]["body"] = json!([line("b", json!([cell(true, &big, graded(true, "ok"))])), good]);
    let whole = import_with(file.to_string(), &Limits { entry_bytes_max: 2500, ..Limits::default() }, &Written(Some(MODIFIED))).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1), "{:?}", whole.complaints);
    // Cells that say nothing: whether `b` failed or broke nobody knows.
    file["results"]["table"]["body"] = json!([line("b", json!([{"pass": false, "text": "no\n---\n"}, {"pass": true, "text": "y"}]))]);
    assert!(matches!(import(file.to_string()), Err(Refused::Broken(why)) if why.contains("do not say")));
}

#[test]
fn what_the_library_gives_has_no_envelope() {
    let rows = [row("a", json!({"id": "p"}), ("q", 0), 0, true), row("b", json!({"id": "p"}), ("q", 0), 1, false)];
    let column = json!([{"provider": "p", "label": "q", "id": "d", "metrics": {"testPassCount": 1}}]);
    let eval =
        json!({"id": "eval-abc-2026-01-02T03:04:05", "createdAt": 1_767_323_045_000_i64, "results": rows, "prompts": column, "config": {}});
    let whole = import(eval.to_string()).unwrap();
    assert_eq!((whole.counts().passed, whole.counts().failed, whole.header.log_id.as_str()), (1, 1, "eval-abc-2026-01-02T03:04:05"));
    assert_eq!(whole.header.metrics[0].metric, "testPassCount");
    let mut nameless = eval;
    nameless["id"] = json!("7");
    let whole = import(nameless.to_string()).unwrap();
    assert_eq!(whole.header.created_at.rfc3339(), "2026-01-02T03:04:05Z");
    // A number that is no time in the years that can be written: the file's own time stands.
    nameless["createdAt"] = json!(253_402_300_800_000_i64);
    assert_eq!(import(nameless.to_string()).unwrap().header.created_at, MODIFIED);
    // Another tool's file of the same outline.
    let other = json!({"results": [{"text": "x"}], "prompts": ["p"]}).to_string();
    assert!(matches!(import(other), Err(Refused::NotALog(why)) if why.contains("how it ended")));
}

#[test]
fn what_is_run_again_replaces_what_it_retries() {
    // promptfoo 0.121.20 opens JSONL with `append` when it resumes.
    let again = |success, test_idx| row("a", json!({"id": "p"}), ("q", 0), test_idx, success);
    let mut broke = again(false, 0);
    (broke["failureReason"], broke["gradingResult"], broke["error"]) = (json!(2), Value::Null, json!("API error"));
    let lines = [broke, again(false, 1), again(true, 0)].map(|row| row.to_string()).join("\n");
    let whole = import(lines).unwrap();
    let found: Vec<_> = whole.attempts.iter().map(|one| (one.epoch, one.outcome, one.retries)).collect();
    assert_eq!(found, [(2, Outcome::Fail, 0), (1, Outcome::Pass, 1)]);
    // Rows that do not say where they belong are tries of their own.
    let bare = json!({"provider": "p", "vars": {"q": "x"}, "success": true});
    let file = json!({"evalId": "eval-2026-01-01T00:00:00", "results": {"results": [bare, bare]}});
    assert_eq!(import(file.to_string()).unwrap().attempts.len(), 2);
}

#[test]
fn providers_of_one_id_are_told_apart_by_label_or_configuration() {
    let labelled = |label: &str, idx| row("a", json!({"id": "file://p.js", "label": label}), ("q", idx), 0, true);
    assert_eq!(names(&envelope(&[labelled("one", 0), labelled("two", 1)], json!({}))), ["one", "two"]);
    // Without a label only the place among the columns tells which entry of the configuration a row is of.
    let plain = |idx, test_idx| row("a", json!({"id": "openai:gpt", "label": ""}), ("q", idx), test_idx, true);
    let config = json!({"providers": [{"id": "openai:gpt", "config": {"temperature": 0, "apiKey": "k1"}}, {"openai:gpt": {"config": {"temperature": 1}}}]});
    assert_eq!(names(&envelope(&[plain(1, 0), plain(0, 0)], config)), ["openai:gpt+temperature=0", "openai:gpt+temperature=1"]);
    // The same entry twice is two tries of one arm.
    let same = json!({"providers": ["openai:gpt", "openai:gpt"]});
    let whole = import(envelope(&[plain(1, 0), plain(0, 0)], same).to_string()).unwrap();
    let tries: Vec<_> = whole.attempts.iter().map(|one| (one.arm.as_str(), one.epoch)).collect();
    assert_eq!(tries, [("openai:gpt", 2), ("openai:gpt", 1)]);
    // Rows alone have no configuration: nothing says that the two are the same.
    let bare = [plain(1, 0), plain(0, 0)].map(|row| row.to_string()).join("\n");
    let whole = import(bare).unwrap();
    let tries: Vec<_> = whole.attempts.iter().map(|one| (one.arm.as_str(), one.epoch)).collect();
    assert_eq!(tries, [("openai:gpt+column=2", 1), ("openai:gpt", 1)]);
    // One label for two providers.
    let clash = |id: &str, idx| row("a", json!({"id": id, "label": "same"}), ("q", idx), 0, true);
    let both = names(&envelope(&[clash("x", 0), clash("y", 1)], json!({})));
    assert!(both.len() == 2 && both[0] != both[1] && both.iter().all(|name| name.starts_with("same~")), "{both:?}");
}

#[test]
fn a_prompt_is_in_the_name_where_there_are_several() {
    let of = |label: &str, idx| row("a", json!("openai:gpt"), (label, idx), 0, true);
    assert_eq!(names(&envelope(&[of("short", 0)], json!({}))), ["openai:gpt"]);
    assert_eq!(names(&envelope(&[of("short", 0), of("long", 1)], json!({}))), ["openai:gpt+prompt=long", "openai:gpt+prompt=short"]);
    let long = |end: &str| format!("{} {end}", "word ".repeat(40));
    let both = names(&envelope(&[of(&long("a"), 0), of(&long("b"), 1)], json!({})));
    assert!(both[0] != both[1] && both.iter().all(|name| name.chars().count() <= 80), "{both:?}");
    let path = names(&envelope(&[of("/srv/me/prompts/p.txt", 0), of("b", 1)], json!({})));
    assert_eq!(path, ["openai:gpt+prompt=b", "openai:gpt+prompt=p.txt"]);
}

#[test]
fn a_row_that_leaves_things_unsaid_is_filled_from_the_header() {
    let mut bare = row("a", Value::Null, ("q", 0), 0, true);
    bare["prompt"] = json!({"raw": "say a"});
    let mut file = envelope(&[bare], json!({"providers": "anthropic:claude"}));
    file["results"]["prompts"] = json!([{"id": "d", "label": "the prompt", "raw": "say {{q}}"}]);
    let whole = import(file.to_string()).unwrap();
    let arm = &whole.header.arms[0];
    assert_eq!((arm.name.as_str(), arm.factors["prompt"].as_str()), ("anthropic:claude", "the prompt"));
    assert_eq!(arms(&file), [("anthropic:claude".to_owned(), "q=a".to_owned())]);
}

#[test]
fn secrets_stay_out() {
    let key = format!("sk-proj-{}", "a1B2c3D4e5F6".repeat(4));
    let mut file = envelope(
        &[row("a", json!({"id": "p", "label": key}), (key.as_str(), 0), 0, false)],
        json!({"description": key, "tags": {"t": key}}),
    );
    let config = json!([{"id": "p", "label": key, "config": {"apiKey": "plain-value-7", "headers": {"x": key}, "note": key}}]);
    file["config"]["providers"] = config;
    file["config"]["metadata"] = json!({"password": "plain-value-8"});
    file["results"]["results"][0]["vars"] = json!({"q": key, "apiKey": "plain-value-9"});
    file["results"]["results"][0]["testCase"] = json!({"description": key, "assert": [{"type": "equals", "value": key}]});
    file["results"]["results"][0]["gradingResult"]["componentResults"] =
        json!([{"pass": false, "reason": key, "assertion": {"type": key}}]);
    file["results"]["results"][0]["response"]["output"] = json!(key);
    let whole = import(file.to_string()).unwrap();
    let mut shown = format!("{:?} {:?}", whole.header, whole.attempts);
    whole.lines(0).iter().for_each(|line| shown.push_str(line));
    for secret in ["a1B2c3D4e5F6", "plain-value"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert!(shown.contains("[REDACTED]"));
}

#[test]
fn a_row_that_is_too_big_gives_all_but_its_transcript() {
    let mut big = row("a", json!("p"), ("q", 0), 0, true);
    big["response"]["output"] = json!("x".repeat(10_000));
    let file = envelope(&[big, row("b", json!("p"), ("q", 0), 1, true)], json!({}));
    let limits = Limits { entry_bytes_max: 3000, ..Limits::default() };
    let whole = import_with(file.to_string(), &limits, &Written(None)).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (2, 1));
    let first = &whole.attempts[0];
    assert_eq!((first.case.as_str(), first.outcome, first.output.as_deref()), ("q=a", Outcome::Pass, None));
    assert!(whole.complaints[0].starts_with("test q=a of p (try 1): it takes more than 3000 bytes"), "{:?}", whole.complaints);
}
