//! The scenarios of DECISIONS.md, to the letter.

use serde_json::json;

use super::{
    harness::{Project, statuses},
    logs::Log,
};

/// Monday one eval() of A and B, 8 cases each, all pass; Wednesday A alone; Thursday A passes, B 0 of 8; Friday A alone.
fn week() -> Project {
    let project = Project::new();
    for (run, day, task, letter) in [
        ("mon", 23, "A", "C"),
        ("mon", 23, "B", "C"),
        ("wed", 25, "A", "C"),
        ("thu", 26, "A", "C"),
        ("thu", 26, "B", "I"),
        ("fri", 27, "A", "C"),
    ] {
        Log::new(run, task, &format!("2026-11-{day}T09:00:00+00:00")).all(8, letter).put(&project);
    }
    project
}

#[test]
fn base_selection() {
    let project = week();
    let against = project.json(&["compare", "--head", "latest~1"]);
    assert_eq!(statuses(&against), [("B".to_owned(), "regressed".to_owned())]);
    assert_eq!((against["head"]["runId"].as_str(), against["base"]["runId"].as_str()), (Some("thu"), Some("mon")));
    let since = project.json(&["compare", "--since", "2026-11-24"]);
    assert_eq!(statuses(&since), [("B".to_owned(), "regressed".to_owned())]);
    assert_eq!(since["rows"][0]["base"]["run"]["runId"], "mon");
    assert_eq!(since["rows"][0]["changedAt"]["runId"], "thu");
    assert_eq!(since["rows"][0]["evidence"]["p"], 0.007_812);
    assert_eq!(since["same"], 1);
}

#[test]
fn a_log_of_another_task_is_never_the_base_of_a_partial_head() {
    let project = week();
    // Friday holds A alone: its base is Thursday, which also holds B; B is counted, not listed.
    let answer = project.json(&["compare"]);
    assert_eq!(answer["base"]["runId"], "thu");
    assert_eq!((statuses(&answer), &answer["same"], &answer["removed"]), (vec![], &json!(1), &json!(1)));
    let all = project.json(&["compare", "--all"]);
    assert_eq!(statuses(&all).len(), 2);
}

#[test]
fn what_has_not_run_since_is_said() {
    let project = week();
    let answer = project.json(&["compare", "--since", "2026-11-27"]);
    assert_eq!((&answer["notRun"], &answer["same"]), (&json!(["B"]), &json!(1)));
}

#[test]
fn cases_are_the_unit() {
    let project = Project::new();
    let day = |run: &str, day: u32, first: &str| {
        let mut log = Log::new(run, "suite", &format!("2026-11-{day}T09:00:00+00:00"));
        for case in 1..=10 {
            for epoch in 1..=10 {
                log = log.sample(case, epoch, if case == 1 { first } else { "C" });
            }
        }
        log.put(&project);
    };
    day("one", 20, "C");
    day("two", 21, "I");
    let answer = project.json(&["compare"]);
    assert_eq!(statuses(&answer), [("suite".to_owned(), "drift".to_owned())]);
    let evidence = &answer["rows"][0]["evidence"];
    assert_eq!((&evidence["n"], &evidence["p"], &evidence["verdict"]), (&json!(10), &json!(1.0), &json!("inconclusive")));
}

#[test]
fn a_declared_threshold_decides() {
    let project = Project::new();
    project.write("runlore.toml", "[[evaluation]]\nid = \"suite\"\nthreshold = 0.8\nfamily = \"f\"\n");
    let mut good = Log::new("one", "suite", "2026-11-20T09:00:00+00:00").all(9, "C");
    good = good.sample(10, 1, "I");
    good.put(&project);
    let mut bad = Log::new("two", "suite", "2026-11-21T09:00:00+00:00").all(7, "C");
    for case in 8..=10 {
        bad = bad.sample(case, 1, "I");
    }
    bad.put(&project);
    let answer = project.json(&["compare"]);
    assert_eq!(statuses(&answer), [("suite".to_owned(), "regressed".to_owned())]);
    assert_eq!(answer["rows"][0]["head"]["threshold"], 0.8);
    assert_eq!(answer["rows"][0]["evidence"]["verdict"], "inconclusive");
    // Without the declaration the same two runs only drift: the evidence does not confirm.
    project.write("runlore.toml", "");
    assert_eq!(statuses(&project.json(&["compare"])), [("suite".to_owned(), "drift".to_owned())]);
}

