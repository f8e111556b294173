//! Evidence, from outside: what stands beside a difference, whether a quoted number still holds, and what a difference takes.
//!
//! Promises: every expected number is worked out beside the test.
//! Does not: test the formulas (the library's own tests do).

use serde_json::{Value, json};

use super::{
    harness::{Project, statuses},
    logs::Log,
};

/// A log of one task whose cases end with these letters.
fn log(run: &str, task: &str, day: u32, letters: &str) -> Log {
    let start = Log::new(run, task, &format!("2026-11-{day:02}T09:00:00+00:00"));
    letters.chars().enumerate().fold(start, |log, (case, letter)| match letter {
        'E' => log.errored(case, "the sandbox died"),
        letter => log.sample(case, 1, &letter.to_string()),
    })
}

fn evidence(answer: &Value) -> &Value {
    &answer["rows"][0]["evidence"]
}

/// The handle of an answer's first row, which must be there.
fn handle(answer: &Value) -> String {
    evidence(answer)["handle"].as_str().unwrap_or_else(|| panic!("no handle: {answer}")).to_owned()
}

#[test]
fn p_is_adjusted_over_all_rows_whatever_is_listed() {
    let project = Project::new();
    let passed = "C".repeat(12);
    for (task, letters) in [("A", "IIIIIIIICCCC"), ("B", "IIIIIICCCCCC"), ("C", "IICCCCCCCCCC"), ("D", passed.as_str())] {
        log("one", task, 1, &passed).put(&project);
        log("two", task, 2, letters).put(&project);
    }
    let answer = project.json(&["compare"]);
    assert_eq!(answer["family"], json!({"size": 2, "compared": 4, "method": "benjamini_hochberg"}));
    // 2/2^8 and 2/2^6; times two over one, and times two over two. Two changes of twelve are never found, so C is in no family.
    let of = |name: &str| answer["rows"].as_array().unwrap().iter().find(|row| row["id"] == name).unwrap()["evidence"].clone();
    let both = |name: &str| (of(name)["p"].as_f64(), of(name)["adjustedP"].as_f64());
    assert_eq!((both("A"), both("B")), ((Some(0.007_812), Some(0.015_62)), (Some(0.031_25), Some(0.031_25))));
    assert_eq!((both("C").1, of("C")["mdeMethod"].as_str()), (None, Some("mcnemar_power")));
    let row = |id: &str, status: &str| (id.to_owned(), status.to_owned());
    assert_eq!(statuses(&answer), [row("A", "regressed"), row("B", "regressed"), row("C", "drift")]);
    // Over another family the same row has another adjusted p.
    assert_eq!(evidence(&project.json(&["compare", "--filter", "A"]))["adjustedP"], 0.007_812);
}

#[test]
fn what_was_measured_in_another_way_is_not_comparable() {
    let project = Project::new();
    log("one", "t", 1, &"C".repeat(10)).put(&project);
    let head = log("two", "t", 2, &"I".repeat(10));
    let path = project.write("logs/two.json", head.text());
    let answer = project.json(&["compare"]);
    assert_eq!(statuses(&answer), [("t".to_owned(), "regressed".to_owned())]);
    // Each change to the same log, and what is said of it.
    let changes = [
        ("\"name\":\"match\",\"options\":{}", "\"name\":\"match\",\"options\":{\"strict\":true}", "changed since the base: scorer"),
        ("\"samples\":10,", "\"samples\":10,\"shuffled\":false,", ""),
        ("\"name\":\"t\",\"sample_ids\":[0,", "\"name\":\"t\",\"sample_ids\":[77,0,", "changed since the base: dataset"),
    ];
    for (was, is, reason) in changes {
        let text = head.text();
        // serde_json writes an object's members by name.
        assert!(text.contains(was) || reason.is_empty(), "{was}: {text}");
        std::fs::write(&path, text.replace(was, is)).unwrap();
        let answer = project.json(&["compare"]);
        let found = evidence(&answer);
        if reason.is_empty() {
            assert_eq!(found["verdict"], "confirmed");
            continue;
        }
        assert_eq!(
            (&found["verdict"], &found["reason"], &found["n"], &found["p"]),
            (&json!("not_comparable"), &json!(reason), &json!(10), &Value::Null)
        );
        // No evidence, so it can only have drifted; its rates stand.
        assert_eq!((statuses(&answer)[0].1.as_str(), &answer["rows"][0]["head"]["rate"]), ("drift", &json!(0.0)));
        assert_eq!(answer["suite"]["verdict"], "not_comparable");
        assert!(answer["suite"]["reason"].as_str().unwrap().contains("1 of 1 evaluations left out"), "{answer}");
        assert!(project.run(&["compare"]).out.contains(reason));
    }
}

