//! The catalog's views from outside: the command prints what the tool says, byte for byte; goals keep their p values; words are found.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use super::{
    harness::{Project, command, fixtures, ran, shared},
    http::service::Service,
};

/// Two arms on twelve cases of two evaluations, three attempts each: rates by thirds, so that the test flips signs.
fn duel() -> Project {
    let project = Project::new();
    let attempt = |evaluation: &str, case: usize, arm: &str, n: usize| {
        let passed = if arm == "new" { !case.is_multiple_of(4) || n == 1 } else { case.is_multiple_of(3) && n < 3 };
        let score = 0.1 * case as f64 + if arm == "new" { 0.25 + 0.01 * (case * case) as f64 } else { 0.0 };
        json!({"attempt": format!("{evaluation}/{case}@{arm}#{n}"), "case": case.to_string(), "arm": arm, "n": n,
            "outcome": if passed { "pass" } else { "fail" }, "input": format!("question {case}"), "target": "yes",
            "output": if passed { "yes" } else { "no" },
            "checks": [{"name": "exact", "passed": passed, "reason": if passed { Value::Null } else { json!("said no") }},
                {"name": "f1", "kind": "score", "value": score}]})
    };
    let evaluation = |id: &str| {
        let attempts: Vec<Value> = (0..12)
            .flat_map(|case| ["new", "old"].into_iter().flat_map(move |arm| (1..=3).map(move |n| (case, arm, n))))
            .map(|(case, arm, n)| attempt(id, case, arm, n))
            .collect();
        json!({"id": id, "dataset": {"id": format!("hub/{id}"), "digest": "d", "cases": 12}, "attempts": attempts})
    };
    let record = json!({"schemaVersion": 1, "runId": "duel", "status": "completed", "createdAt": "2026-03-01T10:00:00Z", "round": "sweep",
        "tags": ["nightly"], "arms": [{"name": "new", "role": "variant", "factors": {"model": "m2"}}, {"name": "old", "role": "control"}],
        "evals": [evaluation("one"), evaluation("two")]});
    project.write(".history/duel/run.json", record.to_string());
    let goal = |id: &str, metric: &str, margin: f64| {
        format!("[[goal]]\nid = \"{id}\"\narm = \"new\"\nversus = \"old\"\nmetric = \"{metric}\"\nmargin = {margin}\n")
    };
    let references = "[[reference]]\nevaluation = \"one\"\nvalue = 0.9\nkind = \"published\"\nsource = \"paper\"\nn = 12\n[[reference]]\nevaluation = \"one\"\nmetric = \"f1\"\nvalue = 0.5\n";
    let goals = goal("better", "pass", 0.0) + &goal("much-better", "pass", 0.9) + &goal("f1", "f1", 0.0) + &goal("strange", "none", 0.0);
    project.write("runlore.toml", goals + references);
    project
}

/// A view with its words on the command line and its arguments for an agent.
type View = (Vec<&'static str>, Value);

fn views() -> Vec<View> {
    vec![
        (vec!["overview"], json!({})),
        (vec!["datasets"], json!({})),
        (vec!["datasets", "--filter", "ne"], json!({"filter": "ne"})),
        (vec!["arms"], json!({})),
        (vec!["goals"], json!({})),
        (vec!["references"], json!({})),
        (vec!["metrics"], json!({})),
        (vec!["metrics", "--filter", "pass"], json!({"filter": "pass"})),
        (vec!["activity"], json!({})),
        (vec!["activity", "--limit", "2", "--since", "2020-01-01"], json!({"limit": 2, "since": "2020-01-01"})),
        (vec!["rounds"], json!({})),
        (vec!["validate"], json!({})),
        (vec!["search", "the"], json!({"query": "the"})),
        (vec!["search", "no", "--outcome", "fail", "--limit", "3"], json!({"query": "no", "outcome": "fail", "limit": 3})),
        (vec!["search", "nothing at all like this"], json!({"query": "nothing at all like this"})),
    ]
}

/// The projects of all fixtures.
fn projects() -> Vec<(String, Project)> {
    let mut out = vec![("demo".to_owned(), Project::demo()), ("duel".to_owned(), duel()), ("empty".to_owned(), Project::new())];
    for format in ["inspect", "promptfoo", "lm_eval", "junit"] {
        let made = shared().join("formats/generated").join(format);
        let Ok(files) = fs::read_dir(&made) else { continue };
        let project = Project::new();
        for file in files.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
            fs::copy(&file, project.logs().join(file.file_name().unwrap())).unwrap();
        }
        out.push((format.to_owned(), project));
    }
    out
}

