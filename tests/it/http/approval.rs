//! Writes over HTTP: leave by a handle and by a form, once, for one call; the trail of what was done and of what was refused (issue "workspace").

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{
    service::{Service, wait_for},
    town::Town,
    wire::{Answer, Connection, Request, meta},
};
use crate::harness::{Project, ran, writers};

/// Many connections from here, since twenty callers are one machine.
const ROOM: &str = "per_caller_max = 64\nconnections_max = 256";
const MEMBER: [&str; 4] = ["eval:read", "eval:write", "runs:write", "traces:write"];

fn draft(id: &str) -> Value {
    json!({"id": id, "cases": [{"id": "a", "input": "1 + 1", "expected": "2"}]})
}

fn also(arguments: &Value, name: &str, value: impl Into<Value>) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value.into();
    arguments
}

/// The structured result; a refusal's sentence.
fn result(answer: &Answer) -> Result<Value, String> {
    let result = answer.json()["result"].clone();
    let text = || result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert_eq!(answer.status, 200, "{answer:?}");
    if result["isError"] == true { Err(text()) } else { Ok(result["structuredContent"].clone()) }
}

/// A town with what these tests ask of it.
struct Office {
    town: Town,
}

impl Office {
    fn open(more: &str) -> Self {
        Self { town: Town::with("", &format!("{ROOM}\n{more}")) }
    }

    fn member(&self) -> String {
        self.town.key("acme", "member", &MEMBER)
    }

    fn call(&self, key: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
        result(&self.town.ask(key, "/mcp/acme/main", tool, arguments))
    }

    /// The handle that a first call is given.
    fn asked(&self, key: &str, tool: &str, arguments: &Value) -> String {
        let said = self.call(key, tool, arguments).unwrap();
        assert_eq!(said["approvalRequired"], true, "{said}");
        said["approval"]["handle"].as_str().unwrap().to_owned()
    }

    fn done(&self, key: &str, tool: &str, arguments: &Value) -> Value {
        let handle = self.asked(key, tool, arguments);
        self.call(key, tool, &also(arguments, "approval", handle)).unwrap()["result"].clone()
    }

    /// How often the trail has which outcome of which tool.
    fn trail(&self) -> BTreeMap<(String, String), i64> {
        trail(&self.town.file("acme", "main"))
    }

    fn rows(&self, tool: &str, outcome: &str) -> i64 {
        self.trail().get(&(tool.to_owned(), outcome.to_owned())).copied().unwrap_or_default()
    }
}

fn trail(file: &Path) -> BTreeMap<(String, String), i64> {
    let file = rusqlite::Connection::open(file).unwrap();
    let mut rows = file.prepare("SELECT tool, outcome, count(*) FROM audit_m GROUP BY 1, 2").unwrap();
    let rows = rows.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn made(file: &Path) -> i64 {
    rusqlite::Connection::open(file).unwrap().query_row("SELECT count(*) FROM authored_m", [], |row| row.get(0)).unwrap()
}

#[test]
fn one_handle_and_twenty_second_calls_are_one_evaluation_one_row_and_nineteen_refusals() {
    let office = Office::open("");
    let (key, arguments) = (office.member(), draft("once"));
    let handle = office.asked(&key, "evaluations_create", &arguments);
    assert!(office.trail().is_empty(), "a question leaves no row");
    let request = Request::call(office.town.service.port, "evaluations_create", &also(&arguments, "approval", handle));
    let request = request.bearer(&key).to("/mcp/acme/main").bytes();
    let (barrier, done) = (Barrier::new(20), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut connection = office.town.service.connect();
                barrier.wait();
                connection.send(&request);
                match result(&connection.answer()) {
                    Ok(said) => {
                        assert_eq!(said["result"]["evaluation"], "once", "{said}");
                        done.fetch_add(1, SeqCst);
                    }
                    // Who did not find a place is refused too.
                    Err(said) => assert!(said.contains("used already") || said.contains("running already"), "{said}"),
                }
            });
        }
    });
    assert_eq!((done.load(SeqCst), made(&office.town.file("acme", "main"))), (1, 1));
    let row = |outcome: &str, count| (("evaluations_create".to_owned(), outcome.to_owned()), count);
    assert_eq!(office.trail(), BTreeMap::from([row("ok", 1), row("refused", 19)]));
}

