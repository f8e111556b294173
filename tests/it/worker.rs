//! `runlore worker`, from outside: runs that agents start over HTTP, done by programs of every kind.
//!
//! Promises: each test has a data directory, a server and workers of its own; what is waited for is seen from outside, with a deadline; each
//! program that outlives its run would be found by a number that only it sleeps.
//! Does not: look inside the library.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    harness::{Ran, command, ran},
    http::service::{Service, wait_for},
    push::house::{House, call},
};

const A: &str = r#"{"type":"result","case":"a","outcome":"pass","score":1,"output":"2","costUsd":0.25}"#;
const B: &str = r#"{"type":"result","case":"b","outcome":"fail","reason":"it said 5","transcript":[{"role":"user","content":"2+2"}]}"#;
const END: &str = r#"{"type":"end"}"#;

/// Seconds that some program sleeps: nobody else's number.
fn nap() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    7_000_000 + std::process::id() % 50_000 * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether a program that sleeps so long is there.
fn sleeps(nap: u32) -> bool {
    let word = nap.to_string();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    all.into_iter().any(|words| words.split(|byte| *byte == 0).any(|one| one == word.as_bytes()))
}

/// A program that prints these lines and ends with 0.
fn says(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    format!("cat >/dev/null\n{lines}")
}