/// A dataset, and an attempt of the newest run, where there are any.
fn more(project: &Project) -> Vec<(Vec<String>, Value)> {
    let mut out = Vec::new();
    let datasets = project.json(&["datasets"]);
    if let Some(id) = datasets["result"]["blocks"][0]["rows"][0]["dataset"].as_str() {
        out.push((vec!["dataset-items".to_owned(), id.to_owned()], json!({"dataset": id})));
        let items = project.json(&["dataset-items", id, "--limit", "1"]);
        if let Some(item) = items["result"]["blocks"][0]["rows"][0]["item"].as_str().filter(|item| !item.is_empty()) {
            out.push((
                vec!["dataset-items".into(), "--item".into(), item.into(), "--".into(), id.into()],
                json!({"dataset": id, "item": item}),
            ));
        }
    }
    let runs = project.json(&["runs-list", "--limit", "100"]);
    for run in runs["runs"].as_array().unwrap() {
        let run = run["runId"].as_str().unwrap();
        let shown = project.json(&["show", "--limit", "1", "--", run]);
        if let Some(key) = shown["evals"][0]["attempts"][0]["attempt"].as_str() {
            let words = ["inspect", "--item", "--", run, key].map(str::to_owned).to_vec();
            out.push((words, json!({"run": run, "attempt": key, "item": true})));
            break;
        }
    }
    out
}

#[test]
fn the_command_prints_what_the_tool_says() {
    for (name, project) in projects() {
        let extra = more(&project);
        let all: Vec<(Vec<String>, Value)> = views()
            .into_iter()
            .map(|(words, arguments)| (words.into_iter().map(str::to_owned).collect(), arguments))
            .chain(extra)
            .collect();
        let printed: Vec<(String, String)> = all
            .iter()
            .map(|(words, _)| {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let ran = project.run(&words);
                assert_eq!(ran.code, 0, "{name} {words:?}: {}", ran.err);
                (ran.out, project.json(&words).to_string())
            })
            .collect();
        let service = Service::with(project, "", &["--rate", "0"]);
        for ((words, arguments), (text, json)) in all.iter().zip(printed) {
            let tool = words[0].replace('-', "_");
            let answer = service.call(&tool, arguments);
            assert_eq!(answer["content"][0]["text"].as_str().unwrap(), text, "{name} {words:?}");
            assert_eq!(answer["structuredContent"].to_string(), json, "{name} {words:?}");
            assert_eq!(answer["structuredContent"]["command"], words[0].as_str());
            told_alike(&answer["structuredContent"], &text);
        }
    }
}

/// Every short value of the JSON stands in the text.
fn told_alike(answer: &Value, text: &str) {
    for block in answer["result"]["blocks"].as_array().unwrap() {
        for line in block["lines"].as_array().into_iter().flatten() {
            assert!(
                text.contains(line.as_str().unwrap().trim_end()) || line.as_str().unwrap().contains(|c: char| c.is_control()),
                "{line}\n{text}"
            );
        }
        let columns = block["columns"].as_array().cloned().unwrap_or_default();
        for row in block["rows"].as_array().into_iter().flatten().take(60) {
            assert_eq!(row.as_object().unwrap().len(), columns.len());
            for value in row.as_object().unwrap().values() {
                let number = value.as_f64().map(|number| number.to_string());
                let said = value.as_str().map(str::to_owned).or(number).unwrap_or_else(|| value.to_string());
                let plain = said.len() < 60 && said.chars().all(|c| c.is_ascii_graphic());
                assert!(!plain || value.is_null() || value.is_boolean() || text.contains(&said), "{said}\n{text}");
            }
        }
    }
}

