//! Logs made by hand, for what no shared file shows.

use serde_json::{Value, json};

use super::{Whole, import, import_knowing, import_with};
use crate::{
    domain::{log::RunStatus, outcome::Outcome},
    importers::{Limits, Refused},
    telemetry::redaction::Redactor,
};

/// One entry of an archive, as the writer of a hostile one would have it.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) method: u16,
    pub(super) packed: Vec<u8>,
    pub(super) crc: u32,
    pub(super) declared: u32,
}

pub(super) fn stored(name: &str, bytes: impl Into<Vec<u8>>) -> Entry {
    let packed = bytes.into();
    Entry { name: name.to_owned(), method: 0, crc: crc32(&packed), declared: packed.len() as u32, packed }
}

/// An entry of one zstd frame a part.
pub(super) fn frames(name: &str, parts: &[&[u8]]) -> Entry {
    let packed: Vec<u8> = parts.iter().flat_map(|part| zstd::bulk::compress(part, 1).unwrap()).collect();
    let whole = parts.concat();
    Entry { name: name.to_owned(), method: 93, packed, crc: crc32(&whole), declared: whole.len() as u32 }
}

fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> =
        (0..256_u32).map(|byte| (0..8).fold(byte, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })).collect();
    !bytes.iter().fold(u32::MAX, |crc, byte| crc >> 8 ^ table[((crc ^ u32::from(*byte)) & 0xFF) as usize])
}

/// An archive with exactly these entries: the crate's own writer refuses a name twice and a size that lies.
pub(super) fn archive(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut common = Vec::new();
        for word in [20, 0x800, entry.method, 0, 0x21] {
            common.extend_from_slice(&u16::to_le_bytes(word));
        }
        for word in [entry.crc, entry.packed.len() as u32, entry.declared] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&(out.len() as u32).to_le_bytes());
        directory.extend_from_slice(entry.name.as_bytes());
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&common);
        out.extend_from_slice(entry.name.as_bytes());
        out.extend_from_slice(&entry.packed);
    }
    let start = out.len() as u32;
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&[(entries.len() as u16).to_le_bytes(), (entries.len() as u16).to_le_bytes()].concat());
    out.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

pub(super) fn header() -> Value {
    json!({"version": 2, "status": "success", "eval": {"eval_id": "e", "run_id": "r", "task_id": "t", "created": "2026-11-30T12:00:00+00:00",
        "task": "task", "model": "m", "dataset": {}, "config": {}, "scorers": [{"name": "s"}]}})
}

pub(super) fn log(samples: &[Value]) -> Vec<u8> {
    let mut log = header();
    log["samples"] = json!(samples);
    log.to_string().into_bytes()
}

/// The same samples in an archive.
fn packed(samples: &[Value]) -> Vec<u8> {
    let mut entries = vec![stored("header.json", header().to_string())];
    entries.extend(samples.iter().enumerate().map(|(place, sample)| stored(&format!("samples/{place}_epoch_1.json"), sample.to_string())));
    archive(&entries)
}

fn values(whole: &Whole, attempt: usize) -> Vec<Value> {
    whole.lines(attempt).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn user(id: &str) -> Value {
    json!({"id": id, "role": "user", "content": format!("says {id}")})
}

fn model(id: &str, input: Value) -> Value {
    json!({"event": "model", "model": "m", "input": input, "output": {"choices": [{"message": user(id)}]}})
}

#[test]
fn of_entries_with_one_name_the_last_counts() {
    let sample = |score| json!({"id": 1, "epoch": 1, "scores": {"s": {"value": score}}}).to_string();
    let bytes = archive(&[
        stored("header.json", header().to_string()),
        stored("samples/1_epoch_1.json", sample("C")),
        stored("samples/2_epoch_1.json", json!({"id": 2, "epoch": 1}).to_string()),
        stored("samples/1_epoch_1.json", sample("I")),
    ]);
    let whole = import(bytes).unwrap();
    assert_eq!(whole.attempts.len(), 2);
    assert_eq!((whole.attempts[0].case.as_str(), whole.attempts[0].outcome), ("1", Outcome::Fail));
    assert_eq!(whole.attempts[1].outcome, Outcome::Unscored);
}

#[test]
fn of_rows_of_a_json_log_the_last_counts_and_ids_keep_their_type() {
    let sample = |id: Value, epoch, score| json!({"id": id, "epoch": epoch, "scores": {"s": {"value": score}}});
    let samples = [
        sample(json!(7), 1, "C"),
        sample(json!("7"), 1, "C"),
        sample(json!("007"), 1, "C"),
        sample(json!(7), 2, "C"),
        sample(json!(7), 1, "I"),
    ];
    let whole = import(log(&samples)).unwrap();
    let rows: Vec<_> = whole.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.epoch, attempt.outcome)).collect();
    assert_eq!(rows, [("\"7\"", 1, Outcome::Pass), ("\"007\"", 1, Outcome::Pass), ("7", 2, Outcome::Pass), ("7", 1, Outcome::Fail)]);
}