#[test]
fn a_handle_of_another_call_caller_or_project_is_refused_and_so_is_one_that_has_ended() {
    let office = Office::open("[approval]\nttl_s = 1");
    let (key, other) = (office.member(), office.member());
    let arguments = draft("mine");
    let said = office.call(&key, "evaluations_create", &arguments).unwrap();
    let (handle, end) = (said["approval"]["handle"].as_str().unwrap(), said["approval"]["expiresAt"].as_str().unwrap());
    let given = also(&arguments, "approval", handle);
    let not_for_this =
        |answer: Result<Value, String>| answer.unwrap_err().starts_with("argument approval: this handle is not for this call");
    assert!(not_for_this(office.call(&key, "evaluations_create", &also(&draft("nine"), "approval", handle))), "one letter");
    assert!(not_for_this(office.call(&other, "evaluations_create", &given)));
    assert!(not_for_this(result(&office.town.ask(&key, "/mcp/acme/side", "evaluations_create", &given))));
    assert_eq!((office.rows("evaluations_create", "refused"), made(&office.town.file("acme", "main"))), (2, 0));
    assert_eq!(trail(&office.town.file("acme", "side")).values().sum::<i64>(), 1, "in the project that it was for");
    let ended = wait_for("its end", || {
        let now = office.call(&key, "evaluations_create", &arguments).unwrap()["approval"]["expiresAt"].as_str().unwrap().to_owned();
        // Another one's end is a second after now: once that is two seconds later, this one has ended.
        let seconds = |text: &str| text.trim_end_matches('Z').rsplit(':').next().unwrap().parse::<u64>().unwrap();
        ((seconds(&now) + 60 - seconds(end)) % 60 >= 2).then(|| office.call(&key, "evaluations_create", &given))
    });
    assert_eq!(ended.unwrap_err(), "this approval has expired; call without approval to ask for another");
    assert_eq!((office.rows("evaluations_create", "refused"), made(&office.town.file("acme", "main"))), (3, 0));
}

#[test]
fn a_repeat_under_a_key_is_told_what_the_first_did() {
    let office = Office::open("");
    let key = office.member();
    let keyed = also(&draft("once"), "idempotency_key", "deploy 7");
    let handle = office.asked(&key, "evaluations_create", &keyed);
    let given = also(&keyed, "approval", handle);
    let first = office.call(&key, "evaluations_create", &given).unwrap();
    assert_eq!((&first["result"]["number"].is_i64(), &first["repeated"]), (&true, &json!(false)));
    for repeat in [&given, &keyed] {
        let again = office.call(&key, "evaluations_create", repeat).unwrap();
        assert_eq!((&again["result"], &again["repeated"]), (&first["result"], &json!(true)));
    }
    let said = office.call(&key, "evaluations_create", &also(&draft("other"), "idempotency_key", "deploy 7")).unwrap_err();
    assert!(said.contains("this key was used for other arguments"), "{said}");
    let wrong = office.call(&key, "evaluations_create", &also(&draft("other"), "idempotency_key", "k".repeat(129))).unwrap_err();
    assert!(wrong.contains("has 129 characters; give a text of 1 to 128 characters"), "{wrong}");
    assert_eq!(made(&office.town.file("acme", "main")), 1);
    let rows = |outcome| office.rows("evaluations_create", outcome);
    assert_eq!((rows("ok"), rows("repeated"), rows("refused")), (1, 1, 2));
}

/// A modern call of a client that can do `capabilities`.
fn modern(office: &Office, key: &str, capabilities: &Value, params: &Value) -> Value {
    let mut params = params.clone();
    params["name"] = "evaluations_create".into();
    params["_meta"] = meta();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let request = Request::modern(office.town.service.port, "tools/call", &params).bearer(key).to("/mcp/acme/main");
    let answer = office.town.service.ask(&request);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"].clone()
}

