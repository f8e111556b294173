//! Files that lie or are cut off.

use proptest::prelude::*;
use serde_json::json;

use super::{
    FORMATS, Folder,
    crafted::{STAMP, folder, line, raw_folder, results},
};
use crate::{
    importers::{Limits, Refused},
    telemetry::redaction::Redactor,
};

const DIRECTORY: &str = "generated/lm-eval/out/6jf4z2qc";
const MAIN: &str = "results_2026-11-30T11-07-32.340492.json";
/// What does most to JSON.
const SHARP: &[u8] = b"{}[]\",:\\0NnI-u\xff\n";

#[test]
fn results_that_are_cut_off_or_too_big_are_broken() {
    let mut cut = folder(&results(), &[]);
    cut.results.truncate(cut.results.len() - 1);
    let refused = |folder: &Folder, limits: &Limits| folder.import_knowing(limits, &Redactor::patterns_only()).err();
    assert!(matches!(refused(&cut, &Limits::default()), Some(Refused::Broken(why)) if why.contains("cut off")));
    let small = Limits { entry_bytes_max: 100, ..Limits::default() };
    assert!(matches!(refused(&folder(&results(), &[]), &small), Some(Refused::Broken(why)) if why.contains("more than 100 bytes")));
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    let text = line(json!(0), "strict", json!(1)).to_string().replace("{\"q\":\"2+2?\"}", &deep);
    let whole = raw_folder(&results(), text).import();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1));
    assert!(whole.values(0).iter().any(|line| line["left_out"].as_str().is_some_and(|why| why.contains("nested deeper"))));
    let much = "[".repeat(200_000);
    assert_eq!(raw_folder(&results(), format!("{{\"doc_id\":{much}\n")).import().attempts.len(), 0);
    assert_eq!(raw_folder(&results(), much).import().attempts.len(), 0);
}

#[test]
fn filters_and_metrics_are_bounded() {
    let lines: Vec<_> = (0..150).map(|filter| line(json!(0), &format!("f{filter}"), json!(1))).collect();
    let whole = folder(&results(), &lines).import();
    assert_eq!((whole.attempts.len(), whole.attempts[0].checks.len()), (1, 100));
    assert!(whole.complaints.last().unwrap().contains("30 more samples"), "{:?}", whole.complaints);
    let names: Vec<String> = (0..700).map(|name| format!("m{name}")).collect();
    let lines: Vec<_> = ["a", "b"]
        .iter()
        .map(|filter| {
            let mut wide = line(json!(0), filter, json!(1));
            names.iter().for_each(|name| wide[name] = json!(1));
            wide["metrics"] = json!(names);
            wide
        })
        .collect();
    let whole = folder(&results(), &lines).import();
    assert_eq!((whole.attempts[0].checks.len(), whole.complaints.len()), (1000, 1));
}

#[test]
fn many_tasks_and_members_take_no_time_of_their_square() {
    let tasks = |count: usize| {
        let mut many = results();
        for key in ["results", "versions", "n-shot", "n-samples", "higher_is_better", "task_hashes"] {
            many[key] = (0..count).map(|task| (format!("t{task}"), json!({"acc,none": 1}))).collect::<serde_json::Map<_, _>>().into();
        }
        folder(&many, &[])
    };
    assert_eq!(tasks(9_999).import().header.evaluations.len(), 10_000);
    let refused = tasks(10_001).import_knowing(&Limits::default(), &Redactor::patterns_only()).err();
    assert!(matches!(refused, Some(Refused::Broken(why)) if why.contains("more than 10000 tasks")));
    let mut wide = line(json!(0), "strict", json!(1));
    (0..20_000).for_each(|member| wide[format!("m{member}")] = json!(1));
    let whole = folder(&results(), &[line(json!(1), "strict", json!(1)), wide]).import();
    assert_eq!((whole.attempts.len(), whole.complaints.len()), (1, 1));
    assert!(whole.complaints[0].contains("more than 10000 members"), "{:?}", whole.complaints);
}

/// Imports to the end, whatever the bytes are; what must not happen is a panic, or a line that no reader takes.
fn survive(folder: &Folder) {
    let limits = Limits { entries_max: 1000, entry_bytes_max: 1_000_000, log_bytes_max: 10_000_000, ..Limits::default() };
    if let Ok(whole) = folder.import_knowing(&limits, &Redactor::patterns_only()) {
        (0..whole.attempts.len()).for_each(|attempt| drop(whole.values(attempt)));
    }
}

fn flip(bytes: &mut [u8], flips: &[(prop::sample::Index, u8)]) {
    for (place, byte) in flips {
        let place = place.index(bytes.len());
        bytes[place] = *byte;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        which in 0_usize..4,
        flips in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(SHARP.to_vec())), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        inserted in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut folder = Folder::of(&std::path::Path::new(FORMATS).join(DIRECTORY), MAIN);
        let names = folder.names.clone();
        let bytes = match names.get(which) {
            Some(name) => folder.files.get_mut(name).unwrap(),
            None => &mut folder.results,
        };
        flip(bytes, &flips);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Some((place, byte)) = inserted {
            let place = place.index(bytes.len() + 1);
            bytes.insert(place, byte);
        }
        survive(&folder);
    }

    #[test]
    fn any_names_beside_it_never_panic(names in prop::collection::vec("[a-z_./-]{0,12}", 0..4), main in "[a-z_./-]{0,12}") {
        let mut folder = folder(&results(), &[line(json!(0), "strict", json!(1))]);
        names.iter().for_each(|name| folder.add(&format!("samples_{name}_{STAMP}.jsonl"), "{}"));
        survive(&folder);
        folder.main = main;
        survive(&folder);
    }
}
