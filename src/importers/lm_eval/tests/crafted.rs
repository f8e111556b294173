//! Results and samples made by hand, for what no shared file shows.

use serde_json::{Value, json};

use super::{Folder, Whole};
use crate::{
    domain::{outcome::Outcome, time::Timestamp},
    importers::{Limits, Refused},
    telemetry::redaction::Redactor,
};

pub(super) const STAMP: &str = "2026-01-21T03-44-18.458309";

/// Results of one task `t` with the metric `em` and two filters.
pub(super) fn results() -> Value {
    json!({"results": {"t": {"alias": "t", "em,strict": 0.5, "em_stderr,strict": "N/A", "em,loose": 0.5}},
        "configs": {"t": {"metric_list": [{"metric": "em"}], "filter_list": [{"name": "strict"}, {"name": "loose"}]}},
        "versions": {"t": 1.0}, "config": {"model": "hf", "model_args": "pretrained=org/m"}, "date": 1_768_964_383.5, "model_name": "org/m"})
}

pub(super) fn folder(results: &Value, lines: &[Value]) -> Folder {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    raw_folder(results, text)
}

pub(super) fn raw_folder(results: &Value, samples: impl Into<Vec<u8>>) -> Folder {
    let mut folder = Folder { main: format!("results_{STAMP}.json"), results: results.to_string().into_bytes(), ..Folder::default() };
    folder.add(&format!("samples_t_{STAMP}.jsonl"), samples);
    folder
}

pub(super) fn line(id: Value, filter: &str, value: Value) -> Value {
    json!({"doc_id": id, "doc": {"q": "2+2?"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "Q: 2+2?", "arg_1": {"until": ["\n"]}}},
        "resps": [["four", "4"]], "filtered_resps": [format!("by {filter}")], "filter": filter, "metrics": ["em"], "em": value})
}

fn old(id: Value, value: f64) -> Value {
    json!({"doc_id": id, "doc": {}, "target": 4, "arguments": [["Q", {"until": []}]], "resps": [["4"]], "filtered_resps": ["4"], "em": value})
}

fn checks(whole: &Whole, attempt: usize) -> Vec<(&str, Option<bool>)> {
    whole.attempts[attempt].checks.iter().map(|check| (check.name.as_str(), check.passed)).collect()
}

#[test]
fn filters_of_one_doc_are_checks_of_one_attempt_however_far_apart() {
    let mut lines: Vec<Value> = (0..50).map(|id| line(json!(id), "loose", json!(1.0))).collect();
    lines.extend((0..50).map(|id| line(json!(id), "strict", json!(f64::from(id % 2)))));
    let whole = folder(&results(), &lines).import();
    assert_eq!((whole.attempts.len(), &whole.complaints), (50, &vec![]));
    // The task has strict first, so it decides, though loose stands first in the file.
    assert_eq!(checks(&whole, 0), [("em,strict", Some(false)), ("em,loose", Some(true))]);
    assert_eq!(whole.outcomes()[..2], [("0", 1, Outcome::Fail), ("1", 1, Outcome::Pass)]);
    assert_eq!(whole.attempts[0].checks[0].answer.as_deref(), Some("by strict"));
    let said: Vec<Value> = whole.values(0)[..3].to_vec();
    assert_eq!(said[1..], [json!({"role": "assistant", "content": "four"}), json!({"role": "assistant", "content": "4"})]);
    assert_eq!(whole.attempts[0].output.as_deref(), Some("four"));
}

#[test]
fn lines_that_name_no_filter_are_of_the_filters_in_turn() {
    let lines: Vec<Value> = [1.0, 0.0].into_iter().flat_map(|value| (0..3).map(move |id| old(json!(id), value))).collect();
    let whole = folder(&results(), &lines).import();
    assert_eq!(whole.outcomes(), [("0", 1, Outcome::Pass), ("1", 1, Outcome::Pass), ("2", 1, Outcome::Pass)]);
    assert_eq!(checks(&whole, 2), [("em,strict", Some(true)), ("em,loose", Some(false))]);
    assert_eq!((whole.attempts[0].input.as_deref(), whole.attempts[0].target.as_deref()), (Some("Q"), Some("4")));
    let twice: Vec<Value> = lines.iter().chain(&lines).cloned().collect();
    assert_eq!(folder(&results(), &twice).import().outcomes().iter().filter(|(_, epoch, _)| *epoch == 2).count(), 3);
}