#[test]
fn a_client_that_shows_forms_is_asked_by_one() {
    let office = Office::open("");
    let key = office.member();
    let forms = json!({"elicitation": {}});
    let arguments = draft("form");
    let asked = modern(&office, &key, &forms, &json!({ "arguments": arguments }));
    assert_eq!((&asked["resultType"], asked.get("content")), (&json!("input_required"), None), "{asked}");
    let request = &asked["inputRequests"]["approval"];
    assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    let message = request["params"]["message"].as_str().unwrap();
    assert!(message.contains("Create the evaluation \"form\"") && message.contains("- It gets 1 case."), "{message}");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!((&schema["properties"]["approve"]["type"], &schema["required"]), (&json!("boolean"), &json!(["approve"])));
    let state = &asked["requestState"];
    let answer = |state: &Value, action: &str, content: Value| {
        let params =
            json!({"arguments": arguments, "requestState": state, "inputResponses": {"approval": {"action": action, "content": content}}});
        modern(&office, &key, &forms, &params)
    };
    for (action, content) in
        [("decline", Value::Null), ("cancel", Value::Null), ("accept", json!({"approve": false})), ("accept", json!({"approve": "true"}))]
    {
        let said = answer(state, action, content);
        assert_eq!((&said["isError"], &said["resultType"]), (&json!(true), &json!("complete")), "{said}");
        assert_eq!(said["content"][0]["text"], "evaluations_create was not approved, so nothing was done");
    }
    assert_eq!(office.rows("evaluations_create", "refused"), 4);
    assert_eq!(answer(&json!("00"), "accept", json!({"approve": true}))["isError"], true, "a state of its own making");
    // An answer to another question, or none, is asked for again.
    for rest in [
        json!({"requestState": state}),
        json!({"requestState": state, "inputResponses": {"other": {"action": "accept"}}}),
        json!({"inputResponses": {"approval": {"action": "accept", "content": {"approve": true}}}}),
    ] {
        assert_eq!(modern(&office, &key, &forms, &also_all(&rest, "arguments", &arguments))["resultType"], "input_required", "{rest}");
    }
    let as_argument = modern(&office, &key, &forms, &json!({"arguments": also(&arguments, "approval", state.clone())}));
    assert_eq!(as_argument["isError"], true, "a form's handle comes back with the form's answer");
    assert_eq!(made(&office.town.file("acme", "main")), 0);
    let late = answer(state, "accept", json!({"approve": true}));
    assert!(late["content"][0]["text"].as_str().unwrap().contains("used already"), "a no is final: {late}");
    let state = &modern(&office, &key, &forms, &json!({"arguments": arguments}))["requestState"];
    let done = answer(state, "accept", json!({"approve": true}));
    assert_eq!((&done["isError"], &done["structuredContent"]["result"]["evaluation"]), (&json!(false), &json!("form")), "{done}");
    assert_eq!(answer(state, "accept", json!({"approve": true}))["isError"], true, "once");
    assert_eq!((made(&office.town.file("acme", "main")), office.rows("evaluations_create", "ok")), (1, 1));
}

fn also_all(params: &Value, name: &str, value: &Value) -> Value {
    also(params, name, value.clone())
}

#[test]
fn a_modern_client_without_forms_gives_the_handle_as_an_argument() {
    let office = Office::open("");
    let key = office.member();
    // One that opens addresses only shows no forms.
    for (id, capabilities) in [("one", json!({})), ("two", json!({"elicitation": {"url": {}}}))] {
        let arguments = draft(id);
        let asked = modern(&office, &key, &capabilities, &json!({ "arguments": arguments }));
        assert_eq!((&asked["resultType"], &asked["structuredContent"]["approvalRequired"]), (&json!("complete"), &json!(true)), "{asked}");
        let handle = asked["structuredContent"]["approval"]["handle"].clone();
        assert!(asked["content"][0]["text"].as_str().unwrap().contains(handle.as_str().unwrap()), "a model that reads texts has it too");
        // Whatever it can do by now.
        let done =
            modern(&office, &key, &json!({"elicitation": {"form": {}}}), &json!({"arguments": also(&arguments, "approval", handle)}));
        assert_eq!(done["structuredContent"]["result"]["evaluation"], id, "{done}");
    }
}

