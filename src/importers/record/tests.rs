//! Run records: what is read, what is refused, and that no bytes can break the reader.

use std::{collections::BTreeMap, io::Cursor};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    domain::{
        attempt::Attempt,
        extras::{AnalysisSource, Answer, ContextUse, Pick, SkillFile},
        log::{LogHeader, RunStatus, Source},
        outcome::Outcome,
        time::Timestamp,
    },
    importers::{Input, Item, Limits, Refused, beside::Beside, open},
    telemetry::redaction::Redactor,
};

/// Files beside a record, in memory.
#[derive(Default)]
struct Files {
    names: Vec<String>,
    texts: BTreeMap<String, String>,
}

impl Files {
    fn of(files: &[(&str, &str)]) -> Self {
        let texts: BTreeMap<String, String> = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Self { names: texts.keys().cloned().collect(), texts }
    }
}

impl Beside for Files {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn modified(&self, _: &str) -> Option<Timestamp> {
        Some(Timestamp::from_millis(5_000))
    }

    fn open(&self, name: &str) -> std::io::Result<Box<dyn Input + '_>> {
        let text = self.texts.get(name).ok_or(std::io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(text.as_bytes())))
    }
}

struct Read {
    header: LogHeader,
    extras: crate::domain::extras::Extras,
    attempts: Vec<Attempt>,
    complaints: Vec<String>,
}

fn read_with(bytes: &[u8], files: &Files, limits: &Limits) -> Result<Read, Refused> {
    let redactor = Redactor::patterns_only();
    let opened = open(Box::new(Cursor::new(bytes)), files, limits, &redactor)?;
    let mut read = Read { header: opened.header, extras: opened.extras, attempts: Vec::new(), complaints: Vec::new() };
    for item in opened.items {
        match item.map_err(Refused::Broken)? {
            Item::Attempt(attempt) => read.attempts.push(*attempt),
            Item::Complaint(complaint) => read.complaints.push(complaint),
        }
    }
    Ok(read)
}

fn read(record: &Value, files: &[(&str, &str)]) -> Result<Read, String> {
    read_with(record.to_string().as_bytes(), &Files::of(files), &Limits::default()).map_err(|refused| refused.to_string())
}

/// As little as a script has to write.
fn small() -> Value {
    json!({
        "schemaVersion": 1, "runId": "nightly 7", "createdAt": "2026-03-01T02:00:00+02:00",
        "evals": [{"id": "sum", "attempts": [
            {"case": "a", "arm": "m", "outcome": "pass"},
            {"case": "b", "arm": "m", "outcome": "fail", "checks": [{"name": "exact", "passed": false, "reason": "got 5"}]},
        ]}],
    })
}

#[test]
fn a_small_record_is_enough() {
    let read = read(&small(), &[]).unwrap();
    assert_eq!((read.header.run_key.as_str(), read.header.status), ("nightly 7", RunStatus::Completed));
    assert_eq!(read.header.created_at, Timestamp::parse("2026-03-01T00:00:00Z").unwrap());
    let shown: Vec<_> = read.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.outcome, attempt.epoch)).collect();
    assert_eq!(shown, [("a", Outcome::Pass, 1), ("b", Outcome::Fail, 1)]);
    assert_eq!(read.attempts[1].checks[0].reason.as_deref(), Some("got 5"));
}