#[test]
fn a_doc_that_comes_again_is_another_attempt_and_ids_keep_their_type() {
    let lines = [
        line(json!(7), "strict", json!(1)),
        line(json!("7"), "strict", json!(0)),
        line(json!(7), "strict", json!(0)),
        line(json!("x/y"), "strict", json!(true)),
    ];
    let whole = folder(&results(), &lines).import();
    assert_eq!(
        whole.outcomes(),
        [("7", 1, Outcome::Pass), ("\"7\"", 1, Outcome::Fail), ("x/y", 1, Outcome::Pass), ("7", 2, Outcome::Fail)]
    );
}

#[test]
fn what_is_neither_right_nor_wrong_is_unscored() {
    let values = [json!(0.5), json!([1.0, 0.0]), json!("N/A"), json!(null), json!({"a": 1})];
    let mut lines: Vec<Value> = values.iter().enumerate().map(|(id, value)| line(json!(id), "strict", value.clone())).collect();
    lines.push(line(json!(9), "loose", json!(1.0)));
    let whole = folder(&results(), &lines).import();
    assert!(whole.attempts.iter().all(|attempt| attempt.outcome == Outcome::Unscored), "{:?}", whole.outcomes());
    let labels: Vec<Option<&str>> = whole.attempts.iter().map(|attempt| attempt.checks[0].label.as_deref()).collect();
    assert_eq!(labels, [None, Some("[1.0,0.0]"), Some("N/A"), None, Some(r#"{"a":1}"#), None]);
    assert_eq!((whole.attempts[0].score, whole.attempts[0].checks[0].value), (Some(0.5), Some(0.5)));
    // The other filter said something, and it does not decide.
    assert_eq!(checks(&whole, 5), [("em,loose", Some(true))]);
}

#[test]
fn an_end_after_the_year_9999_is_none() {
    let mut late = results();
    (late["date"], late["total_evaluation_time_seconds"]) = (json!(253_402_300_790_i64), json!("100"));
    let header = folder(&late, &[]).import().header;
    assert_eq!((header.created_at.rfc3339().as_str(), header.completed_at), ("9999-12-31T23:59:50Z", None));
}

#[test]
fn where_less_is_better_nought_passes() {
    let mut turned = results();
    turned["higher_is_better"] = json!({"t": {"em": false}});
    let whole = folder(&turned, &[line(json!(0), "strict", json!(0.0)), line(json!(1), "strict", json!(1.0))]).import();
    assert_eq!(whole.outcomes(), [("0", 1, Outcome::Pass), ("1", 1, Outcome::Fail)]);
    assert_eq!(whole.attempts[1].score, Some(1.0));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_stands() {
    let good = |id: u32| line(json!(id), "strict", json!(1.0)).to_string();
    let nan = good(2).replace("1.0", "NaN");
    let surrogate = good(3).replace("four", "\\ud83d");
    let mut bytes = format!("\u{feff}{}\r\n\n{{\"doc_id\":1,\"doc\":\n[1]\n{{\"doc\":1}}\n{nan}\n{surrogate}\n", good(0)).into_bytes();
    bytes.extend(good(4).replace("four", "caf#").bytes().map(|byte| if byte == b'#' { 0xe9 } else { byte }));
    let whole = raw_folder(&results(), bytes).import();
    assert_eq!(whole.outcomes(), [("0", 1, Outcome::Pass), ("2", 1, Outcome::Unscored), ("3", 1, Outcome::Pass), ("4", 1, Outcome::Pass)]);
    let whys = ["EOF while parsing", "it is no object", "it has no \"doc_id\"", "bytes that are no UTF-8 were replaced"];
    assert_eq!(whole.complaints.len(), whys.len(), "{:?}", whole.complaints);
    assert!(whole.complaints.iter().zip(whys).all(|(complaint, why)| complaint.contains(why)), "{:?}", whole.complaints);
    assert!(whole.attempts[3].output.as_deref() == Some("caf\u{fffd}") && whole.attempts[2].output.as_deref() == Some("\u{fffd}"));
}

#[test]
fn long_lines_cost_themselves_alone() {
    let long = line(json!(1), "strict", json!("x".repeat(5000))).to_string();
    let text = format!("{}\n{long}\n{}", line(json!(0), "strict", json!(1)), line(json!(2), "strict", json!(1)));
    let limits = Limits { entry_bytes_max: 2000, ..Limits::default() };
    for text in [text.clone(), format!("[{}]", text.replace('\n', ","))] {
        let whole = raw_folder(&results(), text).import_knowing(&limits, &Redactor::patterns_only()).unwrap();
        assert_eq!((whole.attempts.len(), whole.complaints.len()), (2, 1));
        assert!(whole.complaints[0].contains("takes more than 2000 bytes"), "{:?}", whole.complaints);
    }
    let limits = Limits { log_bytes_max: 100, ..Limits::default() };
    let whole = raw_folder(&results(), text).import_knowing(&limits, &Redactor::patterns_only()).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1));
    assert!(whole.complaints[0].contains("only the first 100 bytes"), "{:?}", whole.complaints);
    let many: String = "{}\n".repeat(100);
    let whole = raw_folder(&results(), many).import();
    assert!(whole.complaints.len() == 21 && whole.complaints[20].contains("80 more samples"), "{:?}", whole.complaints);
}

#[test]
fn samples_in_one_list_are_read_the_same() {
    let lines = [line(json!(0), "strict", json!(1)), line(json!(1), "strict", json!(0)), line(json!(0), "loose", json!(0))];
    let whole = folder(&results(), &lines).import();
    let pretty = serde_json::to_string_pretty(&lines).unwrap();
    let listed = raw_folder(&results(), pretty.clone()).import();
    assert_eq!((listed.outcomes(), listed.values(0)), (whole.outcomes(), whole.values(0)));
    let cut = raw_folder(&results(), &pretty.as_bytes()[..pretty.len() - 20]).import();
    assert_eq!((cut.attempts.len(), cut.complaints.len()), (2, 1));
    assert!(cut.complaints[0].contains("samples are missing: the file ends"), "{:?}", cut.complaints);
}

#[test]
fn results_alone_keep_the_figures_and_plan_nothing() {
    let mut alone = folder(&results(), &[]);
    alone.names.clear();
    let whole = alone.import();
    assert_eq!((whole.attempts.len(), whole.header.metrics.len(), whole.header.evaluations[0].planned), (0, 3, None));
    assert_eq!(whole.complaints, ["no samples beside it: only the reported metrics are kept"]);
    let mut more = results();
    more["results"]["u"] = json!({"acc,none": 1});
    let whole = folder(&more, &[]).import();
    assert!(whole.complaints[0].starts_with("no samples beside it for 1 of its 2 tasks (u):"), "{:?}", whole.complaints);
}

#[test]
fn samples_that_are_gone_or_of_no_task_are_told() {
    let mut gone = folder(&results(), &[]);
    gone.files.clear();
    assert!(gone.import().complaints[0].starts_with("the samples of t cannot be read, so they are missing"));
    let mut other = folder(&results(), &[line(json!(0), "strict", json!(1))]);
    other.add(&format!("samples_v_{STAMP}.jsonl"), old(json!(0), 1.0).to_string());
    let ids: Vec<String> = other.import().header.evaluations.iter().map(|evaluation| evaluation.id.clone()).collect();
    assert_eq!((ids, other.import().attempts.len()), (vec!["t".to_owned(), "v".to_owned()], 2));
    let mut twice = folder(&results(), &[line(json!(0), "strict", json!(1))]);
    twice.add(&format!("samples_t_{STAMP}.json"), "");
    let whole = twice.import();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1), "{:?}", whole.complaints);
}