#[test]
fn failures_know_their_past() {
    let project = Project::new();
    for (run, day, letters) in [("a", 1, ["C", "I", "C"]), ("b", 2, ["C", "C", "C"]), ("c", 3, ["I", "I", "I"])] {
        let mut log = Log::new(run, "t", &format!("2026-11-0{day}T09:00:00+00:00"));
        for (case, letter) in letters.iter().enumerate() {
            log = log.sample(case, 1, letter);
        }
        log.put(&project);
    }
    Log::new("d", "t", "2026-11-04T09:00:00+00:00").sample(0, 1, "I").sample(1, 1, "C").sample(2, 1, "C").sample(9, 1, "I").put(&project);
    let cells = |run: &str| {
        let answer = project.json(&["failures", run]);
        let cells = answer["cells"].as_array().unwrap().clone();
        cells
            .iter()
            .map(|cell| {
                (
                    cell["case"].as_str().unwrap().to_owned(),
                    cell["recurrence"].as_str().unwrap().to_owned(),
                    cell["failingSince"]["runId"].as_str().unwrap().to_owned(),
                )
            })
            .collect::<Vec<_>>()
    };
    let owned =
        |rows: &[(&str, &str, &str)]| rows.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect::<Vec<_>>();
    assert_eq!(cells("c"), owned(&[("0", "new", "c"), ("1", "returning", "c"), ("2", "new", "c")]));
    assert_eq!(cells("d"), owned(&[("0", "known", "c"), ("9", "first", "d")]));
}

#[test]
fn the_order_of_import_does_not_matter() {
    let answer = |order: &[usize]| {
        let project = Project::new();
        std::fs::remove_dir(project.logs()).unwrap();
        let logs = [
            Log::new("r1", "t", "2026-11-01T09:00:00+00:00").sample(1, 1, "C").errored(2, "died").status("error"),
            Log::new("r1", "t", "2026-11-02T09:00:00+00:00").sample(1, 1, "C").sample(2, 1, "I"),
            Log::new("r1", "u", "2026-11-01T09:00:00+00:00").all(2, "C"),
            Log::new("r1", "u", "2026-11-01T09:00:00+00:00").all(2, "I").model("other/model"),
        ];
        for index in order {
            let path = project
                .write(&format!("in/{index}.json"), logs[*index].text().replace("r1-u-2026-11-01T09:00:00+00:00", &format!("log-{index}")));
            let ran = project.run(&["import", path.to_str().unwrap()]);
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        }
        let mut show = project.json(&["show"]);
        // Numbers are given on arrival, and kept.
        show["evals"].as_array_mut().unwrap().iter_mut().for_each(|eval| eval["number"] = json!(0));
        show.to_string()
    };
    let first = answer(&[0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 3, 1]] {
        assert_eq!(answer(&order), first);
    }
}

#[test]
fn rows_beyond_the_limit_are_counted() {
    let project = Project::new();
    for (run, day, letter) in [("r1", 1, "C"), ("r2", 2, "I")] {
        for task in 0..520 {
            Log::new(run, &format!("E{task:03}"), &format!("2026-11-0{day}T09:00:00+00:00")).all(1, letter).put(&project);
        }
    }
    let answer = project.json(&["compare"]);
    assert_eq!((&answer["returned"], &answer["total"], &answer["complete"]), (&json!(500), &json!(520), &json!(false)));
    assert_eq!(answer["statuses"], json!({"regressed": 520, "infra": 0, "drift": 0, "fixed": 0, "added": 0, "removed": 0, "same": 0}));
    let text = project.run(&["compare"]).out;
    assert!(text.contains("520 regressed, 0 same"), "{text}");
}

