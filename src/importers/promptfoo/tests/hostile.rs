//! Files that lie, are cut off, or are no results at all.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Written, file, import, import_with};
use crate::{
    domain::time::Timestamp,
    importers::{Limits, Refused},
};

fn lines() -> Vec<u8> {
    let envelope: Value = serde_json::from_slice(&file("generated/promptfoo/repeat3.json")).unwrap();
    let rows: Vec<String> = envelope["results"]["results"].as_array().unwrap().iter().map(Value::to_string).collect();
    rows.join("\n").into_bytes()
}

#[test]
fn results_that_are_cut_off_say_so() {
    let whole = file("generated/promptfoo/repeat3.json");
    let Err(Refused::Broken(why)) = import(&whole[..whole.len() / 2]) else { panic!("no complaint") };
    assert!(why.contains("cut off"), "{why}");
    let Err(Refused::Broken(why)) = import(&b"{\"promptIdx\":0,\"testIdx\":0,\"vars\":{\"a"[..]) else { panic!("no complaint") };
    assert!(why.contains("cut off"), "{why}");
    let mixed = [lines(), b"\nnot json\n".to_vec()].concat();
    assert!(matches!(import(mixed), Err(Refused::Broken(why)) if why.contains("no JSON at byte")));
}

#[test]
fn what_is_counted_is_bounded() {
    let limits = Limits { entries_max: 5, ..Limits::default() };
    for bytes in [file("generated/promptfoo/repeat3.json"), lines()] {
        let refused = import_with(bytes, &limits, &Written(None)).err().unwrap();
        assert!(matches!(refused, Refused::Broken(why) if why.contains("more than 5 rows")));
    }
    let rows: Vec<Value> = (0..1001).map(|id| json!({"provider": id.to_string(), "success": true})).collect();
    let many = json!({"evalId": "e", "results": {"results": rows}}).to_string();
    assert!(matches!(import(many), Err(Refused::Broken(why)) if why.contains("more than 1000 pairs")));
    let long = json!({"evalId": "e", "config": {"description": "x".repeat(5000)}, "results": {"results": []}}).to_string();
    let limits = Limits { entry_bytes_max: 1000, ..Limits::default() };
    assert!(matches!(import_with(long, &limits, &Written(None)), Err(Refused::Broken(why)) if why.contains("more than 1000 bytes")));
}

#[test]
fn rows_that_are_none_leave_the_others() {
    let good = json!({"provider": "p", "success": true});
    let text = format!(r#"{{"evalId":"eval-2026-01-01T00:00:00","results":{{"results":[7,{good},null,[1],{{"provider":"p",}},{good}]}}}}"#);
    assert!(matches!(import(text), Err(Refused::Broken(_))));
    let text = format!(r#"{{"evalId":"eval-2026-01-01T00:00:00","results":{{"results":[7,{good},null,[1],{{"success":nope}},{good}]}}}}"#);
    let whole = import(text).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (2, 4));
}

#[test]
fn nesting_and_bad_text_are_borne() {
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    let text = format!(
        r#"{{"evalId":"eval-2026-01-01T00:00:00","results":{{"results":[{{"provider":"p","success":true,"vars":{{"a":{deep}}},
        "response":{{"output":{deep}}},"prompt":{{"raw":"\ud83d"}}}}]}}}}"#
    );
    let whole = import(text).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1));
    assert!(whole.lines(0)[0].contains('\u{fffd}') && whole.lines(0)[1].contains("nested deeper"), "{:?}", whole.lines(0));
    let mut bytes =
        br#"{"evalId":"eval-2026-01-01T00:00:00","results":{"results":[{"provider":"p","success":true,"response":{"output":"~"}}]}}"#
            .to_vec();
    let place = bytes.iter().position(|byte| *byte == b'~').unwrap();
    bytes[place] = 0xff;
    let whole = import(bytes).unwrap();
    assert_eq!(whole.attempts[0].output.as_deref(), Some("\u{fffd}"));
    assert!(whole.complaints[0].contains("no UTF-8"), "{:?}", whole.complaints);
}

/// Imports to the end, whatever the bytes are; what must not happen is a panic, a shared key or a line that is no JSON.
fn survive(bytes: Vec<u8>) {
    let limits = Limits { entries_max: 1000, entry_bytes_max: 1_000_000, log_bytes_max: 10_000_000, ..Limits::default() };
    if let Ok(whole) = import_with(bytes, &limits, &Written(Some(Timestamp::from_millis(0)))) {
        let mut keys: Vec<_> = whole.attempts.iter().map(|one| (one.case.clone(), one.arm.clone(), one.epoch)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), whole.attempts.len());
        for attempt in 0..whole.attempts.len() {
            for line in whole.lines(attempt) {
                serde_json::from_str::<Value>(&line).unwrap();
            }
        }
    }
}

fn bytes(which: usize) -> Vec<u8> {
    match which {
        0 => file("generated/promptfoo/repeat3.json"),
        1 => file("generated/promptfoo/exported_latest.json"),
        2 => lines(),
        _ => table(),
    }
}

/// A table alone.
fn table() -> Vec<u8> {
    let cell = |pass: bool, reason: &str| json!({"pass": pass, "text": format!("{reason}\n---\nx"), "prompt": "p", "provider": "m", "gradingResult": {"pass": pass, "reason": reason}});
    let line = |q: &str| json!({"vars": [q], "test": {"vars": {"q": q}}, "outputs": [cell(true, "ok"), cell(false, "no"), {"pass": false, "text": "error"}]});
    let head = json!({"vars": ["q"], "prompts": [{"label": "a"}, {"label": "b"}, {"label": "c"}]});
    json!({"version": 2, "results": {"version": 2, "results": [], "table": {"head": head, "body": [line("1"), line("2"), line("1")]}}})
        .to_string()
        .into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(which in 0_usize..4, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = bytes(which);
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        survive(bytes);
    }

    #[test]
    fn put_in_and_cut_out_bytes_never_panic(
        which in 0_usize..4,
        puts in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:\\0NnI-u\xff\n".to_vec())), 0..6),
        cut in any::<prop::sample::Index>(),
        gap in 0_usize..40,
    ) {
        let mut bytes = bytes(which);
        for (place, byte) in puts {
            bytes.insert(place.index(bytes.len()), byte);
        }
        let start = cut.index(bytes.len());
        let end = (start + gap).min(bytes.len());
        bytes.drain(start..end);
        survive(bytes);
    }

    #[test]
    fn cut_files_never_panic(which in 0_usize..4, place in any::<prop::sample::Index>()) {
        let bytes = bytes(which);
        let end = place.index(bytes.len());
        survive(bytes[..end].to_vec());
    }
}