fn rows(answer: &Value, block: usize, column: &str) -> Vec<Value> {
    answer["result"]["blocks"][block]["rows"].as_array().unwrap().iter().map(|row| row[column].clone()).collect()
}

#[test]
fn goals_are_judged_together_and_their_p_is_kept() {
    let project = duel();
    let goals = project.json(&["goals"]);
    let status: BTreeMap<String, String> = rows(&goals, 0, "goal")
        .iter()
        .zip(rows(&goals, 0, "status"))
        .map(|(goal, status)| (goal.as_str().unwrap().to_owned(), status.as_str().unwrap().to_owned()))
        .collect();
    let wanted = [("better", "met"), ("f1", "met"), ("much-better", "missed"), ("strange", "no_data")];
    assert_eq!(status, wanted.map(|(goal, status)| (goal.to_owned(), status.to_owned())).into());
    let ps: Vec<(f64, f64)> = rows(&goals, 0, "p")
        .iter()
        .zip(rows(&goals, 0, "adjusted_p"))
        .filter_map(|(p, adjusted)| Some((p.as_f64()?, adjusted.as_f64()?)))
        .collect();
    assert!(ps.len() == 3 && ps.iter().all(|(p, adjusted)| p <= adjusted) && ps.iter().any(|(p, adjusted)| p * 2.0 <= *adjusted), "{ps:?}");
    // One goal alone is judged in the same family.
    let one = project.json(&["goals", "--goal", "better"]);
    assert_eq!(rows(&one, 0, "adjusted_p")[0], rows(&goals, 0, "adjusted_p")[0]);
    let file = project.path().join(".runlore/cache/p.jsonl");
    let kept = fs::read_to_string(&file).unwrap();
    assert_eq!(kept.lines().count(), 3, "{kept}");
    assert!(kept.lines().all(|line| line.starts_with("{\"k\":\"") && line.contains("\"p\":\"0x")), "{kept}");
    assert_eq!(project.json(&["goals"]), goals);
    assert_eq!(fs::read_to_string(&file).unwrap(), kept, "nothing is worked out twice");
    // What is kept is what is said: to the last bit, and whatever it is.
    let forged: String = kept.lines().map(|line| format!("{}\"p\":\"0x1.8p-1\"}}\n", line.split("\"p\"").next().unwrap())).collect();
    fs::write(&file, forged + "{\"k\":\"torn").unwrap();
    assert_eq!(rows(&project.json(&["goals"]), 0, "p")[0], json!(0.75));
    let unknown = project.run(&["goals", "--goal", "nope"]);
    assert!(
        unknown.code == 1 && unknown.err.contains("\"nope\" is no goal; there are better, much-better, f1, strange"),
        "{}",
        unknown.err
    );
}