#[test]
fn samples_may_stand_before_the_header() {
    let text = String::from_utf8(log(&[])).unwrap();
    let text = text.replacen('{', r#"{"samples":[{"id":1,"epoch":1}],"#, 1).replace(",\"samples\":[]", "");
    assert_eq!(import(text.into_bytes()).unwrap().attempts.len(), 1);
}

#[test]
fn an_entry_of_several_zstd_frames_is_read_whole() {
    let sample = json!({"id": 1, "epoch": 1, "messages": [user("a"), user("b")]}).to_string();
    let (first, second) = sample.as_bytes().split_at(20);
    let bytes = archive(&[stored("header.json", header().to_string()), frames("samples/1_epoch_1.json", &[first, b"", second])]);
    let whole = import(bytes).unwrap();
    assert_eq!(whole.complaints, Vec::<String>::new());
    assert_eq!(values(&whole, 0), [user("a"), user("b")]);
}

#[test]
fn nan_is_unscored_wherever_it_stands() {
    let sample = r#"{"id":1,"epoch":1,"scores":{"s":{"value":NaN},"d":{"value":{"a":NaN,"b":1,"l":[NaN,1.0]}}},"events":[{"event":"x","v":-Infinity,"t":"NaN"}]}"#;
    let scored = r#"{"id":2,"epoch":1,"scores":{"s":{"value":1.0}}}"#;
    let text = String::from_utf8(log(&[])).unwrap().replace("\"samples\":[]", &format!("\"samples\":[{sample},{scored}]"));
    let whole = import(text.into_bytes()).unwrap();
    let first = &whole.attempts[0];
    assert_eq!((first.outcome, first.score, whole.attempts[1].outcome), (Outcome::Unscored, None, Outcome::Pass));
    let shown: Vec<_> = first.checks.iter().map(|check| (check.name.as_str(), check.value, check.label.as_deref())).collect();
    assert_eq!(shown, [("s", None, None), ("d.a", None, None), ("d.b", Some(1.0), None), ("d.l", None, Some("[null,1.0]"))]);
    assert_eq!(values(&whole, 0), [json!({"event": "x", "v": null, "t": "NaN"})]);
}

#[test]
fn attachments_of_old_messages_and_old_transcripts_are_resolved() {
    let hash = "0123456789abcdef0123456789abcdef";
    let reference = format!("attachment://{hash}");
    let sample = json!({"id": 1, "epoch": 1, "input": reference, "messages": [{"role": "user", "content": reference}],
        "transcript": {"events": [{"event": "info", "data": reference}], "content": {hash: "long \"text\"\n"}}});
    for bytes in [log(std::slice::from_ref(&sample)), packed(std::slice::from_ref(&sample))] {
        let whole = import(bytes).unwrap();
        assert_eq!(whole.attempts[0].input.as_deref(), Some("long \"text\"\n"));
        let expected = [json!({"role": "user", "content": "long \"text\"\n"}), json!({"event": "info", "data": "long \"text\"\n"})];
        assert_eq!(values(&whole, 0), expected);
    }
}

#[test]
fn a_model_event_keeps_what_no_line_has_yet() {
    let events = [
        model("answer", json!([user("a"), user("sub")])),
        model("next", json!([user("a"), user("sub"), user("answer"), {"role": "user", "content": "no id"}])),
        model("last", json!([{"role": "user", "content": "no id"}, user("next")])),
    ];
    let whole = import(log(&[json!({"id": 1, "epoch": 1, "messages": [user("a")], "events": events})])).unwrap();
    let lines = values(&whole, 0);
    assert_eq!((&lines[1]["input"], &lines[1]["input_omitted"]), (&json!([user("sub")]), &json!(1)));
    assert_eq!((&lines[2]["input"], &lines[2]["input_omitted"]), (&json!([{"role": "user", "content": "no id"}]), &json!(3)));
    assert_eq!((&lines[3]["input"], &lines[3]["input_omitted"]), (&json!([]), &json!(2)));
    assert_eq!(lines[3]["output"]["choices"][0]["message"], user("last"));
}

#[test]
fn a_message_without_an_id_is_known_whether_its_text_is_attached_or_not() {
    let hash = "0123456789abcdef0123456789abcdef";
    let said = |content: &str| json!({"role": "user", "content": content});
    let event = json!({"event": "model", "input": [said(&format!("attachment://{hash}")), said("new")], "output": {}});
    let sample = json!({"id": 1, "epoch": 1, "messages": [said("long text")], "events": [event], "attachments": {hash: "long text"}});
    let lines = values(&import(log(&[sample])).unwrap(), 0);
    assert_eq!((&lines[1]["input"], &lines[1]["input_omitted"]), (&json!([said("new")]), &json!(1)));
}

#[test]
fn references_into_the_pools_are_resolved_and_those_without_a_target_stay() {
    let call =
        json!({"request": {"model": "x", "temperature": 0}, "response": {"ok": true}, "call_refs": [[0, 2]], "call_key": "messages"});
    let event = |refs: Value| json!({"event": "model", "input": [], "input_refs": refs, "output": {}, "call": call});
    let sample = json!({"id": 1, "epoch": 1, "messages": [user("a")], "events": [event(json!([[0, 2]])), event(json!([[0, 3], [5, 7]]))],
        "events_data": {"messages": [user("a"), user("sub"), user("c")], "calls": [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]}});
    let lines = values(&import(packed(&[sample])).unwrap(), 0);
    assert_eq!((&lines[1]["input"], &lines[1]["input_omitted"], &lines[1]["input_refs"]), (&json!([user("sub")]), &json!(1), &Value::Null));
    let request = json!({"model": "x", "temperature": 0, "messages": [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]});
    assert_eq!(lines[1]["call"], json!({"request": request, "response": {"ok": true}}));
    assert_eq!(
        (&lines[2]["input"], &lines[2]["input_omitted"], &lines[2]["input_refs"]),
        (&json!([user("c")]), &json!(2), &json!([[5, 7]]))
    );
    assert_eq!(lines[2]["call"]["request_omitted"], 2);
}

#[test]
fn long_conversations_do_not_grow_by_their_square() {
    let turns = 300;
    let events: Vec<Value> = (0..turns)
        .map(|turn| model(&format!("m{turn}"), json!((0..turn).map(|earlier| user(&format!("m{earlier}"))).collect::<Vec<_>>())))
        .collect();
    let whole = import(log(&[json!({"id": 1, "epoch": 1, "events": events})])).unwrap();
    assert!(whole.attempts[0].transcript.bytes < 300 * turns, "{}", whole.attempts[0].transcript.bytes);
}

#[test]
fn outcomes_follow_errors_cancellations_and_limits() {
    let sample = |id: u32, extra: Value| {
        let mut sample = json!({"id": id, "epoch": 1, "scores": {"s": {"value": "C"}}});
        sample.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        sample
    };
    let whole = import(log(&[
        sample(1, json!({"error": {"message": "RuntimeError('x')", "traceback": "t"}})),
        sample(2, json!({"error": {"message": "CancelledError(\"scope\")"}})),
        sample(3, json!({"limit": {"type": "message", "limit": 20}, "scores": {"s": {"value": "I"}}})),
        sample(4, json!({"scores": {}, "limit": {"type": "time"}})),
    ]))
    .unwrap();
    let ended: Vec<_> = whole.attempts.iter().map(|attempt| (attempt.outcome, attempt.score, attempt.limit.as_deref())).collect();
    assert_eq!(
        ended,
        [
            (Outcome::InfraError, Some(1.0), None),
            (Outcome::Cancelled, Some(1.0), None),
            (Outcome::Fail, Some(0.0), Some("message")),
            (Outcome::Unscored, None, Some("time")),
        ]
    );
}

#[test]
fn usage_counts_graders_and_unknown_is_not_zero() {
    let usage =
        json!({"m": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 60, "total_cost": 0.5}, "grader": {"total_tokens": 228}});
    let whole =
        import(log(&[json!({"id": 1, "epoch": 1, "model_usage": usage}), json!({"id": 2, "epoch": 1, "model_usage": {}})])).unwrap();
    assert_eq!((whole.attempts[0].usage.total_tokens, whole.attempts[0].usage.input_tokens), (Some(288), Some(10)));
    assert_eq!((whole.attempts[0].cost_usd, whole.attempts[0].usage.reasoning_tokens), (None, None));
    assert_eq!((whole.attempts[1].usage.total_tokens, whole.attempts[1].cost_usd), (None, None));
}