/// The official client's own way, where `tests/run` has installed it.
#[test]
fn the_official_client_shows_the_form() {
    let office = Office::open("");
    let key = office.member();
    let python =
        std::env::var("RUNLORE_TEST_PYTHON2X").expect("RUNLORE_TEST_PYTHON2X is not set: run tests/run, which installs the clients");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python_2x_writes.py");
    let url = format!("http://127.0.0.1:{}/api/mcp/acme/main", office.town.service.port);
    let answered = |answer: &str, id: &str| -> Value {
        let words =
            ["--url", &url, "--token", &key, "--tool", "evaluations_create", "--arguments", &draft(id).to_string(), "--answer", answer];
        let ran = ran(Command::new(&python).arg(&script).args(words).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(ran.out.trim()).unwrap()
    };
    for answer in ["no", "decline", "cancel"] {
        let said = answered(answer, "client");
        assert_eq!(
            (&said["error"], &said["text"]),
            (&json!(true), &json!("evaluations_create was not approved, so nothing was done")),
            "{said}"
        );
    }
    let said = answered("yes", "client");
    assert_eq!((&said["error"], &said["structured"]["result"]["evaluation"]), (&json!(false), &json!("client")), "{said}");
    assert!(said["shown"].as_array().unwrap().len() == 1 && said["shown"][0]["message"].as_str().unwrap().contains("\"client\""), "{said}");
    assert_eq!((office.rows("evaluations_create", "ok"), office.rows("evaluations_create", "refused")), (1, 3));
}

#[test]
fn every_refused_write_has_its_row_and_a_strangers_has_none() {
    let office = Office::open("");
    let member = office.member();
    let (viewer, narrow) = (office.town.key("acme", "viewer", &["*"]), office.town.key("acme", "member", &["eval:read"]));
    let zeta = office.town.key("zeta", "owner", &["*"]);
    let ask = |key: &str, path: &str, tool: &str, arguments: &Value| office.town.ask(key, path, tool, arguments);
    let rows = |outcome| office.rows("evaluations_create", outcome);
    assert_eq!(ask(&viewer, "/mcp/acme/main", "evaluations_create", &draft("x")).status, 403);
    assert_eq!(ask(&narrow, "/mcp/acme/main", "evaluations_create", &draft("x")).status, 403);
    assert_eq!(ask(&viewer, "/mcp", "evaluations_create", &also(&draft("x"), "project", "main")).status, 403, "by the argument");
    assert_eq!((rows("denied"), rows("refused")), (3, 0));
    // Wrong arguments, and a wrong argument of the gate's own.
    assert!(office.call(&member, "evaluations_create", &json!({"id": 7})).is_err());
    assert!(office.call(&member, "evaluations_create", &also(&draft("x"), "approval", 7)).is_err());
    for decision in ["classification", "invokeEvalGate", "releaseDecision"] {
        let said = office.call(&member, "evaluations_create", &also(&draft("x"), decision, "promote")).unwrap_err();
        assert!(said.starts_with(&format!("unknown argument `{decision}`")), "{said}");
    }
    assert_eq!((rows("denied"), rows("refused")), (3, 5));
    // Where there is no project that the caller may see there is no row: not theirs, and not the other's.
    assert_eq!(ask(&zeta, "/mcp/acme/main", "evaluations_create", &draft("x")).status, 404);
    assert!(result(&ask(&member, "/mcp", "evaluations_create", &draft("x"))).unwrap_err().contains("say which project"));
    let stranger = Request::call(office.town.service.port, "evaluations_create", &draft("x")).to("/mcp/acme/main");
    assert_eq!(office.town.service.ask(&stranger).status, 401);
    assert_eq!(office.trail().values().sum::<i64>(), 8);
    let file = rusqlite::Connection::open(office.town.file("acme", "main")).unwrap();
    let row = |sql: &str| -> (String, String, String, String) {
        file.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap()
    };
    let (role, detail, address, digest) = row("SELECT role, detail, address, digest FROM audit_m WHERE number = 1");
    assert_eq!(
        (role.as_str(), detail.as_str(), address.as_str(), digest.len()),
        ("viewer", "evaluations_create needs role member", "127.0.0.1", 64)
    );
    // The same arguments have the same digest, whether or not the call came as far as to decode them.
    office.done(&member, "evaluations_create", &draft("x"));
    let ok: String = file.query_row("SELECT digest FROM audit_m WHERE outcome = 'ok'", [], |row| row.get(0)).unwrap();
    assert_eq!(ok, digest);
}

#[test]
fn a_rate_that_refuses_leaves_no_row() {
    let office = Office { town: Town::made_with("rate_per_min = 3") };
    let key = office.member();
    // What made sure of the key has taken of its rate.
    let said = wait_for("the rate", || {
        let answer = office.town.ask(&key, "/mcp/acme/main", "evaluations_create", &json!({"id": 7}));
        result(&answer).err().filter(|said| said.contains("too many calls"))
    });
    assert!(said.contains("at most 3 a minute") && office.rows("evaluations_create", "refused") < 3, "{said}");
}

#[test]
fn who_may_not_write_is_shown_nothing_that_does() {
    let office = Office::open("");
    let listed = |key: Option<&str>| {
        let request = Request::legacy(office.town.service.port, "tools/list", &json!({})).to("/mcp/acme/main");
        let request = key.into_iter().fold(request, |request, key| request.bearer(key));
        let tools = office.town.service.ask(&request).json()["result"]["tools"].as_array().unwrap().clone();
        let writes = tools.into_iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false);
        writes.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(listed(None), none, "nobody");
    assert_eq!(listed(Some(&office.town.key("acme", "viewer", &["*"]))), none);
    assert_eq!(listed(Some(&office.member())), ["evaluations_create", "test_cases_add", "runs_start", "traces_create"]);
    assert_eq!(listed(Some(&office.town.key("acme", "member", &["eval:write"]))), ["evaluations_create", "test_cases_add"]);
    assert_eq!(listed(Some(&office.town.key("acme", "admin", &["admin:workspace"]))), ["connections_sync"]);
    assert_eq!(listed(Some(&office.town.key("acme", "admin", &["*"]))), writers());
}

#[test]
fn a_server_of_one_project_has_no_tool_that_writes() {
    let service = Service::start(&["--toolsets", "history,workspace"]);
    let team = Service::serve("");
    for service in [&service, &team] {
        let tools = service.ask(&Request::legacy(service.port, "tools/list", &json!({}))).json()["result"]["tools"].clone();
        assert!(tools.as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools}");
        for tool in writers() {
            let answer = service.ask(&Request::call(service.port, &tool, &json!({})));
            assert_eq!(
                (answer.code(), answer.json()["error"]["message"].as_str().unwrap().contains("unknown tool")),
                (-32602, true),
                "{tool}"
            );
        }
    }
    let project = Project::demo();
    for tool in writers() {
        for verb in [tool.replace('_', "-"), tool] {
            assert_eq!(project.run(&[&verb]).code, 2, "{verb} is no verb");
        }
    }
}

#[test]
fn a_trace_is_read_by_its_uri_until_it_is_gone() {
    let office = Office::open("");
    let key = office.town.key("acme", "member", &["traces:read", "traces:write"]);
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let trace = json!({"name": "checkout", "trace_id": "prod/7", "status": "ok", "duration_ms": 12, "pii_reviewed": true, "retention_days": 30,
        "lines": ["{\"role\": \"user\"}", format!("\"{secret}\"")], "metadata": {"region": "eu"}});
    let made = office.done(&key, "traces_create", &trace);
    assert_eq!(made["uri"], "runlore://traces/prod%2F7");
    let read = |key: &str, uri: &str| {
        let request = Request::legacy(office.town.service.port, "resources/read", &json!({ "uri": uri })).bearer(key).to("/mcp/acme/main");
        office.town.service.ask(&request)
    };
    let body = read(&key, "runlore://traces/prod%2F7").json()["result"]["contents"][0].clone();
    assert_eq!(body["mimeType"], "application/json");
    let said: Value = serde_json::from_str(body["text"].as_str().unwrap()).unwrap();
    assert_eq!((&said["lines"], &said["metadata"]), (&json!([{"role": "user"}, "[REDACTED]"]), &json!({"region": "eu"})));
    assert_eq!((&said["traceId"], &said["durationMs"], &said["expiresAt"]), (&json!("prod/7"), &json!(12), &made["expiresAt"]));
    assert_eq!(read(&key, "runlore://traces/other").code(), -32002);
    assert_eq!(read(&office.member(), "runlore://traces/prod%2F7").status, 403, "traces:write is not traces:read");
}

#[test]
fn after_a_kill_under_load_the_trail_has_what_was_written() {
    let mut office = Office::open("");
    let key = office.member();
    let (port, written) = (office.town.service.port, AtomicUsize::new(0));
    thread::scope(|scope| {
        for writer in 0..4 {
            let (key, written) = (&key, &written);
            scope.spawn(move || {
                let mut connection = Connection::open(port);
                for number in 0.. {
                    let arguments = draft(&format!("{writer}-{number}"));
                    let request =
                        |arguments: &Value| Request::call(port, "evaluations_create", arguments).bearer(key).to("/mcp/acme/main").bytes();
                    let mut ask = |arguments: &Value| {
                        if connection.try_send(request(arguments)) { connection.try_answer().ok() } else { None }
                    };
                    let Some(asked) = ask(&arguments) else { break };
                    let handle = result(&asked).unwrap()["approval"]["handle"].clone();
                    let Some(done) = ask(&also(&arguments, "approval", handle)) else { break };
                    assert!(result(&done).is_ok(), "{done:?}");
                    written.fetch_add(1, SeqCst);
                }
            });
        }
        wait_for("some to be written", || (written.load(SeqCst) >= 20).then_some(()));
        office.town.service.signal(Signal::SIGKILL);
    });
    office.town.service.ended();
    let file = office.town.file("acme", "main");
    let (rows, told) = (office.rows("evaluations_create", "ok"), i64::try_from(written.load(SeqCst)).unwrap());
    assert_eq!(rows, made(&file), "a row for each, and each with a row");
    assert!(rows >= told, "what was answered for is there: {rows} rows, {told} answers");
    let used: i64 = rusqlite::Connection::open(&file).unwrap().query_row("SELECT count(*) FROM approvals_m", [], |row| row.get(0)).unwrap();
    assert_eq!(used, rows);
}
