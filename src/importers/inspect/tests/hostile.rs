//! Files that lie, are cut off, or are no logs at all.

use proptest::prelude::*;

use super::{
    FORMATS,
    crafted::{Entry, archive, frames, header, log, stored},
    import, import_with,
};
use crate::importers::{Limits, Refused};

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FORMATS}/{name}")).unwrap()
}

fn refused(bytes: &[u8]) -> Refused {
    import(bytes.to_vec()).err().unwrap()
}

#[test]
fn what_is_no_log_is_skipped_with_a_reason() {
    for (bytes, reason) in [
        (b"".as_slice(), "no JSON, no archive"),
        (b"hello", "no JSON, no archive"),
        (b"[1,2]", "no JSON, no archive"),
        (b"{\"evalId\":1,\"results\":{}}", "no eval log: JSON without \"eval\" and \"status\""),
        (b"{}", "no eval log: JSON without \"eval\" and \"status\""),
        (b"{\"a\":", "no eval log: the file ends"),
    ] {
        let Refused::NotALog(why) = refused(bytes) else { panic!("{reason}") };
        assert!(why.starts_with(reason), "{why}");
    }
    let other = archive(&[stored("word/document.xml", "<x/>")]);
    assert!(matches!(refused(&other), Refused::NotALog(why) if why.contains("header.json")));
}

#[test]
fn a_log_that_is_cut_off_says_so() {
    let whole = file("generated/inspect/basic_epochs.eval");
    let Refused::Broken(why) = refused(&whole[..whole.len() / 2]) else { panic!("no complaint") };
    assert!(why.contains("cut off"), "{why}");
    let whole = file("generated/inspect/basic_epochs_json.json");
    let Refused::Broken(why) = refused(&whole[..whole.len() / 2]) else { panic!("no complaint") };
    assert!(why.contains("cut off"), "{why}");
}

#[test]
fn bytes_are_counted_while_they_inflate() {
    let zeros = vec![b' '; 30_000_000];
    let mut bomb = frames("samples/1_epoch_1.json", &[&zeros]);
    bomb.declared = 10;
    let mut honest = frames("samples/2_epoch_1.json", &[&zeros]);
    honest.declared = 30_000_000;
    let bytes = archive(&[stored("header.json", header().to_string()), bomb, honest]);
    assert!(bytes.len() < 20_000);
    let limits = Limits { entry_bytes_max: 1_000_000, ..Limits::default() };
    let whole = import_with(bytes.clone(), &limits).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len(), &whole.broken), (0, 2, &None));
    assert!(whole.complaints[1].contains("samples/2_epoch_1.json inflates past 1000000 bytes"), "{:?}", whole.complaints);
    let limits = Limits { log_bytes_max: 500_000, ..Limits::default() };
    let broken = import_with(bytes, &limits).unwrap().broken.unwrap();
    assert!(broken.contains("500000 inflated bytes"), "{broken}");
}

#[test]
fn entries_are_counted() {
    let many: Vec<Entry> = (0..65_000).map(|number| stored(&format!("samples/{number}"), "")).collect();
    assert!(matches!(refused(&archive(&many)), Refused::Broken(why) if why.contains("65000 entries") && why.contains("60000")));
    let limits = Limits { entries_max: 2, ..Limits::default() };
    let samples: Vec<_> = (0..3).map(|id| serde_json::json!({"id": id, "epoch": 1})).collect();
    assert!(matches!(import_with(log(&samples), &limits), Err(Refused::Broken(why)) if why.contains("more than 2 samples")));
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    let sample = format!(r#"{{"id":1,"epoch":1,"messages":[{{"role":"user","x":{deep}}},{{"role":"user"}}]}}"#);
    let bytes = archive(&[stored("header.json", header().to_string()), stored("samples/1_epoch_1.json", sample)]);
    let whole = import(bytes).unwrap();
    assert_eq!((whole.attempts[0].transcript.lines, whole.complaints.len()), (2, 1));
    assert!(whole.lines(0)[0].contains("nested deeper"));
    let much = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let text =
        String::from_utf8(log(&[])).unwrap().replace("\"samples\":[]", &format!("\"metadata\":{{\"x\":{much}}},\"samples\":[{much}]"));
    let whole = import(text.into_bytes()).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (0, 1));
}

#[test]
fn bytes_that_are_no_utf8_are_replaced_in_samples_and_refused_in_headers() {
    let sample = b"{\"id\":1,\"epoch\":1,\"messages\":[{\"content\":\"\xff\xfe\"}]}".to_vec();
    let bytes = archive(&[stored("header.json", header().to_string()), stored("samples/1_epoch_1.json", sample)]);
    let whole = import(bytes).unwrap();
    assert_eq!(whole.lines(0), ["{\"content\":\"\u{fffd}\u{fffd}\"}"]);
    assert!(whole.complaints[0].contains("no UTF-8"), "{:?}", whole.complaints);
    let mut bad = header().to_string().into_bytes();
    let place = bad.windows(4).position(|window| window == b"task").unwrap();
    bad[place] = 0xff;
    for bytes in [archive(&[stored("header.json", bad.clone())]), bad] {
        assert!(matches!(refused(&bytes), Refused::Broken(why) if why.contains("not UTF-8")));
    }
}

#[test]
fn a_damaged_sample_leaves_the_others() {
    let mut damaged = frames("samples/1_epoch_1.json", &[b"{\"id\":1,\"epoch\":1}"]);
    damaged.crc ^= 1;
    let good = stored("samples/2_epoch_1.json", "{\"id\":2,\"epoch\":1}");
    let strange = stored("samples/3_epoch_1.json", "[1]");
    let whole = import(archive(&[stored("header.json", header().to_string()), damaged, good, strange])).unwrap();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 2));
    assert!(whole.complaints[0].starts_with("samples/1_epoch_1.json cannot be read"), "{:?}", whole.complaints);
}

/// Imports to the end, whatever the bytes are; what must not happen is a panic, or a file that breaks the limits.
fn survive(bytes: Vec<u8>) {
    let limits = Limits { entries_max: 1000, entry_bytes_max: 1_000_000, log_bytes_max: 10_000_000, ..Limits::default() };
    if let Ok(whole) = import_with(bytes, &limits) {
        for attempt in 0..whole.attempts.len() {
            for line in whole.lines(attempt) {
                serde_json::from_str::<serde_json::Value>(&line).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic(which in 0_usize..6, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let names = [
            "generated/inspect/empty_output.eval",
            "generated/inspect/killed_sigkill_midway.eval",
            "generated/inspect/chunked_string_ids.eval",
            "real/inspect/log_formats.eval",
            "real/inspect/log_formats.json",
            "real/inspect/log_tool_call_error.json",
        ];
        let mut bytes = file(names[which]);
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        survive(bytes);
    }

    #[test]
    fn flipped_bytes_of_what_was_packed_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:\\0NnI-u\xff".to_vec())), 1..6)) {
        let mut log = file("real/inspect/log_images.json");
        for (place, byte) in flips {
            let place = place.index(log.len());
            log[place] = byte;
        }
        let sample = stored("samples/1_epoch_1.json", log.clone());
        survive(archive(&[stored("header.json", header().to_string()), sample]));
        survive(log);
    }

    #[test]
    fn cut_files_never_panic(which in 0_usize..3, place in any::<prop::sample::Index>()) {
        let names = ["generated/inspect/no_log_samples.eval", "generated/inspect/empty_output.eval", "real/inspect/log_formats.json"];
        let bytes = file(names[which]);
        let end = place.index(bytes.len());
        survive(bytes[..end].to_vec());
    }
}