#[test]
fn old_spellings_are_read() {
    let mut old = header();
    old["results"] = json!({"scorer": {"name": "match"}, "metrics": {"accuracy": {"name": "accuracy", "value": 1.0}}});
    old["eval"]["config"] = json!({"max_messages": 9, "epochs": 2});
    old["eval"]["sandbox"] = json!(["docker", null]);
    old["eval"]["dataset"] = json!({"name": "d", "samples": 100, "sample_ids": [1, 2]});
    old["samples"] = json!([{"id": 1, "epoch": 1, "score": {"value": "C", "answer": "yes"}}]);
    let whole = import(old.to_string().into_bytes()).unwrap();
    assert_eq!((whole.attempts[0].outcome, whole.attempts[0].checks[0].name.as_str()), (Outcome::Pass, "match"));
    assert_eq!((whole.header.metrics[0].metric.as_str(), whole.header.metrics[0].value), ("accuracy", Some(1.0)));
    let settings = &whole.header.evaluations[0].settings;
    assert_eq!((settings["message_limit"].as_str(), settings["sandbox"].as_str()), ("9", "docker"));
    assert_eq!((whole.header.evaluations[0].planned, whole.header.evaluations[0].dataset_cases), (Some(4), Some(100)));
}

#[test]
fn a_task_is_defined_where_its_file_and_name_say() {
    let of = |fields: Value| {
        let mut log = header();
        log["eval"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let source = import(log.to_string().into_bytes()).unwrap().header.evaluations.remove(0).source;
        source.map(|source| format!("{}:{}", source.file, source.export))
    };
    assert_eq!(of(json!({"task_file": "evals/arc.py", "task_registry_name": "suite/arc_easy"})).as_deref(), Some("evals/arc.py:arc_easy"));
    assert_eq!(of(json!({"task_file": "input.py", "task_registry_name": null})).as_deref(), Some("input.py:task"));
    assert_eq!((of(json!({"task_registry_name": "suite/arc"})), of(json!({"task_file": null}))), (None, None));
}

#[test]
fn newer_versions_are_refused_with_what_can_be_read() {
    let mut newer = header();
    newer["version"] = json!(4);
    let Err(Refused::Broken(why)) = import(newer.to_string().into_bytes()) else { panic!("read") };
    assert!(why.contains("version 4") && why.contains("up to 3"), "{why}");
}

#[test]
fn a_log_without_a_header_is_running() {
    let bytes = archive(&[
        stored("_journal/start.json", header().to_string().replace("\"status\":\"success\",", "")),
        stored("samples/1_epoch_1.json", json!({"id": 1, "epoch": 1}).to_string()),
    ]);
    let whole = import(bytes).unwrap();
    assert_eq!((whole.header.status, whole.attempts.len()), (RunStatus::Running, 1));
}

#[test]
fn an_edited_score_is_the_new_one_and_branches_come_from_metadata() {
    let mut edited = header();
    edited["invalidated"] = json!(true);
    edited["metadata"] = json!({"branch": "main", "note": {"a": 1}});
    edited["samples"] = json!([{"id": 1, "epoch": 1, "scores": {"s": {"value": "I", "history": [{"value": "C"}, {"value": "I"}]}}}]);
    let whole = import(edited.to_string().into_bytes()).unwrap();
    assert!(whole.header.invalidated);
    assert_eq!(whole.attempts[0].outcome, Outcome::Fail);
    assert_eq!(whole.header.git.unwrap().branch.as_deref(), Some("main"));
    assert_eq!(whole.header.metadata["note"], json!({"a": 1}));
}

#[test]
fn a_clustered_metric_names_the_groups_of_cases() {
    let mut grouped = header();
    let metric = json!({"name": "inspect_ai/stderr", "options": {"cluster": "passage"}});
    grouped["eval"]["scorers"] = json!([{"name": "s", "metrics": [metric]}]);
    let sample = |id: u32, metadata: Value| json!({"id": id, "epoch": 1, "scores": {"s": {"value": "C"}}, "metadata": metadata});
    let samples = [
        sample(1, json!({"passage": "p 1", "x": 1})),
        sample(2, json!({"passage": 7})),
        sample(3, json!({"passage": null})),
        sample(4, json!({})),
    ];
    grouped["samples"] = json!(samples);
    let groups = |whole: Whole| whole.attempts.into_iter().map(|attempt| attempt.group).collect::<Vec<_>>();
    let wanted = [Some("p 1".to_owned()), Some("7".to_owned()), None, None];
    assert_eq!(groups(import(grouped.to_string().into_bytes()).unwrap()), wanted);
    let mut bare = grouped.clone();
    bare["samples"] = json!([]);
    let entries = samples.iter().zip(1..).map(|(sample, id)| stored(&format!("samples/{id}_epoch_1.json"), sample.to_string()));
    let entries: Vec<Entry> = std::iter::once(stored("header.json", bare.to_string())).chain(entries).collect();
    assert_eq!(groups(import(archive(&entries)).unwrap()), wanted);
    // A sample that is too big to be read whole keeps its group.
    let mut big = grouped.clone();
    big["samples"][0]["messages"] = json!([{"role": "user", "content": "x".repeat(9000)}]);
    let limits = Limits { entry_bytes_max: 4000, ..Limits::default() };
    assert_eq!(groups(import_with(big.to_string().into_bytes(), &limits).unwrap())[0].as_deref(), Some("p 1"));
    // Nobody named a key: metadata are no groups.
    grouped["eval"]["scorers"] = json!([{"name": "s", "metrics": []}]);
    assert_eq!(groups(import(grouped.to_string().into_bytes()).unwrap()), [None, None, None, None]);
}

#[test]
fn what_was_invalidated_neither_passed_nor_failed() {
    let mut marked = header();
    let by = json!({"timestamp": "2026-01-01T00:00:00Z", "author": "ada", "reason": "the tool leaked the answer", "metadata": {}});
    let sample = |id: u32, error: Value, invalidation: Value| json!({"id": id, "epoch": 1, "scores": {"s": {"value": "C"}}, "error": error, "invalidation": invalidation});
    let broke = json!({"message": "RuntimeError('x')", "traceback": ""});
    marked["samples"] = json!([
        sample(1, Value::Null, by.clone()),
        sample(2, Value::Null, Value::Null),
        sample(3, broke, by),
        sample(4, Value::Null, json!({}))
    ]);
    let whole = import(marked.to_string().into_bytes()).unwrap();
    let outcomes: Vec<Outcome> = whole.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unscored, Outcome::Pass, Outcome::InfraError, Outcome::Unscored]);
    let first = &whole.attempts[0];
    assert_eq!(first.error.as_deref(), Some("invalidated by ada: the tool leaked the answer"));
    // What the scorer said can be read, and judges nothing.
    assert_eq!((first.score, first.checks[0].passed, first.checks[0].value), (None, None, Some(1.0)));
    assert_eq!((whole.attempts[2].error.as_deref(), whole.attempts[3].error.as_deref()), (Some("RuntimeError('x')"), Some("invalidated")));
}