#[test]
fn everything_that_a_record_holds_is_read() {
    let mut record = small();
    let more = json!({
        "status": "failed", "git": {"sha": "abc1234", "branch": "main", "dirty": true}, "round": "r1", "tags": ["t"], "metadata": {"job": 7},
        "error": "stopped", "reportPath": "reports/7.html", "invalidated": true, "ancestors": ["def5678"],
        "arms": [{"name": "m", "role": "control", "factors": {"model": "x"}}],
        "metrics": [{"evaluation": "sum", "scorer": "s", "name": "s", "reducer": null, "metric": "mean", "value": 0.5}],
        "skillFiles": [{"skill": "sql", "file": "SKILL.md", "bytes": 10, "sha256": "00"}],
        "pairs": [{"evaluation": "sum", "question": "clearer?", "a": "one", "b": "two", "picked": "a", "pickedSwapped": "tie", "judge": "j"}],
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record["evals"][0]["source"] = json!({"file": "evals/sum.py", "export": "sum"});
    record["evals"][0]["cells"] = json!([{"arm": "m", "counts": {"passed": 9, "failed": 0, "infra": 0, "unscored": 0, "missing": 1}}, {"arm": "n", "counts": {"passed": 0, "failed": 0, "infra": 0, "unscored": 0, "missing": 2}}]);
    record["evals"][0]["attempts"][0] = json!({
        "attempt": "one", "case": "a", "arm": "m", "n": 3, "outcome": "pass", "answers": [{"question": "polite?", "answer": "yes", "passed": true, "judge": "j"}],
        "skillReads": [{"skill": "sql", "file": "SKILL.md", "reads": 2, "firstTurn": 1}], "context": {"tokensPeak": 900, "windowTokens": 1000},
        "transcript": {"file": "transcripts/x.jsonl", "messages": 1}, "workingMs": 5, "uuid": "u",
    });
    record["evals"][0]["attempts"][1]["attempt"] = json!("two");
    let files = [
        ("transcripts/x.jsonl", "{\"role\":\"user\"}\nplain\n"),
        ("analysis/saved/a.json", "{\"createdAt\": \"2026-03-02T00:00:00Z\", \"x\": 1}"),
        ("analysis/cached/b.md", "# B\n"),
        ("analysis/c.json", "{"),
    ];
    let read = read(&record, &files).unwrap();
    assert_eq!((read.header.error.as_deref(), read.header.invalidated, read.header.round.as_deref()), (Some("stopped"), true, Some("r1")));
    assert_eq!(read.header.report_path.as_deref(), Some("reports/7.html"));
    assert_eq!(read.header.evaluations[0].source, Some(Source { file: "evals/sum.py".into(), export: "sum".into() }));
    assert_eq!(read.header.evaluations[0].planned_by_arm, BTreeMap::from([("m".to_owned(), 10), ("n".to_owned(), 2)]));
    assert_eq!(read.header.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["m", "n"]);
    assert_eq!(read.extras.skill_files, [SkillFile { skill: "sql".into(), file: "SKILL.md".into(), bytes: 10, sha256: "00".into() }]);
    assert_eq!((read.extras.pairs[0].picked, read.extras.pairs[0].picked_swapped), (Pick::A, Some(Pick::Tie)));
    assert_eq!(read.extras.ancestors, ["def5678"]);
    let analyses: Vec<_> =
        read.extras.analyses.iter().map(|one| (one.file.as_str(), one.source, one.created_at.rfc3339(), one.doc.get())).collect();
    let saved = ("a.json", AnalysisSource::Saved, "2026-03-02T00:00:00Z".to_owned(), "{\"createdAt\": \"2026-03-02T00:00:00Z\", \"x\": 1}");
    assert_eq!(analyses, [("b.md", AnalysisSource::Cached, "1970-01-01T00:00:05Z".to_owned(), "\"# B\""), saved]);
    assert_eq!(read.complaints.len(), 1, "{:?}", read.complaints);
    let attempt = &read.attempts[0];
    assert_eq!((attempt.epoch, attempt.label.as_deref(), attempt.transcript.lines, attempt.transcript.messages), (3, Some("one"), 2, 1));
    assert_eq!(attempt.transcript.page(0, 9).unwrap(), ["{\"role\":\"user\"}", "\"plain\""]);
    assert_eq!(attempt.context, Some(ContextUse { tokens_peak: 900, window_tokens: Some(1000) }));
    assert_eq!(
        attempt.answers,
        [Answer { question: "polite?".into(), answer: Some("yes".into()), passed: Some(true), judge: Some("j".into()) }]
    );
}

#[test]
fn what_does_not_fit_says_where() {
    let wrong = |path: &str, value: Value| {
        let mut record = small();
        let (parent, name) = path.rsplit_once('/').unwrap();
        record.pointer_mut(parent).unwrap()[name] = value;
        read(&record, &[]).err().unwrap()
    };
    let rows = [
        ("/schemaVersion", json!(2), "the run record has schemaVersion 2; this runlore reads up to 1"),
        ("/runId", json!(" "), "the run record's runId must have 1 to 256 bytes and no control character"),
        ("/runId", json!("latest"), "the run record's runId latest reads as a reference"),
        ("/runId", json!("latest~3"), "the run record's runId latest~3 reads as a reference"),
        ("/arms", json!([{"name": "m"}, {"name": "n"}, {"name": "m"}]), "the run record has the arm m twice, at arms[2]"),
        ("/arms", json!([{"name": ""}]), "the run record does not fit its schema at arms[0].name: it must not be empty"),
        (
            "/arms",
            json!([{"name": "m", "role": "x"}]),
            "the run record does not fit its schema at arms[0].role: it must be control or variant",
        ),
        ("/evals/0/id", json!(""), "the run record does not fit its schema at evals[0].id: it must not be empty"),
        ("/evals/0/cells", json!([{"arm": ""}]), "the run record does not fit its schema at evals[0].cells[0].arm: it must not be empty"),
        ("/creator", json!("me"), "the run record does not fit its schema at creator: unknown field `creator`"),
        ("/evals/0/threshold", json!(80), "the threshold of evaluation sum is no rate: give one from 0 to 1"),
    ];
    for (path, value, sentence) in rows {
        assert!(wrong(path, value).starts_with(sentence), "{path}");
    }
    let attempt = wrong("/evals/0/attempts/1/outcom", json!("pass"));
    assert!(attempt.contains("of evaluation sum does not fit its schema at outcom: unknown field `outcom`"), "{attempt}");
    let cost = wrong("/evals/0/attempts/1/costUsd", json!(-0.5));
    assert!(cost.ends_with("of evaluation sum does not fit its schema at costUsd: it must not be negative"), "{cost}");
    let arm = wrong("/evals/0/attempts/1/arm", json!(" "));
    assert!(arm.ends_with("of evaluation sum does not fit its schema at arm: it must not be empty"), "{arm}");
    let cut = small().to_string();
    let cut = read_with(&cut.as_bytes()[..cut.len() - 3], &Files::default(), &Limits::default()).err().unwrap();
    assert!(cut.to_string().contains("cut off"), "{cut}");
}

#[test]
fn a_transcript_that_cannot_be_read_is_said_and_the_attempt_stands() {
    for name in ["transcripts/gone.jsonl", "transcripts/../../etc/passwd", "/etc/passwd"] {
        let mut record = small();
        record["evals"][0]["attempts"][1]["transcript"] = json!({"file": name});
        let read = read(&record, &[("transcripts/a.jsonl", "{}")]).unwrap();
        assert_eq!((read.attempts.len(), read.attempts[1].transcript.lines, read.complaints.len()), (2, 0, 1));
        assert!(read.complaints[0].ends_with("there is no such file in transcripts/ beside the record"), "{:?}", read.complaints);
    }
}

#[test]
fn nothing_of_a_file_is_lost_without_a_word() {
    let refused = |text: &str| read_with(text.as_bytes(), &Files::default(), &Limits::default()).err().map(|refused| refused.to_string());
    let whole = small().to_string();
    assert_eq!(refused(&format!("{whole} \n")), None);
    for more in ["x", "{}", "]", &whole] {
        let why = refused(&format!("{whole}\n{more}")).unwrap();
        assert!(why.contains("more follows there") && why.contains(&(whole.len() + 1).to_string()), "{why}");
    }
    for (name, spelled) in [("evals", r#""\u0065vals""#), ("attempts", r#""\u0061ttempts""#)] {
        let escaped = whole.replace(&format!("\"{name}\""), spelled);
        let why = refused(&escaped).unwrap();
        assert!(why.contains("with escapes"), "{name}: {why}");
    }
}

#[test]
fn secrets_and_long_texts_are_taken_out_on_the_way_in() {
    let mut record = small();
    record["evals"][0]["attempts"][0]["output"] = json!(format!("sk-ant-api03-{} {}", "A".repeat(40), "x".repeat(5000)));
    record["metadata"] = json!({"api_key": "hunter22hunter22"});
    let read = read(&record, &[]).unwrap();
    let output = read.attempts[0].output.clone().unwrap();
    assert!(output.starts_with("[REDACTED]") && output.ends_with("bytes cut]") && output.len() < 2100, "{output}");
    assert_eq!(read.header.metadata["api_key"], "[REDACTED]");
}

#[test]
fn secrets_in_escapes_are_taken_out_too() {
    let secret = r"postgres:\/\/bob:hunter22x@db\/x password\u003dhunter22x";
    let mut record = small();
    record["metadata"] = json!({"url": "SECRET"});
    record["evals"][0]["attempts"][1] = json!({
        "case": "b", "arm": "m", "outcome": "fail", "input": "SECRET", "output": "SECRET", "error": "SECRET",
        "checks": [{"name": "exact", "passed": false, "reason": "SECRET", "answer": "SECRET"}],
        "transcript": {"file": "transcripts/x.jsonl"},
    });
    let text = record.to_string().replace("SECRET", secret);
    let line = format!("{{\"k\":\"{secret}\"}}");
    let files = Files::of(&[("transcripts/x.jsonl", &line), ("analysis/a.json", &line)]);
    let read = read_with(text.as_bytes(), &files, &Limits::default()).unwrap();
    let safe = "postgres://bob:[REDACTED]@db/x password=[REDACTED]";
    let attempt = &read.attempts[1];
    let texts = [&attempt.input, &attempt.output, &attempt.error, &attempt.checks[0].reason, &attempt.checks[0].answer];
    assert!(texts.iter().all(|text| text.as_deref() == Some(safe)), "{texts:?}");
    assert_eq!(read.header.metadata["url"], safe);
    let line = format!("{{\"k\":\"{safe}\"}}");
    assert_eq!(attempt.transcript.page(0, 9).unwrap(), [line.as_str()]);
    assert_eq!(read.extras.analyses[0].doc.get(), line);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_bytes_break_the_reader(cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6)) {
        let mut bytes = small().to_string().into_bytes();
        for (place, byte, how) in cuts {
            let at = place.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let small = Limits { entry_bytes_max: 600, ..Limits::default() };
        let _ = read_with(&bytes, &Files::default(), &small);
    }
}