#[test]
fn samples_alone_are_no_log() {
    let lone = Folder { results: line(json!(0), "strict", json!(1)).to_string().into_bytes(), ..Folder::default() };
    let refused = lone.import_knowing(&Limits::default(), &Redactor::patterns_only()).err();
    assert!(matches!(refused, Some(Refused::NotALog(why)) if why.starts_with("samples of lm-eval")));
}

#[test]
fn a_log_is_known_by_model_and_date_else_by_its_bytes() {
    let id = |results: &Value| folder(results, &[]).import().header;
    let (first, mut other) = (id(&results()), results());
    other["config"]["limit"] = json!(3);
    assert_eq!(id(&other).log_id, first.log_id);
    other["date"] = json!(1_768_964_383.75);
    assert_ne!(id(&other).log_id, first.log_id);
    assert_eq!((first.run_key == first.log_id, first.created_at), (true, Timestamp::parse("2026-01-21T02:59:43.5Z").unwrap()));
    let mut old = Folder { results: br#"{"results":{"t":{"acc":0.5}},"versions":{"t":0},"config":{}}"#.to_vec(), ..Folder::default() };
    let whole = old.import();
    // By `sha256sum`.
    assert_eq!(whole.header.log_id, "a96ad04c88ae780efdd0fa518ae59cd1866a49af7dab2551520348721ee72d1b");
    assert_eq!(whole.header.created_at, Timestamp::from_millis(0));
    assert!(whole.complaints[0].contains("says no time"), "{:?}", whole.complaints);
    old.modified = Timestamp::parse("2023-01-02T03:04:05Z");
    let whole = old.import();
    assert_eq!((Some(whole.header.created_at), whole.complaints.len()), (old.modified, 1));
}

#[test]
fn likelihoods_and_chats_are_told_apart() {
    let chat = r#"[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]"#;
    let lines = [
        json!({"doc_id": 0, "doc": {}, "target": "1", "filter": "strict", "metrics": ["em"], "em": 1,
            "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}},
            "resps": [[["-1.5", "False"]], [["-0.5", "True"]]], "filtered_resps": [["-1.5", "False"], ["-0.5", "True"]]}),
        json!({"doc_id": 1, "doc": {}, "target": "", "filter": "strict", "metrics": ["em"], "em": 0,
            "arguments": {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": []}}}, "resps": [["yo"]], "filtered_resps": ["yo"]}),
        json!({"doc_id": 2, "doc": {}, "target": "T", "filter": "strict", "metrics": ["em"], "em": 0,
            "arguments": {"gen_args_0": {"arg_0": "text"}}, "resps": [["-7.25"]], "filtered_resps": ["-7.25"]}),
    ];
    let whole = folder(&results(), &lines).import();
    assert_eq!(
        whole.values(0)[..3],
        [
            json!({"role": "user", "content": "Q"}),
            json!({"role": "continuation", "content": " a", "response": ["-1.5", "False"]}),
            json!({"role": "continuation", "content": " b", "response": ["-0.5", "True"]})
        ]
    );
    assert_eq!(whole.attempts[0].output.as_deref(), Some(" a: -1.5\n b: -0.5"));
    assert_eq!((whole.attempts[0].checks[0].answer.as_deref(), whole.attempts[1].checks[0].answer.as_deref()), (None, Some("yo")));
    assert_eq!(whole.values(1)[0], json!({"role": "system", "content": "be brief"}));
    assert_eq!((whole.attempts[1].transcript.messages, whole.attempts[1].target.as_deref()), (3, Some("")));
    assert_eq!(whole.values(2)[1], json!({"role": "likelihood", "response": "-7.25"}));
}

#[test]
fn secrets_are_taken_out_everywhere() {
    let secret = "hunter2-hunter2";
    let mut told = line(json!(secret), secret, json!(secret));
    told["arguments"]["gen_args_0"]["arg_0"] = json!(secret);
    told["resps"] = json!([[secret]]);
    told["doc"] = json!({"q": secret});
    let mut results = results();
    results["config"]["model_args"] = json!(format!("pretrained=org/m,note={secret}"));
    results["upper_git_hash"] = json!(secret);
    let whole = folder(&results, &[told]).import_knowing(&Limits::default(), &Redactor::new([secret.to_owned()])).unwrap();
    assert_eq!(whole.attempts.len(), 1);
    let all = format!("{:?}{:?}{:?}", whole.header, whole.attempts, whole.values(0));
    assert!(!all.contains(secret) && all.contains("[REDACTED]"), "{all}");
}

#[test]
fn a_file_is_read_twice_and_no_more_whatever_its_order() {
    let filters = ["strict", "loose"];
    let lines: Vec<Value> = filters.iter().flat_map(|filter| (0..3000).map(|id| line(json!(id), filter, json!(1)))).collect();
    let again: Vec<Value> = lines.iter().chain(&lines).cloned().collect();
    for lines in [lines, again] {
        let folder = folder(&results(), &lines);
        let size = folder.files.values().map(|bytes| bytes.len() as u64).sum::<u64>();
        assert_eq!(folder.import().attempts.len(), lines.len() / 2);
        // Each filter's window may reach into what is not its own.
        assert!(size > 1_000_000 && folder.read.get() < size * 3, "{} of {size}", folder.read.get());
    }
}