#[test]
fn half_surrogates_control_characters_and_pretty_printing_import() {
    let sample = r#"{ "id": "x\ud83d", "epoch": 1,
        "messages": [ { "role": "user",
            "content": "half \ud835 nul \u0000 esc \u001b[0m" } ] }"#;
    let text = String::from_utf8(log(&[])).unwrap().replace("\"samples\":[]", &format!("\"samples\":[{sample}]"));
    let whole = import(text.into_bytes()).unwrap();
    assert_eq!(whole.attempts[0].case, "x\u{fffd}");
    assert_eq!(whole.lines(0), [r#"{"role":"user","content":"half \ufffd nul \u0000 esc \u001b[0m"}"#]);
}

#[test]
fn a_sample_that_is_too_big_comes_without_its_transcript() {
    let big = json!({"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}, "model_usage": {"m": {"total_tokens": 5}},
        "messages": [{"role": "user", "content": "x".repeat(9000)}]});
    let small = json!({"id": 2, "epoch": 1, "scores": {"s": {"value": "I"}}, "messages": [user("a")]});
    let summary = json!([{"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}, "model_usage": {"m": {"total_tokens": 5}}}]);
    let archived = archive(&[
        stored("header.json", header().to_string()),
        stored("samples/1_epoch_1.json", big.to_string()),
        stored("samples/2_epoch_1.json", small.to_string()),
        stored("summaries.json", summary.to_string()),
    ]);
    let limits = Limits { entry_bytes_max: 4000, ..Limits::default() };
    for bytes in [archived, log(&[big, small])] {
        let whole = import_with(bytes, &limits).unwrap();
        assert_eq!(whole.attempts.len(), 2);
        let first = &whole.attempts[0];
        assert_eq!((first.outcome, first.usage.total_tokens, first.transcript.lines), (Outcome::Pass, Some(5), 0));
        assert_eq!(whole.attempts[1].transcript.lines, 1);
        assert!(whole.complaints[0].contains("sample 1 (epoch 1)") && whole.complaints[0].contains("4000 bytes"), "{:?}", whole.complaints);
    }
}

#[test]
fn a_header_that_is_too_big_breaks_the_log() {
    let limits = Limits { entry_bytes_max: 100, ..Limits::default() };
    for bytes in [log(&[]), packed(&[])] {
        assert!(matches!(import_with(bytes, &limits), Err(Refused::Broken(why)) if why.contains("100 bytes")));
    }
}

#[test]
fn no_id_holds_a_secret_and_names_say_what_values_are() {
    const KNOWN: &str = "hunter2hunter2";
    let of = |day: u32, secret: &str| {
        let mut log = header();
        for key in ["eval_id", "run_id", "task_id", "eval_set_id", "task", "model", "task_version", "task_file", "task_registry_name"] {
            log["eval"][key] = json!(format!("{key} {secret}"));
        }
        log["eval"]["created"] = json!(format!("2026-01-{day:02}T00:00:00+00:00"));
        log["eval"]["dataset"] = json!({"name": format!("d {secret}")});
        log["eval"]["task_args"] = json!({"api_key": "argsecret", "n": 1, "p": secret});
        log["eval"]["model_args"] = json!({"password": "margsecret", "base_url": "https://user:urlsecret@host/x"});
        log["eval"]["metadata"] = json!({"password": "metasecret", "note": {"client_secret": "deepsecret"}, "branch": secret});
        let call = json!({"event": "model", "call": {"request": {"headers": {"x-api-key": "callsecret"}}}});
        let sample = json!({"id": format!("case {secret}"), "epoch": 1, "uuid": secret, "scores": {}, "messages": [
            {"role": "assistant", "tool_calls": [{"arguments": "{\"password\": \"linesecret\"}"}]}], "events": [call]});
        log["samples"] = json!([sample]);
        import_knowing(log.to_string().into_bytes(), &Limits::default(), &Redactor::new([KNOWN.to_owned(), "other-secret".to_owned()]))
            .unwrap()
    };
    let whole = of(1, KNOWN);
    let lines = whole.lines(0).join("\n");
    let all = format!("{:?} {:?} {lines}", whole.header, whole.attempts[0]);
    for secret in [KNOWN, "argsecret", "margsecret", "urlsecret", "metasecret", "deepsecret", "callsecret", "linesecret"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    let (header, attempt) = (&whole.header, &whole.attempts[0]);
    assert_eq!((header.run_key.as_str(), header.task_id.as_deref()), ("run_id [REDACTED]", Some("task_id [REDACTED]")));
    assert_eq!((header.round.as_deref(), header.evaluations[0].id.as_str()), (Some("eval_set_id [REDACTED]"), "task [REDACTED]"));
    assert_eq!((&attempt.evaluation, &attempt.arm), (&header.evaluations[0].id, &header.arms[0].name));
    assert_eq!(
        (attempt.case.as_str(), header.arms[0].name.as_str()),
        ("case [REDACTED]", "model [REDACTED]+api_key=[REDACTED]+n=1+p=[REDACTED]")
    );
    // The same ids of another secret are the same; of the log's own id, which two logs must not share, the secret is no part.
    let (again, other, later) = (of(1, KNOWN), of(1, "other-secret"), of(2, KNOWN));
    assert_eq!((&again.header, &other.header.run_key), (header, &header.run_key));
    assert!(!header.log_id.contains("eval_id") && later.header.log_id != header.log_id, "{}", header.log_id);
}