/// A house with a server, a key that starts runs, and executors that are scripts.
struct Shop {
    house: House,
    service: Service,
    key: String,
    place: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        let house = House::new("");
        let service = house.serve();
        let key = house.key("acme", "admin", &["*"]);
        wait_for("the key", || {
            let answer = service.ask(&crate::http::wire::Request::call(service.port, "whoami", &json!({})).bearer(&key));
            (answer.status == 200).then_some(())
        });
        Self { house, service, key, place: tempfile::tempdir().unwrap() }
    }

    /// Calls a tool that writes, with the leave that it asks for.
    fn write(&self, tool: &str, arguments: &Value) -> Value {
        let asked = call(&self.service, &self.key, tool, arguments);
        let handle = asked["approval"]["handle"].as_str().unwrap_or_else(|| panic!("{tool}: {asked}")).to_owned();
        let mut arguments = arguments.clone();
        arguments["approval"] = handle.into();
        let done = call(&self.service, &self.key, tool, &arguments);
        assert_eq!(done["approvalRequired"], false, "{tool}: {done}");
        done["result"].clone()
    }

    /// A verb on acme's project.
    fn verb(&self, words: &[&str]) -> Ran {
        ran(command().args(words).args(["--into", "acme/main", "--data-dir"]).arg(self.house.data()).output().unwrap())
    }

    /// An active evaluation with the cases `a` and `b`.
    fn evaluation(&self, id: &str) {
        let cases = json!([{"id": "a", "input": "1+1", "expected": "2"}, {"id": "b", "input": "2+2"}]);
        self.write("evaluations_create", &json!({"id": id, "cases": cases}));
        let ran = self.verb(&["evaluation", "activate", id]);
        assert_eq!((ran.code, ran.out.trim()), (0, format!("Evaluation {id} is active.").as_str()), "{}", ran.err);
    }

    /// A run that waits.
    fn start(&self, evaluation: &str, max_cost_usd: Option<f64>) -> String {
        let arguments = json!({"evaluation": evaluation, "environment": "dev", "max_cost_usd": max_cost_usd});
        let arguments: Value = arguments
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        self.write("runs_start", &arguments)["runId"].as_str().unwrap().to_owned()
    }

    /// The configuration of a worker: its own keys, then for each evaluation what a shell does, and more keys of that executor.
    fn config(&self, worker: &str, executors: &[(&str, &str, &str)]) -> PathBuf {
        let mut text = format!("[worker]\npoll_ms = 20\ngrace_ms = 1000\n{worker}\n");
        for (evaluation, script, more) in executors {
            let file = self.place.path().join(format!("{evaluation}.sh"));
            fs::write(&file, script).unwrap();
            text.push_str(&format!(
                "[[worker.executor]]\nname = \"{evaluation}\"\nevaluations = [\"{evaluation}\"]\nprogram = \"sh\"\nargs = [\"{}\"]\n{more}\n",
                file.display()
            ));
        }
        let file = self.place.path().join("worker.toml");
        fs::write(&file, text).unwrap();
        file
    }

    fn working(&self, config: &PathBuf, words: &[&str]) -> Command {
        let mut command = command();
        command.args(["worker", "--config"]).arg(config).arg("--data-dir").arg(self.house.data()).args(words);
        command.env("CANARY_TOKEN", "canary-0123456789").current_dir(self.place.path());
        command
    }

    /// Does what waits; what it printed.
    fn once(&self, config: &PathBuf) -> String {
        let ran = ran(self.working(config, &["--once"]).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    }

    fn worker(&self, config: &PathBuf) -> Worker {
        Worker(self.working(config, &[]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// A run's row.
    fn row(&self, run: &str) -> Value {
        let rows = call(&self.service, &self.key, "runs_list", &json!({"limit": 100}));
        rows["runs"].as_array().unwrap().iter().find(|row| row["runId"] == run).unwrap().clone()
    }

    fn wait_for_status(&self, run: &str, status: &str) {
        wait_for(&format!("{run} to be {status}"), || (self.row(run)["status"] == status).then_some(()));
    }
}

/// A worker; killed when dropped.
struct Worker(Child);

impl Worker {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), signal).unwrap();
    }

    fn ended(&mut self) -> Option<i32> {
        wait_for("the worker's end", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_good_program_gets_the_cases_and_its_results_are_the_run() {
    let shop = Shop::new();
    shop.evaluation("good");
    let run = shop.start("good", Some(1.0));
    assert_eq!((shop.row(&run)["status"].as_str(), shop.row(&run)["counts"]["missing"].as_u64()), (Some("pending"), Some(2)));
    let (document, environment) = (shop.place.path().join("document"), shop.place.path().join("environment"));
    let script =
        format!("cat > {}\nenv > {}\n{}", document.display(), environment.display(), says(&[A, B, END]).replace("cat >/dev/null", ""));
    let said = shop.once(&shop.config("", &[("good", &script, "")]));
    assert_eq!(said, format!("{run} completed\n1 run done.\n"));
    let row = shop.row(&run);
    assert_eq!(
        (row["status"].as_str(), row["counts"]["passed"].as_u64(), row["counts"]["failed"].as_u64()),
        (Some("completed"), Some(1), Some(1)),
        "{row}"
    );
    let given: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    let wanted = json!({
        "schemaVersion": 1, "runId": run, "evaluation": {"id": "good", "name": null, "threshold": null}, "arm": "default", "environment": "dev",
        "maxCostUsd": 1.0, "cases": [{"id": "a", "input": "1+1", "expected": "2", "metadata": {}}, {"id": "b", "input": "2+2", "expected": null, "metadata": {}}]
    });
    assert_eq!(given, wanted);
    let environment = fs::read_to_string(environment).unwrap();
    assert!(environment.contains("PATH=") && !environment.contains("CANARY"), "{environment}");
    let shown = call(&shop.service, &shop.key, "failures", &json!({"run": run})).to_string();
    assert!(shown.contains("it said 5") && shown.contains("2+2"), "{shown}");
    assert_eq!(shop.once(&shop.config("", &[("good", &script, "")])), "0 runs done.\n");
}

#[test]
fn what_crashes_hangs_floods_or_lies_fails_with_a_sentence_and_counts_for_nothing() {
    let shop = Shop::new();
    let (hanging, holding) = (nap(), nap());
    let unknown = A.replace("\"a\"", "\"z\"");
    let crash = format!("{}echo 'boom: token sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789' >&2\nexit 3\n", says(&[A, B, END]));
    let cases: &[(&str, String, &str, &str)] = &[
        ("crash", crash, "", "the executor ended with exit code 3; its last words: boom: token [REDACTED]"),
        ("killed", format!("{}kill -9 $$\n", says(&[A, B, END])), "", "the executor was killed by SIGKILL"),
        (
            "hang",
            format!("{}sleep {hanging}\n", says(&[A, B, END])),
            "timeout_s = 1",
            "the executor had not ended after 1 seconds (timeout_s) and was killed",
        ),
        (
            "flood",
            "yes '{\"type\":\"progress\",\"done\":2}'\n".to_owned(),
            "output_bytes_max = 20000",
            "the executor wrote more than 20000 bytes (output_bytes_max)",
        ),
        (
            "long",
            format!("{}head -c 50000 /dev/zero | tr '\\0' x\nsleep {hanging}\n", says(&[A])),
            "line_bytes_max = 2000",
            "line 2 of the executor has more than 2000 bytes (line_bytes_max)",
        ),
        ("unknown", says(&[A, B, &unknown, END]), "", "line 3 of the executor is of the case \"z\", which is none of this run"),
        ("late", says(&[A, B, END, A]), "", "line 4 of the executor came after its end"),
        ("text", says(&[A, "all passed", B, END]), "", "line 2 of the executor is no document of ours: expected value"),
        ("silent", says(&[]), "", "the executor ended without a result: it never wrote {\"type\":\"end\"}"),
        ("half", says(&[A, END]), "", "the executor gave no result for 1 of 2 cases, the first of them \"b\""),
        ("twice", says(&[A, A, B, END]), "", "line 2 of the executor is a second result of try 1 of the case \"a\""),
        (
            "costly",
            says(&[&A.replace("0.25", "2.5"), B, END]),
            "",
            "line 1 of the executor brings the cost to 2.5 dollars; the run may cost 1",
        ),
        ("missing", "no-such-program-9\n".to_owned(), "", "the executor ended with exit code 127; its last words:"),
        ("holding", format!("cat >/dev/null\nsetsid sleep {holding} &\n{}", says(&[A, B, END]).replace("cat >/dev/null", "")), "", ""),
    ];
    let runs: Vec<(String, &str)> = cases
        .iter()
        .map(|(id, _, _, sentence)| {
            shop.evaluation(id);
            (shop.start(id, Some(1.0)), *sentence)
        })
        .collect();
    let executors: Vec<(&str, &str, &str)> = cases.iter().map(|(id, script, more, _)| (*id, script.as_str(), *more)).collect();
    let said = shop.once(&shop.config("concurrent = 3", &executors));
    assert!(said.ends_with("14 runs done.\n"), "{said}");
    for (run, sentence) in &runs {
        let line = said.lines().find(|line| line.starts_with(run)).unwrap();
        let (row, fails) = (shop.row(run), !sentence.is_empty());
        let wanted = if fails { format!("{run} failed: {sentence}") } else { format!("{run} completed") };
        assert!(line.starts_with(&wanted), "{line}\nis not\n{wanted}");
        let counts = (
            row["counts"]["passed"].as_u64().unwrap(),
            row["counts"]["failed"].as_u64().unwrap(),
            row["counts"]["missing"].as_u64().unwrap(),
        );
        assert_eq!((row["status"] == "failed", counts), (fails, if fails { (0, 0, 2) } else { (1, 1, 0) }), "{row}");
    }
    assert!(!sleeps(hanging) && !sleeps(holding), "what they started goes on");
}

#[test]
fn an_evaluation_that_no_executor_runs_fails_and_says_so() {
    let shop = Shop::new();
    shop.evaluation("orphan");
    let run = shop.start("orphan", None);
    let said = shop.once(&shop.config("", &[("other", "true", "")]));
    assert!(said.starts_with(&format!("{run} failed: no executor of this worker runs this evaluation in dev")), "{said}");
}

#[test]
fn a_cancelled_run_is_stopped_and_its_place_is_free_again() {
    let shop = Shop::new();
    let nap = nap();
    let (begun, told) = (shop.place.path().join("begun"), shop.place.path().join("told"));
    let script = format!("trap 'echo told > {}; exit 1' TERM\n: > {}\nsleep {nap} &\nwait\n", told.display(), begun.display());
    shop.evaluation("slow");
    shop.evaluation("good");
    let config = shop.config("concurrent = 1", &[("slow", &script, ""), ("good", &says(&[A, B, END]), "")]);
    let (slow, waits, good) = (shop.start("slow", None), shop.start("slow", None), shop.start("good", None));
    let cancelled = shop.verb(&["queue", "cancel", &waits]);
    assert_eq!((cancelled.code, cancelled.out.trim().to_owned()), (0, format!("Run {waits} is cancelled.")), "{}", cancelled.err);
    let mut worker = shop.worker(&config);
    wait_for("the program", || (begun.exists() && sleeps(nap)).then_some(()));
    assert_eq!(shop.row(&slow)["status"], "running");
    let listed = shop.verb(&["queue", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(
        (listed.as_array().map(Vec::len), listed[0]["status"].as_str(), listed[0]["total"].as_u64()),
        (Some(2), Some("running"), Some(2)),
        "{listed}"
    );
    let cancelled = shop.verb(&["queue", "cancel", &slow]);
    assert_eq!(cancelled.out.trim(), format!("Run {slow} is being done; its worker stops it soon."), "{}", cancelled.err);
    shop.wait_for_status(&slow, "cancelled");
    shop.wait_for_status(&good, "completed");
    assert!(!sleeps(nap) && told.exists(), "it was told to end, and ended");
    let counts = shop.row(&slow)["counts"].clone();
    assert_eq!((counts["passed"].as_u64(), counts["missing"].as_u64()), (Some(0), Some(2)));
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ended(), Some(0));
    let again = shop.verb(&["queue", "cancel", &slow]);
    assert!(again.code == 1 && again.err.contains(&slow), "{}", again.err);
}

/// The first time it hangs, the second time it is good.
fn second_time_lucky(shop: &Shop, nap: u32) -> String {
    let flag = shop.place.path().join("flag").display().to_string();
    format!("if [ -e {flag} ]; then\n{}else\n: > {flag}\necho '{A}'\nsleep {nap}\nfi\n", says(&[A, B, END]))
}

#[test]
fn a_killed_workers_run_is_done_by_another_and_its_program_dies_with_it() {
    let shop = Shop::new();
    let nap = nap();
    shop.evaluation("slow");
    let run = shop.start("slow", None);
    let config = shop.config("lease_s = 1", &[("slow", &second_time_lucky(&shop, nap), "")]);
    let mut worker = shop.worker(&config);
    wait_for("the program", || sleeps(nap).then_some(()));
    wait_for("its first result", || {
        let listed: Value = serde_json::from_str(&shop.verb(&["queue", "list", "--json"]).out).unwrap();
        (listed[0]["done"] == 1).then_some(())
    });
    worker.signal(Signal::SIGKILL);
    worker.ended();
    wait_for("the program's end", || (!sleeps(nap)).then_some(()));
    assert_eq!(shop.row(&run)["status"], "running", "nobody said otherwise");
    let said = wait_for("another worker", || Some(shop.once(&config)).filter(|said| said.contains(&run)));
    assert_eq!(said, format!("{run} completed\n1 run done.\n"));
    assert_eq!(shop.row(&run)["counts"]["passed"], 1);
}

#[test]
fn a_worker_that_is_told_to_end_gives_its_run_back_at_once() {
    let shop = Shop::new();
    let nap = nap();
    shop.evaluation("slow");
    let run = shop.start("slow", None);
    let config = shop.config("lease_s = 3600", &[("slow", &second_time_lucky(&shop, nap), "")]);
    let mut worker = shop.worker(&config);
    wait_for("the program", || sleeps(nap).then_some(()));
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ended(), Some(0));
    assert!(!sleeps(nap));
    assert_eq!(shop.once(&config), format!("{run} completed\n1 run done.\n"), "though the lease was an hour");
}

#[test]
fn what_is_wrong_with_a_worker_is_a_sentence_and_exit_code_2() {
    let shop = Shop::new();
    let none = shop.config("", &[]);
    let told = ran(shop.working(&none, &["--once"]).output().unwrap());
    assert!(told.code == 2 && told.err.contains("[[worker.executor]]"), "{}", told.err);
    let config = shop.config("", &[("a", "true", "")]);
    let text = fs::read_to_string(&config).unwrap().replace("program = \"sh\"", "program = \"no-such-program-9\"");
    fs::write(&config, text).unwrap();
    let told = ran(shop.working(&config, &[]).output().unwrap());
    assert!(told.code == 2 && told.err.contains("worker.executor[0].program is \"no-such-program-9\""), "{}", told.err);
}

#[test]
fn a_person_accepts_baselines_and_the_trail_has_it() {
    let shop = Shop::new();
    shop.evaluation("good");
    let config = shop.config("", &[("good", &says(&[A, B, END]), ""), ("bad", "exit 1", "")]);
    let runs: Vec<String> = (0..2)
        .map(|_| {
            let run = shop.start("good", None);
            assert!(shop.once(&config).contains("completed"));
            run
        })
        .collect();
    let first = shop.verb(&["baseline", "accept", &runs[0], "--evaluation", "good", "--note", "the first"]);
    assert_eq!(first.out.trim(), format!("Run {} is the baseline of evaluation good.", runs[0]), "{}", first.err);
    let second = shop.verb(&["baseline", "accept", "latest", "--evaluation", "good"]);
    assert_eq!(
        second.out.trim(),
        format!("Run {} is the baseline of evaluation good, in the place of {}.", runs[1], runs[0]),
        "{}",
        second.err
    );
    let again = shop.verb(&["baseline", "accept", &runs[1], "--evaluation", "good"]);
    assert_eq!(again.code, 1, "{}", again.out);
    let listed: Value = serde_json::from_str(&shop.verb(&["baseline", "list", "--json"]).out).unwrap();
    assert_eq!((listed[0]["run"].as_str(), listed[1]["note"].as_str()), (Some(runs[1].as_str()), Some("the first")), "{listed}");
    assert!(listed[0]["supersededAt"].is_null() && listed[1]["supersededAt"].is_string(), "{listed}");
    assert!(listed[0]["acceptedBy"].as_str().unwrap().starts_with("local:"), "{listed}");
    let locked = shop.verb(&["evaluation", "lock", "good", "--reason", "under review"]);
    assert_eq!(locked.code, 0, "{}", locked.err);
    let refused = call(&shop.service, &shop.key, "runs_start", &json!({"evaluation": "good", "environment": "dev"}));
    assert!(refused["approval"].is_null(), "{refused}");
    let audit = |words: &[&str]| -> Value { serde_json::from_str(&shop.verb(&[&["audit", "--json"], words].concat()).out).unwrap() };
    let accepted = audit(&["--tool", "baseline accept"]);
    let outcomes: Vec<&str> = accepted["rows"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["refused", "ok", "ok"], "{accepted}");
    assert_eq!(accepted["rows"][1]["digest"].as_str().map(str::len), Some(64));
    let started = audit(&["--tool", "runs_start", "--outcome", "ok", "--since", "1h"]);
    assert_eq!((started["total"].as_u64(), started["rows"][0]["actor"] == accepted["rows"][0]["actor"]), (Some(2), false), "{started}");
    assert_eq!(audit(&["--limit", "1"])["returned"], 1);
    let table = shop.verb(&["audit", "--limit", "2"]);
    assert!(table.out.contains("evaluation lock") && table.out.contains("--before"), "{}", table.out);
    for (words, code) in [
        (&["audit", "--since", "soon"][..], 2),
        (&["audit", "--outcome", "fine"], 2),
        (&["baseline", "accept", "nope"], 1),
        (&["evaluation", "archive", "nope"], 1),
    ] {
        assert_eq!(shop.verb(words).code, code, "{words:?}");
    }
}

#[test]
fn the_verbs_name_what_is_wrong_with_a_project() {
    let house = House::new("");
    let verb = |words: &[&str]| ran(command().args(words).arg("--data-dir").arg(house.data()).output().unwrap());
    for (words, code, part) in [
        (&["audit", "--into", "acme/other"][..], 1, "there is no project \"acme/other\""),
        (&["audit", "--into", "acme"], 1, "there is no project \"acme\""),
        (&["audit"], 2, "--into ORGANIZATION/PROJECT"),
    ] {
        let told = verb(words);
        assert!(told.code == code && told.err.contains(part), "{words:?}: {}", told.err);
    }
    house.verb(&["org", "suspend", "acme"]);
    assert!(verb(&["audit", "--into", "acme/main"]).err.contains("suspended"));
}