#[test]
fn another_judge_or_temperature_is_said() {
    let project = Project::new();
    for (run, day, judge) in [("one", 1, "m/old"), ("two", 2, "m/new")] {
        let roles = format!("\"model_roles\":{{\"grader\":{{\"model\":\"{judge}\"}}}},\"model\":\"mockllm/model\",\"model_args\"");
        let text = log(run, "t", day, &"C".repeat(8)).text().replace("\"model\":\"mockllm/model\",\"model_args\"", &roles);
        assert!(text.contains("grader"));
        project.write(&format!("logs/{run}.json"), text);
    }
    let answer = project.json(&["compare", "--all"]);
    assert_eq!(answer["note"], "One row is not comparable: it was measured in another way, and cannot be said to be worse or better.");
    assert_eq!(evidence(&answer)["reason"], "changed since the base: role.grader m/old -> m/new");
}

#[test]
fn errors_that_could_turn_the_sign_leave_it_open() {
    let project = Project::new();
    // Eight of twenty lost, p = 2/2^8; eight more errored at the base: all failed, the difference is 0.
    log("one", "t", 1, &("C".repeat(20) + &"E".repeat(8))).put(&project);
    log("two", "t", 2, &("I".repeat(8) + &"C".repeat(20))).put(&project);
    let answer = project.json(&["compare"]);
    let found = evidence(&answer);
    // Against the head: 20/28 - 28/28; for it: 20/28 - 20/28.
    assert_eq!((&found["bounds"], &found["n"], &found["p"]), (&json!([-0.2857, 0.0]), &json!(20), &json!(0.007_812)));
    assert_eq!((&found["verdict"], &found["reason"]), (&json!("inconclusive"), &json!("its sign depends on how 8 errored attempts count")));
    assert_eq!(statuses(&answer)[0].1, "drift");
    let text = project.run(&["compare"]).out;
    assert!(text.contains("inconclusive: its sign depends on how 8 errored attempts count (n=20, p=0.007812"), "{text}");
}

#[test]
fn a_margin_says_whether_nothing_got_worse() {
    let project = Project::new();
    log("one", "t", 1, &"C".repeat(120)).put(&project);
    log("two", "t", 2, &"C".repeat(120)).put(&project);
    let of = |margin: &str| project.json(&["compare", "--all", "--margin", margin])["rows"][0]["evidence"]["margin"].clone();
    // Nothing changed: of 120 cases none turned, so at 95% not more than 1 - 0.05^(1/120) = 0.0247 of all do.
    assert_eq!(of("0.05"), json!({"bounds": [-0.0247, 0.0247], "method": "clopper_pearson", "verdict": "equivalent"}));
    assert_eq!(of("0.01")["verdict"], "inconclusive");
    assert!(project.json(&["compare", "--all"])["rows"][0].get("evidence").is_none(), "nothing differs, and nothing was asked");
    assert_eq!(project.json(&["compare", "--margin", "0.05"])["suite"]["margin"]["verdict"], "equivalent");
    let ran = project.run(&["compare", "--margin", "2"]);
    assert!(ran.code == 2 && ran.err.contains("2 is not a number from 0 to 1"), "{}", ran.err);
}

#[test]
fn a_quoted_number_is_verified() {
    let project = Project::demo();
    for words in [
        &["compare"][..],
        &["compare", "--since", "2026-11-22", "--margin", "0.1"],
        &["compare", "--by", "case"],
        &["compare", "--filter", "refund"],
    ] {
        let answer = project.json(words);
        let suite = answer["suite"]["handle"].as_str().unwrap().to_owned();
        for word in [handle(&answer), suite] {
            let found = project.json(&["verify", &word]);
            assert_eq!((&found["equal"], &found["changed"], &found["now"]), (&json!(true), &json!([]), &found["then"]), "{words:?}");
        }
        assert_eq!(project.json(&["verify", &handle(&answer)])["then"]["difference"], evidence(&answer)["difference"]);
    }
    let ran = project.run(&["verify", &handle(&project.json(&["compare"]))]);
    assert!(ran.code == 0 && ran.out.starts_with("equal: refund_policy"), "{}{}", ran.out, ran.err);
    let ran = project.run(&["verify", "ev1_nothing"]);
    assert!(ran.code == 1 && ran.err.contains("is no handle of an evidence"), "{}", ran.err);
}

