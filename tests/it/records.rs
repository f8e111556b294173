//! Run records: written, read, moved and exported by the real binary.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use super::{
    harness::{Project, fixtures, shared},
    logs::Log,
};

/// Every file below a directory with its bytes.
fn files(top: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(top).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn run_ids(project: &Project) -> Vec<String> {
    let answer = project.json(&["runs-list", "--limit", "100"]);
    answer["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

fn export(project: &Project, run: &str, to: &str) {
    let ran = project.run(&["export", run, "--to", to]);
    assert_eq!(ran.code, 0, "{run}: {}", ran.err);
}

/// A record that uses every field.
fn whole(run: &str) -> Value {
    let text = fs::read_to_string(fixtures().join("record/run.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["runId"] = json!(run);
    record
}

fn write(project: &Project, directory: &str, record: &Value) {
    project.write(&format!("{directory}/run.json"), record.to_string());
    project.write(
        &format!("{directory}/transcripts/base.jsonl"),
        "{\"role\":\"user\",\"content\":\"1+1\"}\n{\"role\":\"assistant\"}\n{\"event\":\"end\"}\n",
    );
    project.write(&format!("{directory}/analysis/saved/why.json"), "{\"createdAt\":\"2026-03-02T00:00:00Z\",\"cause\":\"carry\"}");
    project.write(&format!("{directory}/analysis/cached/notes.md"), "# Notes\n");
}

#[test]
fn a_record_is_read_whole_and_comes_back() {
    let project = Project::new();
    write(&project, ".history/a", &whole("R 1"));
    assert_eq!(run_ids(&project), ["R 1"]);
    let shown = project.json(&["show", "R 1"]);
    let eval = &shown["evals"][0];
    assert_eq!(shown["counts"], json!({"passed": 1, "failed": 1, "infra": 1, "unscored": 0, "missing": 1}));
    assert_eq!(
        (&shown["metadata"]["job"], &shown["pairs"][0]["picked"], &shown["skillFiles"][0]["bytes"]),
        (&json!(7), &json!("b"), &json!(120))
    );
    assert_eq!((&eval["settings"]["epochs"], &eval["scorerDigest"], &eval["family"]), (&json!("1"), &json!("s"), &json!("maths")));
    assert_eq!((&shown["reportPath"], &eval["source"]["export"]), (&json!("reports/sweep.html"), &json!("sum")));
    let attempts = eval["attempts"].as_array().unwrap();
    let keys: Vec<&str> = attempts.iter().map(|attempt| attempt["attempt"].as_str().unwrap()).collect();
    assert_eq!(keys, ["sum/1@base#1", "sum/1@skilled#1", "sum/2@skilled#1"]);
    assert_eq!((&attempts[0]["score"], &attempts[1]["context"]["tokensPeak"]), (&json!(0.30000000000000004), &json!(900)));
    // Long texts are not in an agent's answer.
    assert!(attempts.iter().all(|attempt| attempt.get("output").is_none() && attempt.get("input").is_none()));
    let page = project.json(&["transcript", "R 1", "sum/1@base#1"]);
    assert_eq!((&page["total"], &page["lines"][2]), (&json!(3), &json!("{\"event\":\"end\"}")));
    let analysis = project.json(&["analysis", "R 1"]);
    let named: Vec<_> =
        analysis["entries"].as_array().unwrap().iter().map(|entry| (entry["file"].clone(), entry["source"].clone())).collect();
    assert_eq!(named.len(), 2);
    assert!(named.contains(&(json!("why.json"), json!("saved"))) && named.contains(&(json!("notes.md"), json!("cached"))));
    assert_eq!(project.json(&["analysis", "--file", "why.json"])["entries"][0]["doc"]["cause"], "carry");
}

#[test]
fn analyses_come_in_pages_newest_first() {
    let project = Project::new();
    write(&project, ".history/a", &whole("R"));
    for day in 3..8 {
        project.write(&format!(".history/a/analysis/saved/d{day}.json"), format!("{{\"createdAt\":\"2030-03-0{day}T00:00:00Z\"}}"));
    }
    let mut seen = Vec::new();
    let mut words: Vec<String> = ["analysis", "--limit", "2"].map(str::to_owned).to_vec();
    loop {
        let answer = project.json(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(answer["total"], 7);
        seen.extend(answer["entries"].as_array().unwrap().iter().map(|entry| entry["file"].as_str().unwrap().to_owned()));
        let Some(cursor) = answer["nextCursor"].as_str() else { break };
        words.truncate(3);
        words.extend(["--cursor".to_owned(), cursor.to_owned()]);
    }
    assert_eq!(seen[..5], ["d7.json", "d6.json", "d5.json", "d4.json", "d3.json"]);
    assert_eq!(seen.len(), 7);
    assert!(project.run(&["analysis", "--cursor", "x"]).err.contains("cursor"));
    assert_eq!(project.json(&["analysis", "--file", "none.md"])["note"], "Run R has no analysis named \"none.md\".");
}

#[test]
fn export_import_export_gives_the_same_bytes() {
    let project = Project::demo();
    write(&project, ".history/a", &whole("R/1 é"));
    let made = fs::read_dir(shared().join("formats/generated/inspect")).into_iter().flatten();
    for file in made.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|extension| extension == "eval")) {
        fs::copy(&file, project.logs().join(file.file_name().unwrap())).unwrap();
    }
    let other = Project::new();
    let ids = run_ids(&project);
    assert!(ids.len() > 5);
    for id in &ids {
        export(&project, id, "out");
    }
    fs::rename(project.path().join("out"), other.path().join(".history")).unwrap();
    assert_eq!(run_ids(&other), ids);
    for id in &ids {
        export(&other, id, "out");
        let counts = |project: &Project| project.json(&["show", id, "--attempts", "false"])["counts"].clone();
        assert_eq!(counts(&project), counts(&other), "{id}");
    }
    let (first, second) = (files(&other.path().join(".history")), files(&other.path().join("out")));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs");
    }
    assert!(first.keys().any(|name| name.contains("transcripts/")) && first.keys().any(|name| name.ends_with("analysis/cached/notes.md")));
}

#[test]
fn an_export_replaces_only_an_older_one() {
    let project = Project::new();
    Log::new("r1", "t", "2026-11-01T09:00:00+00:00").all(2, "C").put(&project);
    export(&project, "r1", "out");
    export(&project, "r1", "out");
    project.write("out/r1/run.json", "{\"runId\": \"other\"}");
    let ran = project.run(&["export", "r1", "--to", "out"]);
    assert_eq!((ran.code, ran.err.contains("holds something else")), (1, true), "{}", ran.err);
    // A record beside the run's own log counts nothing twice.
    export(&project, "r1", ".history");
    let shown = project.json(&["show", "r1", "--attempts", "false"]);
    assert_eq!((&shown["counts"]["passed"], run_ids(&project).len()), (&json!(2), 1));
    for file in fs::read_dir(project.logs()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(project.json(&["show", "r1", "--attempts", "false"])["counts"]["passed"], 2);
}

#[test]
fn a_scratch_run_is_shown_until_one_is_recorded() {
    let project = Project::new();
    let mut second = whole("S2");
    second["createdAt"] = json!("2026-03-05T10:00:00Z");
    write(&project, ".runlore/runs/s1", &whole("S1"));
    write(&project, ".runlore/runs/s2", &second);
    let history = project.json(&["history"]);
    assert_eq!(history["note"], "There is no recorded run; these are scratch runs.");
    assert_eq!(history["runs"].as_array().unwrap().len(), 2);
    let ran = project.run(&["record", "S1"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "Recorded S1: moved .runlore/runs/s1 to .history/s1."), "{}", ran.err);
    let shown: Vec<_> = project.json(&["history"])["runs"].as_array().unwrap().iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(shown, [json!("S1")]);
    assert_eq!(project.json(&["history", "--all"])["runs"].as_array().unwrap().len(), 2);
    assert_eq!(project.json(&["analysis", "S1"])["total"], 2);
    // A recorded run replaces a scratch copy of the same id, whichever has more.
    let mut scratch = whole("S1");
    scratch["evals"][0]["attempts"].as_array_mut().unwrap().push(json!({"case": "3", "arm": "base", "outcome": "pass"}));
    write(&project, ".runlore/runs/copy", &scratch);
    let show = project.json(&["show", "S1", "--attempts", "false"]);
    assert_eq!((&show["kind"], &show["counts"]["passed"]), (&json!("recorded"), &json!(1)));
    let again = project.run(&["record", "S1"]);
    assert_eq!((again.code, again.err.contains("is recorded already")), (1, true), "{}", again.err);
}

#[test]
fn a_change_beside_a_record_is_seen() {
    let project = Project::new();
    write(&project, ".history/a", &whole("R"));
    assert_eq!(project.json(&["transcript", "R", "sum/1@base#1"])["total"], 3);
    project.write(".history/a/transcripts/base.jsonl", "{\"role\":\"user\"}\n");
    assert_eq!(project.json(&["transcript", "R", "sum/1@base#1"])["total"], 1);
    fs::remove_file(project.path().join(".history/a/analysis/saved/why.json")).unwrap();
    assert_eq!(project.json(&["analysis", "R"])["total"], 1);
    project.write(".history/a/run.json", whole("R").to_string().replace("\"outcome\"", "\"outcom\""));
    let ran = project.run(&["import"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("does not fit its schema") && ran.err.contains("unknown field `outcom`"), "{}", ran.err);
}

/// The record holds what every importer maps: each field of the maps in FORMATS.md has a place in the schema.
#[test]
fn every_mapped_field_has_a_place() {
    const PLACES: &[(&str, &[&str])] = &[
        ("run id", &["/properties/runId"]),
        ("created", &["/properties/createdAt"]),
        ("git sha", &["/$defs/Git/properties/sha"]),
        ("status", &["/properties/status", "/properties/invalidated", "/properties/error"]),
        ("evaluation id", &["/$defs/Eval/properties/id", "/$defs/Eval/properties/version"]),
        ("evaluation", &["/$defs/Eval/properties/id"]),
        (
            "attempt key",
            &["/$defs/AttemptRecord/properties/attempt", "/$defs/AttemptRecord/properties/uuid", "/$defs/AttemptRecord/properties/n"],
        ),
        ("outcome", &["/$defs/AttemptRecord/properties/outcome"]),
        ("infra error", &["/$defs/AttemptRecord/properties/error", "/$defs/AttemptRecord/properties/retries"]),
        ("checks", &["/$defs/AttemptRecord/properties/checks", "/properties/metrics"]),
        (
            "tokens",
            &["/$defs/Usage/properties/inputTokens", "/$defs/Usage/properties/totalTokens", "/$defs/Usage/properties/cacheReadTokens"],
        ),
        ("cost", &["/$defs/AttemptRecord/properties/costUsd"]),
        ("duration", &["/$defs/AttemptRecord/properties/durationMs", "/$defs/AttemptRecord/properties/workingMs"]),
        ("model", &["/$defs/ArmRecord/properties/name", "/$defs/ArmRecord/properties/factors"]),
        ("stack", &["/$defs/ArmRecord/properties/factors", "/$defs/Eval/properties/settings", "/properties/tags", "/properties/metadata"]),
        ("transcript", &["/$defs/AttemptRecord/properties/transcript"]),
    ];
    let schema = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/run-record.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let formats = shared().join("formats/FORMATS.md");
    let text = fs::read_to_string(formats).unwrap();
    let mapped: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    let end = mapped.iter().position(|first| *first == "format").unwrap_or(mapped.len());
    let mut checked = 0;
    for field in mapped[..end].iter().filter(|field| **field != "ours").flat_map(|fields| fields.split(&['/', ','][..])).map(str::trim) {
        let (_, places) =
            PLACES.iter().find(|(name, _)| *name == field).unwrap_or_else(|| panic!("\"{field}\" has no place in the run record"));
        for place in *places {
            assert!(schema.pointer(place).is_some(), "{field}: {place} is not in the schema");
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}

fn note(project: &Project) -> String {
    project.json(&["history"])["note"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_export_keeps_what_others_wrote_beside_it() {
    let project = Project::new();
    Log::new("r1", "t", "2026-11-01T09:00:00+00:00").all(2, "C").put(&project);
    export(&project, "r1", ".history");
    project.write(".history/r1/analysis/saved/why.md", "because\n");
    project.write(".history/r1/NOTES.md", "mine\n");
    // The run's own log counts, and the analysis beside its record is the run's all the same.
    assert_eq!(project.json(&["analysis", "r1"])["entries"][0]["doc"], "because");
    export(&project, "r1", ".history");
    let held = files(&project.path().join(".history/r1"));
    assert_eq!(held.get("analysis/saved/why.md").map(Vec::as_slice), Some(&b"because\n"[..]));
    assert_eq!(held.get("NOTES.md").map(Vec::as_slice), Some(&b"mine\n"[..]));
    assert_eq!(held.keys().filter(|name| name.starts_with("transcripts/")).count(), 2);
    assert_eq!(project.json(&["show", "r1", "--attempts", "false"])["counts"]["passed"], 2);
}

#[test]
fn a_record_beside_fewer_logs_than_it_holds_is_said() {
    let project = Project::new();
    let log = |task: &str| Log::new("r1", task, "2026-11-01T09:00:00+00:00").all(2, "C");
    log("a").put(&project);
    log("b").put(&project);
    export(&project, "r1", ".history");
    assert_eq!(note(&project), "");
    let gone =
        fs::read_dir(project.logs()).unwrap().map(|file| file.unwrap().path()).find(|path| path.to_string_lossy().contains("_b_")).unwrap();
    fs::remove_file(&gone).unwrap();
    for _ in 0..2 {
        assert!(note(&project).contains("this record of run r1 holds 4 attempts; 2 count"), "{}", note(&project));
    }
    log("b").put(&project);
    assert_eq!(note(&project), "");
    assert_eq!(project.json(&["show", "r1", "--attempts", "false"])["counts"]["passed"], 4);
}

#[test]
fn links_beside_a_record_lead_nowhere() {
    let project = Project::new();
    let outside = project.write("outside/secret.txt", "root:x:0:0\n");
    write(&project, ".history/a", &whole("R"));
    for name in ["transcripts/base.jsonl", "analysis/saved/link.md"] {
        let _ = fs::remove_file(project.path().join(".history/a").join(name));
        std::os::unix::fs::symlink(&outside, project.path().join(".history/a").join(name)).unwrap();
    }
    let said = note(&project);
    assert!(said.contains("there is no such file in transcripts/"), "{said}");
    let answers = [project.json(&["analysis", "R"]).to_string(), project.run(&["transcript", "R", "sum/1@base#1"]).err, said];
    assert!(answers.iter().all(|answer| !answer.contains("root:x")), "{answers:?}");
    assert_eq!(project.json(&["show", "R", "--attempts", "false"])["counts"]["passed"], 1);
}

#[test]
fn what_could_not_be_read_is_said_as_long_as_it_holds() {
    let project = Project::new();
    write(&project, ".history/a", &whole("R"));
    fs::remove_file(project.path().join(".history/a/transcripts/base.jsonl")).unwrap();
    for _ in 0..2 {
        assert!(note(&project).contains("names the transcript transcripts/base.jsonl"), "{}", note(&project));
        let ran = project.run(&["import"]);
        assert_eq!((ran.code, ran.err.contains("names the transcript")), (1, true), "{}", ran.err);
    }
    write(&project, ".history/a", &whole("R"));
    assert_eq!(note(&project), "");
    for broken in ["{", "", "[]", "<<<<<<< HEAD\n{}", "{\"runId\": \"R\"}"] {
        project.write(".history/b/run.json", broken);
        assert!(note(&project).contains(".history/b/run.json"), "{broken}: {}", note(&project));
    }
}
