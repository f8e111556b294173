//! Commands on a public server: what is not published is not there, and what was answered once is not run again.

use serde_json::{Value, json};

use super::{exit, none_alive, script, service, text};
use crate::http::{
    metrics,
    service::{Service, wait_for},
    wire::Request,
};

const COUNTED: &str = "echo run >> runs; echo \"$*\"";

fn options() -> String {
    "public = true\n[[command.option]]\nname = \"filter\"\nflag = \"--filter\"\n[[command.option]]\nname = \"item\"\nflag = \"--item\"\npublic = false\n".into()
}

fn runs(service: &Service) -> usize {
    std::fs::read_to_string(service.project.path().join("runs")).unwrap_or_default().lines().count()
}

fn listed(service: &Service) -> Value {
    service.ask(&Request::legacy(service.port, "tools/list", &json!({}))).json()["result"]["tools"].clone()
}

#[test]
fn what_is_not_published_is_not_there() {
    let scripts = [script("open", COUNTED, &options()), script("closed", COUNTED, "")];
    let public = service("", &scripts, &["--public", "--rate", "0"]);
    let tools = listed(&public);
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{tools}");
    assert!(tools[0]["name"] == "open" && !tools.to_string().contains("item"), "{tools}");
    for (tool, alias) in [("closed", "closed"), ("nothing", "nothing")] {
        let answer = public.ask(&Request::call(public.port, alias, &json!({}))).json();
        let told = answer["error"].to_string().replace(tool, "x");
        assert!(told.contains("-32602"), "{answer}");
    }
    let item = public.call("open", &json!({"item": "x"}));
    assert_eq!((text(&item), runs(&public)), ("unknown argument `item`, expected one of `filter`", 0), "{item}");
    assert_eq!(public.ask(&Request::get(public.port, "/mcp/health")).json()["tools"], 1);
    // The same declarations on a server that is not public.
    let own = service("", &scripts, &[]);
    assert_eq!(listed(&own).as_array().map(Vec::len), Some(2));
    assert_eq!(text(&own.call("open", &json!({"item": "x"}))), "--item x\n");
    assert_eq!(own.call("closed", &json!({}))["isError"], false);
}

#[test]
fn a_repeated_call_is_a_hit_by_its_command_line_and_only_for_strangers() {
    let scripts = [script("open", COUNTED, &options()), script("fails", "echo run >> runs; exit 4", "public = true")];
    let public = service("", &scripts, &["--public", "--rate", "0"]);
    let first = public.call("open", &json!({"filter": "a"}));
    assert_eq!(public.call("open", &json!({"filter": "a"})), first);
    assert_eq!((runs(&public), public.metric(metrics::CACHE_HITS, &[])), (1, 1.0));
    public.call("open", &json!({"filter": "b"}));
    assert_eq!(runs(&public), 2);
    for run in 3..5 {
        assert_eq!((exit(&public.call("fails", &json!({}))), runs(&public)), (4, run));
    }
    let own = service("", &scripts, &[]);
    for run in 1..3 {
        own.call("open", &json!({"filter": "a"}));
        assert_eq!(runs(&own), run);
    }
}

#[test]
fn a_refusal_tells_strangers_nothing_of_the_server() {
    let python = "import os\ndef main():\n    raise ValueError(f\"no goal in {os.getcwd()}/goals.toml\")\nmain()\n";
    let told = |flags: &[&str]| {
        let scripts = [script("raises", "exec python3 main.py", "public = true")];
        let project = super::project("", &scripts);
        project.write("main.py", python);
        let flags: Vec<&str> = ["--toolsets", "commands"].iter().chain(flags).copied().collect();
        let service = Service::with(project, "", &flags);
        text(&service.call("raises", &json!({}))).to_owned()
    };
    assert_eq!(told(&["--public"]), "ValueError: no goal in [path]\nexit code 1");
    let whole = told(&[]);
    assert!(whole.starts_with("Traceback") && whole.contains("/goals.toml"), "{whole}");
}

#[test]
fn what_was_started_ends_by_itself_when_its_client_leaves() {
    let waits = "echo run >> runs; while [ ! -e go ]; do sleep 0.05; done; echo 'it ended'";
    let service = service(
        "",
        &[script("waits", waits, "public = true"), script("other", "echo other", "public = true")],
        &["--public", "--rate", "0"],
    );
    let mut call = service.connect();
    call.send(Request::call(service.port, "waits", &json!({})).bytes());
    wait_for("it to begin", || (runs(&service) == 1).then_some(()));
    drop(call);
    let cancelled = || service.metric("runlore_calls_total", &["tool=\"waits\"", "outcome=\"cancelled\""]);
    wait_for("the call to be given up", || (cancelled() == 1.0).then_some(()));
    // Its caller has it running still, and so has its slot.
    let busy = service.call("other", &json!({}));
    assert!(text(&busy).starts_with("other was not started: you have 1 long call running already"), "{busy}");
    service.project.write("go", "");
    wait_for("it to end", || (service.call("other", &json!({}))["isError"] == false).then_some(()));
    assert_eq!((text(&service.call("waits", &json!({}))), runs(&service)), ("it ended\n", 1));
    none_alive(&service.project);
}
