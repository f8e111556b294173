//! Every results file of lm-eval in ../shared/formats with its samples, imported by the binary and read back through the tools, against what
//! the harness' own statistics say.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use super::harness::{Project, shared};

const REAL: &str = "formats/real/lm-eval";
const GENERATED: &str = "formats/generated/lm-eval";

/// What decides each task whose samples are there: a metric of 0 and 1, or nothing.
const DECIDERS: [(&str, Option<&str>); 4] = [
    ("local_mc", Some("acc,none")),
    ("local_gen", Some("exact_match,strict-match")),
    ("local_ppl", None),
    ("math_perturbed_full", Some("exact_match,none")),
];

fn expected(folder: &str) -> BTreeMap<String, Value> {
    serde_json::from_str(&std::fs::read_to_string(shared().join(folder).join("EXPECTED.json")).unwrap()).unwrap()
}

/// The results files of a folder that are there, and what was said of them.
fn results(folder: &str) -> Vec<(String, Value)> {
    let said =
        expected(folder).into_iter().filter(|(name, said)| said.get("results").is_some() && shared().join(folder).join(name).exists());
    said.collect()
}

/// What was said of the samples of `task`, which stand in the directory of `name`.
fn samples(folder: &str, name: &str, task: &str) -> Option<Value> {
    let directory = name.rsplit_once('/').map(|(directory, _)| format!("{directory}/")).unwrap_or_default();
    let stem = format!("samples_{task}_2");
    expected(folder).into_iter().find(|(file, _)| file.starts_with(&directory) && file.contains(&stem)).map(|(_, said)| said)
}

fn counts(passed: u64, failed: u64, unscored: u64, missing: u64) -> Value {
    json!({"passed": passed, "failed": failed, "infra": 0, "unscored": unscored, "missing": missing})
}

/// The five counts of a task, by the mean of what decides it.
fn truth(task: &str, said: &Value, effective: u64) -> Value {
    let docs = said["distinct_doc_id"].as_u64().unwrap();
    let (_, decider) = DECIDERS.iter().find(|(name, _)| *name == task).unwrap();
    let missing = effective.saturating_sub(docs);
    let Some(decider) = decider else { return counts(0, 0, docs, missing) };
    let passed = (said["means"][decider].as_f64().unwrap() * docs as f64).round() as u64;
    counts(passed, docs - passed, 0, missing)
}

fn cells(show: &Value) -> BTreeMap<String, Value> {
    let evals = show["evals"].as_array().unwrap().iter();
    evals.map(|eval| (eval["id"].as_str().unwrap().to_owned(), eval["cells"][0]["counts"].clone())).collect()
}

fn show(project: &Project) -> Value {
    project.json(&["show", "--limit", "1000"])
}

/// Imports each results file of a folder; how many tasks had samples.
fn hold(folder: &str) -> usize {
    let mut held = 0;
    for (name, said) in results(folder) {
        let project = Project::new();
        let ran = project.run(&["import", shared().join(folder).join(&name).to_str().unwrap()]);
        let shown = show(&project);
        let found = cells(&shown);
        let mut bare = 0;
        for (task, counts) in &found {
            match samples(folder, &name, task) {
                Some(rows) => {
                    let effective = said["n-samples"][task]["effective"].as_u64().unwrap();
                    assert_eq!(*counts, truth(task, &rows, effective), "{name} {task}");
                    held += 1;
                }
                None => {
                    bare += 1;
                    assert!(counts.is_null(), "{name} {task}: {counts}");
                }
            }
        }
        let groups = said["groups"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(shown["total"], json!(said["results"].as_object().unwrap().len() - groups), "{name}");
        assert_eq!((ran.code, ran.err.contains("no samples beside it")), (i32::from(bare > 0), bare > 0), "{name}: {}", ran.err);
    }
    held
}

#[test]
fn generated_results_count_as_the_harness_says() {
    assert_eq!(hold(GENERATED), 3);
}

#[test]
fn real_results_count_as_the_harness_says() {
    assert_eq!((results(REAL).len(), hold(REAL)), (2, 1));
}

fn copied(from: &Path, project: &Project, change: impl Fn(&str, String) -> String) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        project.write(&format!("copy/mine_{name}"), change(&name, std::fs::read_to_string(&path).unwrap()));
    }
}

#[test]
fn a_score_that_is_flipped_moves_one_count() {
    let from = shared().join(GENERATED).join("out/6jf4z2qc");
    let (same, flipped) = (Project::new(), Project::new());
    copied(&from, &same, |_, text| text);
    copied(&from, &flipped, |name, text| {
        // The first line of the deciding filter: a fail becomes a pass.
        if name.starts_with("samples_local_gen") { text.replacen("\"exact_match\": 0.0", "\"exact_match\": 1.0", 1) } else { text }
    });
    for project in [&same, &flipped] {
        assert_eq!(project.run(&["import", "copy"]).code, 0);
    }
    let (before, after) = (cells(&show(&same)), cells(&show(&flipped)));
    assert_eq!((&before["local_gen"], &after["local_gen"]), (&counts(0, 5, 0, 0), &counts(1, 4, 0, 0)));
    assert_eq!((&before["local_mc"], &before["local_ppl"]), (&after["local_mc"], &after["local_ppl"]));
}

#[test]
fn a_copy_is_no_second_run_and_every_line_can_be_read() {
    let project = Project::new();
    copied(&shared().join(GENERATED).join("out/6jf4z2qc"), &project, |_, text| text);
    for folder in [shared().join(GENERATED), project.path().join("copy")] {
        assert_eq!(project.run(&["import", folder.to_str().unwrap()]).code, 0);
    }
    assert_eq!(project.json(&["runs-list"])["total"], 1);
    let shown = show(&project);
    let attempts: Vec<&Value> = shown["evals"].as_array().unwrap().iter().flat_map(|eval| eval["attempts"].as_array().unwrap()).collect();
    assert_eq!(attempts.len(), 15);
    for attempt in attempts {
        let page = project.json(&["transcript", "latest", attempt["attempt"].as_str().unwrap()]);
        let lines = page["lines"].as_array().unwrap();
        assert!(lines.len() > 3 && lines.iter().all(|line| serde_json::from_str::<Value>(line.as_str().unwrap()).is_ok()));
    }
}