#[test]
fn the_environment_names_the_p_cache_and_one_that_takes_no_writes_is_no_error() {
    let project = duel();
    let elsewhere = project.path().join("elsewhere/p.jsonl");
    let goals = |file: &str| ran(command().current_dir(project.path()).args(["goals"]).env("RUNLORE_P_CACHE", file).output().unwrap());
    let (first, second) = (goals(elsewhere.to_str().unwrap()), goals("/proc/nowhere/p.jsonl"));
    assert_eq!((first.code, second.code, &first.out), (0, 0, &second.out));
    assert!(elsewhere.is_file() && !project.path().join(".runlore/cache").exists());
    project.write(".runlore/config.toml", "[goals]\np_cache = \"mine.jsonl\"\n");
    assert_eq!(project.run(&["goals"]).out, first.out);
    assert!(project.path().join("mine.jsonl").is_file());
    // Two at once keep theirs in one file.
    fs::remove_file(&elsewhere).unwrap();
    let spawn = || {
        let mut command = command();
        command.current_dir(project.path()).args(["goals"]).env("RUNLORE_P_CACHE", &elsewhere).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [spawn(), spawn()].map(|child| ran(child.wait_with_output().unwrap()).out);
    assert_eq!(both, [first.out.clone(), first.out]);
    let kept = fs::read_to_string(&elsewhere).unwrap();
    assert!(kept.ends_with('\n') && kept.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{kept}");
}

#[test]
fn a_case_and_an_attempt_are_shown_whole() {
    let project = duel();
    let items = project.json(&["dataset-items", "hub/one", "--limit", "5", "--offset", "10"]);
    assert_eq!(
        items["result"]["profile"],
        json!({"cases": 12, "groups": 0, "ungrouped": 12,
        "inputChars": {"n": 12, "min": 10, "median": 10, "max": 11}, "targetChars": {"n": 12, "min": 3, "median": 3, "max": 3}})
    );
    assert_eq!(rows(&items, 0, "item"), ["8", "8", "9", "9"].map(|item| json!(item)));
    let item = project.run(&["dataset-items", "one", "--item", "3"]);
    assert!(item.out.contains("Input of one / 3\nquestion 3\n"), "{}", item.out);
    assert!(project.run(&["dataset-items", "../one"]).err.contains("there is no dataset"));
    let attempt = project.run(&["inspect", "duel", "two/4@new#2", "--item"]).out;
    for part in ["Output\nno\n", "Input\nquestion 4\n", "Target\nyes\n", "said no", "outcome", "fail"] {
        assert!(attempt.contains(part), "{part}: {attempt}");
    }
    let found = project.json(&["search", "\"said no\"", "--kind", "reason", "--limit", "2"]);
    assert_eq!(rows(&found, 1, "text"), [json!("said no"), json!("said no")]);
    assert_eq!(rows(&found, 0, "more"), [json!(true)]);
    let run = project.json(&["search", "nightly"]);
    assert_eq!((rows(&run, 1, "kind"), rows(&run, 1, "run")), (vec![json!("run")], vec![json!("duel")]));
    for odd in ["\"", "a AND", "NEAR(", "x*y", "col:x", "' OR 1", "(", "-no"] {
        let ran = project.run(&["search", "--", odd]);
        assert!(ran.code == 0 || ran.err.contains("argument query: it holds no word"), "{odd}: {}", ran.err);
    }
}

#[test]
fn validate_says_what_is_wrong_where() {
    let project = duel();
    let sound = project.json(&["validate"]);
    assert_eq!(rows(&sound, 1, "where"), [json!("[[goal]] id = \"strange\"")], "{sound}");
    project.write("logs/broken.eval", "PK\u{3}\u{4}nothing");
    let toml = fs::read_to_string(project.path().join("runlore.toml")).unwrap();
    let more = "[[evaluation]]\nid = \"three\"\n[[arm]]\nmatch = \"claude*\"\n[[reference]]\nevaluation = \"one\"\nvalue = 90.0\n[[goal]]\nid = \"g\"\narm = \"newer\"\nversus = \"old\"\nevaluations = [\"three\"]\n";
    project.write("runlore.toml", toml + more);
    let said = project.run(&["validate"]).out;
    for part in [
        "logs/broken.eval",
        "no evaluation of any run matches",
        "no arm of any run matches",
        "value = 90 of a pass rate",
        "no run has the arm \"newer\"",
        "no evaluation matches \"three\"",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn warm_works_out_what_later_calls_read() {
    let project = duel();
    let warm = project.run(&["warm"]);
    assert!(warm.code == 0 && warm.out.starts_with("Warm:"), "{} {}", warm.out, warm.err);
    let file = project.path().join(".runlore/cache/p.jsonl");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    let search = project.json(&["search", "question"]);
    assert_eq!(rows(&search, 0, "kind").len(), 5);
    assert!(!search.to_string().contains("still to be read"));
    assert!(fixtures().is_dir());
}