#[test]
fn a_number_that_no_longer_holds_is_told_and_exits_with_one() {
    let project = Project::new();
    log("one", "t", 1, &"C".repeat(10)).put(&project);
    let path = project.write("logs/two.json", log("two", "t", 2, "IIIIIIIICC").text());
    let word = handle(&project.json(&["compare"]));
    // The log is corrected: two fewer failed.
    std::fs::write(&path, log("two", "t", 2, "IIIIIICCCC").text()).unwrap();
    let ran = project.run(&["verify", &word, "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &found["equal"], &found["then"]["difference"], &found["now"]["difference"]),
        (1, &json!(false), &json!(-0.8), &json!(-0.6))
    );
    let changed: Vec<&str> = found["changed"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        ["difference", "interval", "p", "adjustedP"].iter().all(|name| changed.contains(name)) && !changed.contains(&"n"),
        "{changed:?}"
    );
    assert!(project.run(&["verify", &word]).out.contains("difference: -0.8 -> -0.6"));
    // The evaluation is gone from the run, then the run itself.
    std::fs::write(&path, log("two", "u", 2, "CC").text()).unwrap();
    let found: Value = serde_json::from_str(&project.run(&["verify", &word, "--json"]).out).unwrap();
    assert_eq!((&found["changed"], &found["now"]), (&json!(["row"]), &Value::Null));
    std::fs::remove_file(&path).unwrap();
    let ran = project.run(&["verify", &word]);
    assert!(ran.code == 1 && ran.out.contains("run two is gone"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_failure_that_was_always_there_now_and_then_is_told_from_a_new_one() {
    let project = Project::new();
    // Case 0: pass, fail, pass, fail: one of three failed before, so one more is no surprise (1/3). Case 1 never failed.
    for (day, letters) in [(1, "CC"), (2, "IC"), (3, "CC"), (4, "II")] {
        log(&format!("r{day}"), "t", day, letters).put(&project);
    }
    let cells = project.json(&["failures"])["cells"].clone();
    let told = |rows: &Value| -> Vec<(String, Value)> {
        rows.as_array().unwrap().iter().map(|row| (row["case"].as_str().unwrap().to_owned(), row["withinFlakeRate"].clone())).collect()
    };
    let mut of_failures = told(&cells);
    of_failures.sort_by(|a, b| a.0.cmp(&b.0));
    let wanted = [("0".to_owned(), json!(true)), ("1".to_owned(), json!(false))];
    assert_eq!(of_failures, wanted);
    assert_eq!(told(&project.json(&["history", "--by", "case"])["rows"]), wanted);
    // Too little is known after two runs.
    assert_eq!(told(&project.json(&["failures", "r2"])["cells"]), [("0".to_owned(), Value::Null)]);
    let text = project.run(&["failures"]).out;
    assert!(text.contains("as often as it fails now and then"), "{text}");
}

#[test]
fn a_plan_comes_from_the_history() {
    let project = Project::demo();
    let answer = project.json(&["plan-run", "--evaluation", "refund", "--difference", "0.5"]);
    let row = &answer["rows"][0];
    assert_eq!((answer["total"].as_u64(), row["exist"].as_u64(), row["from"]["runs"].as_u64()), (Some(1), Some(10), Some(6)));
    assert!(row["cases"].as_u64().is_some_and(|cases| cases > 10) && row["enough"] == false, "{row}");
    assert!(row["costUsd"].as_f64().is_some_and(|cost| cost > 0.0) && row["durationMs"].as_u64().is_some(), "{row}");
    let text = project.run(&["plan-run"]).out;
    assert!(text.contains("to detect a difference of 0.1 with 80% power"), "{text}");
    let ran = project.run(&["plan-run", "--power", "1"]);
    assert!(ran.code == 2 && ran.err.contains("1 is not a number from 0.5 to 0.99"), "{}", ran.err);
}