#[test]
fn a_then_after_the_instant_names_its_run() {
    let project = Project::new();
    for (run, day, letter) in [("first", 10, "C"), ("second", 11, "I")] {
        Log::new(run, "t", &format!("2026-11-{day}T09:00:00+00:00")).all(1, letter).put(&project);
    }
    let later = project.run(&["compare", "--since", "2026-11-01"]).out;
    assert!(later.contains("pass 1/1 (first counted 2026-11-10 09:00, first)"), "{later}");
    let earlier = project.run(&["compare", "--since", "2026-11-10T12:00:00Z"]).out;
    assert!(earlier.contains("pass 1/1") && !earlier.contains("first counted"), "{earlier}");
}

#[test]
fn failures_of_two_arms_are_told_apart() {
    let project = Project::new();
    for model in ["mock/a", "mock/b"] {
        Log::new("r1", "t", "2026-11-01T09:00:00+00:00").all(1, "I").model(model).put_as(&project, &model.replace('/', "-"));
    }
    let text = project.run(&["failures"]).out;
    assert!(text.contains("fail t / 1 / mock/a (0/1)") && text.contains("fail t / 1 / mock/b (0/1)"), "{text}");
    Log::new("r2", "t", "2026-11-02T09:00:00+00:00").all(1, "I").model("mock/a").put(&project);
    assert!(project.run(&["failures"]).out.contains("fail t / 1 (0/1)"));
}

#[test]
fn the_base_is_found_behind_any_number_of_other_tasks() {
    let project = Project::new();
    Log::new("first", "W", "2026-11-01T09:00:00+00:00").all(8, "C").put(&project);
    for number in 0..500 {
        let created = format!("2026-11-{:02}T{:02}:00:00+00:00", 2 + number / 24, number % 24);
        Log::new(&format!("other{number}"), &format!("task{}", number % 7), &created).all(1, "C").put(&project);
    }
    Log::new("last", "W", "2026-11-28T09:00:00+00:00").all(8, "I").put(&project);
    let answer = project.json(&["compare"]);
    assert_eq!((answer["base"]["runId"].as_str(), statuses(&answer)), (Some("first"), vec![("W".to_owned(), "regressed".to_owned())]));
}

#[test]
fn an_import_says_which_runs_there_are_in_the_end() {
    let project = Project::new();
    // The retry's file comes first by name, so it makes a run of its own until the log that it retries is read.
    for (file, id, run, day, cases) in [("a", "second", "retry", 2, 3), ("b", "first", "origin", 1, 2)] {
        let log = Log::new(run, "suite", &format!("2026-11-0{day}T09:00:00+00:00")).all(cases, "C").text();
        let mut log: serde_json::Value = serde_json::from_str(&log).unwrap();
        log["eval"]["task_id"] = serde_json::json!("same");
        log["eval"]["eval_id"] = serde_json::json!(id);
        project.write(&format!("logs/{file}.json"), log.to_string());
    }
    let said = project.run(&["import"]).out;
    assert!(said.starts_with("2 logs of 2 files, in 1 run: 5 attempts read (passed 5,"), "{said}");
    assert_eq!(project.json(&["runs-list"])["runs"][0]["counts"]["passed"], 3);
}

#[test]
fn the_base_is_of_the_same_model_where_there_is_one() {
    let project = Project::new();
    for (run, day, model, letter) in
        [("good1", 1, "a/good", "C"), ("weak1", 2, "a/weak", "I"), ("good2", 3, "a/good", "C"), ("weak2", 4, "a/weak", "I")]
    {
        Log::new(run, "t", &format!("2026-11-0{day}T09:00:00+00:00")).all(3, letter).model(model).put(&project);
    }
    let answer = project.json(&["compare"]);
    assert_eq!((answer["base"]["runId"].as_str(), &answer["same"]), (Some("weak1"), &json!(1)));
    // A model that never ran before is held against what did.
    Log::new("new1", "t", "2026-11-05T09:00:00+00:00").all(3, "C").model("a/new").put(&project);
    assert_eq!(project.json(&["compare"])["base"]["runId"], "weak2");
    let note = project.json(&["history"])["note"].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("several arms")), "{note}");
}
