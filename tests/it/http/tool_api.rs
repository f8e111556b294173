//! The HTTP tool API of `runlore serve`: its envelopes, who may what, and the door's steps on its two routes (S-tenant, decisions 72 to 74).

use serde_json::{Value, json};

use super::{
    service::Service,
    town::{CANARY, Town},
    wire::{Answer, PATIENCE, Request},
};

const TOOLS: &str = "/api/mcp/tools";
const CALL: &str = "/api/mcp/call";

fn list(port: u16, key: &str) -> Request {
    Request::get(port, TOOLS).bearer(key)
}

fn posted(port: u16, body: &Value) -> Request {
    Request::post(port, body).to(CALL).with("accept", "application/json")
}

fn call(port: u16, key: &str, tool: &str, arguments: &Value) -> Request {
    posted(port, &json!({"tool": tool, "arguments": arguments})).bearer(key)
}

/// The result of a call that was answered, whose envelope is as it should be.
fn result(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let json = answer.json();
    let content = json["content"].as_array().unwrap();
    assert_eq!((json["ok"].as_bool(), content.len(), json.as_object().unwrap().len()), (Some(true), 2, 2), "{json}");
    assert_eq!((&content[0]["type"], &content[1]["type"]), (&json!("json"), &json!("text")), "{json}");
    let text: Value = serde_json::from_str(content[1]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, content[0]["json"], "the text is the same JSON for people");
    private(answer);
    text
}

fn private(answer: &Answer) {
    assert_eq!(answer.header("cache-control"), Some("private, no-store"), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
}

/// The status, the code and the sentence of a refusal, whose envelope is as it should be.
fn refused(answer: &Answer) -> (u16, String, String) {
    private(answer);
    let json = answer.json();
    let members: Vec<&String> = json.as_object().unwrap().keys().chain(json["error"].as_object().unwrap().keys()).collect();
    assert_eq!(members, ["error", "ok", "code", "message", "requestId"], "{json}");
    assert_eq!((&json["ok"], json["error"]["requestId"].as_str()), (&json!(false), answer.header("x-request-id")), "{json}");
    let text = |name: &str| json["error"][name].as_str().unwrap().to_owned();
    (answer.status, text("code"), text("message"))
}

fn is(answer: &Answer, status: u16, code: &str) -> String {
    let (got, word, message) = refused(answer);
    assert_eq!((got, word.as_str()), (status, code), "{message}");
    message
}

/// The number of the project's evaluation `name`.
fn number(town: &Town, key: &str, project: &str, name: &str) -> Value {
    let listed = result(&town.service.ask(&call(town.service.port, key, "eval.list", &json!({"project": project}))));
    listed.as_array().unwrap().iter().find(|row| row["key"] == name).unwrap_or_else(|| panic!("{name} is not in {listed}"))["id"].clone()
}

#[test]
fn the_three_reads_over_the_projects_own_data() {
    let town = Town::start("");
    let (port, key) = (town.service.port, town.key("acme", "viewer", &["eval:read"]));
    let ask = |tool: &str, arguments: Value| result(&town.service.ask(&call(port, &key, tool, &arguments)));
    let listed = ask("eval.list", json!({"project": "main"}));
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["refund_policy", "sql_generation", "summarize_ticket", "tool_use"]);
    assert_eq!(ask("eval.list", json!({"project": "main", "limit": 1, "offset": 1})), json!([listed[1]]));
    assert_eq!(ask("eval.list", json!({"project": "main", "status": "draft"})), json!([]));
    let id = number(&town, &key, "main", "refund_policy");
    let got = ask("eval.get", json!({"project": "main", "evaluationId": id}));
    assert_eq!(
        (&got["id"], &got["key"], got["runs"].as_array().unwrap().len(), &got["testCases"]),
        (&id, &json!("refund_policy"), 6, &json!([]))
    );
    let latest = ask("eval.quality.latest", json!({"project": "main", "evaluationId": id, "baseline": "previous"}));
    // What the history says of the same runs, by another way.
    let history =
        town.ask(&key, "/mcp/acme/main", "history", &json!({"filter": "refund_policy"})).json()["result"]["structuredContent"].clone();
    let rates = history["rows"][0]["rates"].as_array().unwrap().iter().filter_map(Value::as_f64).collect::<Vec<f64>>();
    let (newest, before) = (rates[rates.len() - 1], rates[rates.len() - 2]);
    let near = |value: &Value, rate: f64| assert!((value.as_f64().unwrap() - rate * 100.0).abs() < 0.06, "{value} is not {rate}");
    near(&latest["score"], newest);
    near(&latest["baselineScore"], before);
    let delta = latest["score"].as_f64().unwrap() - latest["baselineScore"].as_f64().unwrap();
    assert!((latest["regressionDelta"].as_f64().unwrap() - delta).abs() < 1e-9);
    assert_eq!(latest["regressionDetected"], delta <= -5.0 + 1e-9);
    let missing = ask("eval.quality.latest", json!({"project": "main", "evaluationId": id}));
    assert_eq!((&missing["baselineMissing"], &missing["baselineScore"]), (&json!(true), &Value::Null));
}

#[test]
fn the_list_says_what_there_is_and_writes_are_in_it_where_they_are_switched_on() {
    let names = |answer: &Answer| {
        let json = answer.json();
        private(answer);
        assert_eq!((&json["contract"], &json["hasMore"]), (&json!("evalgate-tool-api"), &json!(false)));
        let tools = json["tools"].as_array().unwrap().clone();
        for tool in &tools {
            assert_eq!((&tool["version"], &tool["inputSchema"]["type"]), (&json!("1"), &json!("object")), "{tool}");
            assert!(tool["description"].is_string() && tool["longRunning"].as_bool().unwrap_or(tool["name"] != "eval.run"), "{tool}");
        }
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let reads = ["eval.quality.latest", "eval.get", "eval.list"];
    let town = Town::start("");
    let key = town.key("acme", "viewer", &["eval:read"]);
    let answer = town.service.ask(&list(town.service.port, &key));
    assert_eq!(names(&answer), reads);
    assert!(answer.json()["tools"][2]["inputSchema"]["properties"]["project"].is_object(), "it may see two projects");
    let paged = town.service.ask(&list(town.service.port, &key).to("/api/mcp/tools?limit=1&offset=2"));
    assert_eq!(paged.json(), answer.json(), "a page is the whole");
    let mut head = town.service.connect();
    head.send(list(town.service.port, &key).by("HEAD").and("connection", "close").bytes());
    let head = String::from_utf8(head.until_closed(PATIENCE).0).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", answer.body.len())), "{head}");
    let open = Town::made_with_writes();
    let viewer = open.key("acme", "viewer", &["eval:read"]);
    let writes = ["eval.run", "eval.testcase.add", "trace.create", "trace.span.create"];
    assert_eq!(names(&open.service.ask(&list(open.service.port, &viewer))), [&reads[..], &writes].concat());
}

#[test]
fn an_anonymous_caller_a_viewer_and_a_member() {
    let town = Town::start("");
    let port = town.service.port;
    for request in [Request::get(port, TOOLS), posted(port, &json!({"tool": "eval.list"})), posted(port, &json!({"tool": "nothing"}))] {
        let answer = town.service.ask(&request);
        is(&answer, 401, "UNAUTHORIZED");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        is(&town.service.ask(&request.bearer("rlk_wrong")), 401, "UNAUTHORIZED");
    }
    let other = town.key("acme", "member", &["runs:read"]);
    for request in [list(port, &other), call(port, &other, "eval.list", &json!({"project": "main"}))] {
        let answer = town.service.ask(&request);
        assert!(is(&answer, 403, "FORBIDDEN").contains("eval:read"));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\", scope=\"eval:read\""));
    }
    for (role, scopes) in [("viewer", &["eval:read"][..]), ("member", &["eval:read", "eval:write"]), ("owner", &["*"])] {
        let key = town.key("acme", role, scopes);
        assert_eq!(town.service.ask(&list(port, &key)).status, 200, "{role}");
        result(&town.service.ask(&call(port, &key, "eval.list", &json!({"project": "main"}))));
        // Whoever asks: the operator has not switched it on.
        for tool in ["eval.run", "eval.testcase.add", "trace.create", "trace.span.create"] {
            let said = is(&town.service.ask(&call(port, &key, tool, &json!({"project": "main"}))), 403, "FORBIDDEN");
            assert!(said.contains("tool_api.writes"), "{said}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_call_is_said() {
    let town = Town::start("");
    let (port, key) = (town.service.port, town.key("acme", "viewer", &["eval:read"]));
    let said = |body: &str| is(&town.service.ask(&Request::raw(port, body).to(CALL).bearer(&key)), 400, "VALIDATION_ERROR");
    for (body, word) in [
        ("", "JSON"),
        ("{", "JSON"),
        ("[]", "one JSON object"),
        (r#"{"tool":"eval.list","tool":"eval.get"}"#, "JSON"),
        (r#"{"arguments":{}}"#, "tool"),
        (r#"{"tool":7}"#, "tool"),
        (r#"{"tool":"eval.list","arguments":[]}"#, "arguments"),
        (r#"{"tool":"eval.list","params":{}}"#, "params"),
        (r#"{"tool":"eval.lists"}"#, "eval.lists"),
        (r#"{"tool":"eval_list"}"#, "eval_list"),
        (r#"{"tool":"runs_list"}"#, "runs_list"),
        (r#"{"tool":"eval.list"}"#, "main, side"),
        (r#"{"tool":"eval.list","arguments":{"project":"main","limit":0}}"#, "limit"),
        (r#"{"tool":"eval.list","arguments":{"project":"main","lmit":1}}"#, "lmit"),
        (r#"{"tool":"eval.get","arguments":{"project":"main"}}"#, "evaluationId"),
        (r#"{"tool":"eval.get","arguments":{"project":"main","evaluationId":"1"}}"#, "evaluationId"),
        (r#"{"tool":"eval.quality.latest","arguments":{"project":"main","evaluationId":1,"baseline":"best"}}"#, "baseline"),
    ] {
        let said = said(body);
        assert!(said.contains(word), "{body}: {said}");
    }
    // Defaults, and the project in either place.
    let listed = result(
        &town.service.ask(&posted(port, &json!({"tool": "eval.list"})).bearer(&key).to("/api/mcp/call?project=main&limit=9&offset=1")),
    );
    assert_eq!(listed.as_array().unwrap().len(), 4, "limit and offset of the query are nothing's");
    assert_eq!(result(&town.service.ask(&call(port, &key, "eval.list", &json!({"project": "side"})))), json!([]));
    let two = town.service.ask(&call(port, &key, "eval.list", &json!({"project": "side"})).to("/api/mcp/call?project=main"));
    is(&two, 400, "VALIDATION_ERROR");
}

#[test]
fn a_foreign_number_and_an_invented_one_are_the_same_to_the_byte() {
    let town = Town::start("");
    let port = town.service.port;
    let (acme, zeta) = (town.key("acme", "owner", &["*"]), town.key("zeta", "viewer", &["eval:read"]));
    let foreign = number(&town, &zeta, "main", "sum");
    let said = |key: &str, tool: &str, project: &str, number: &Value| {
        let answer = town.service.ask(&call(port, key, tool, &json!({"project": project, "evaluationId": number})));
        let mut json = answer.json();
        json["error"]["requestId"] = "r".into();
        (answer.status, json.to_string().replace(&format!(" {number}\""), " N\""))
    };
    for tool in ["eval.get", "eval.quality.latest"] {
        assert_eq!(said(&zeta, tool, "main", &foreign).0, 200);
        let refused = said(&acme, tool, "main", &foreign);
        assert_eq!(refused, said(&acme, tool, "main", &json!(987_654)), "{tool}");
        assert_eq!((refused.0, refused.1.contains("\"NOT_FOUND\"")), (404, true), "{}", refused.1);
        // In another project of one's own it is as little there.
        let own = number(&town, &acme, "main", "refund_policy");
        assert_eq!(said(&acme, tool, "side", &own), said(&acme, tool, "side", &json!(987_654)), "{tool}");
    }
    let project = |name: &str| {
        let answer = town.service.ask(&call(port, &acme, "eval.list", &json!({ "project": name })));
        let mut json = answer.json();
        json["error"]["requestId"] = "r".into();
        (answer.status, json.to_string().replace(name, "NAME"))
    };
    assert_eq!(project("zeta/main"), project("nope/main"));
    assert_eq!(project("zeta/main").0, 404);
    let all = result(&town.service.ask(&call(port, &acme, "eval.list", &json!({"project": "main"}))));
    assert!(!all.to_string().contains(CANARY) && !all.to_string().contains("\"sum\""), "{all}");
}

#[test]
fn the_doors_steps_hold_in_their_order() {
    let town = Town::with("", "body_deadline_s = 1\nidle_s = 30");
    let (port, key) = (town.service.port, town.key("acme", "viewer", &["eval:read"]));
    let good = posted(port, &json!({"tool": "eval.list"}));
    let ask = |request: &Request| town.service.ask(request);
    let evil = good.clone().with("origin", "https://evil.example");
    is(&ask(&evil.clone().with("host", "evil.example")), 421, "VALIDATION_ERROR");
    is(&ask(&evil.clone().by("GET")), 403, "FORBIDDEN");
    for (request, allow) in [(good.clone().by("GET"), "POST"), (good.clone().by("DELETE"), "POST"), (good.clone().to(TOOLS), "GET, HEAD")] {
        let answer = ask(&request);
        is(&answer, 405, "VALIDATION_ERROR");
        assert_eq!(answer.header("allow"), Some(allow));
    }
    // The credential before the body, its type, its size and its sense.
    is(&ask(&good.clone().with("content-type", "text/plain")), 401, "UNAUTHORIZED");
    let known = good.bearer(&key);
    is(&ask(&Request::raw(port, "x".repeat(70_000)).to(CALL).bearer(&key).with("content-type", "text/plain")), 415, "VALIDATION_ERROR");
    is(&ask(&known.clone().with("content-encoding", "gzip")), 415, "VALIDATION_ERROR");
    is(&ask(&known.clone().with("accept", "text/html")), 406, "VALIDATION_ERROR");
    is(&ask(&Request::raw(port, "x".repeat(70_000)).to(CALL).bearer(&key)), 413, "VALIDATION_ERROR");
    let mut slow = town.service.connect();
    slow.send(known.clone().with("content-length", "50").head());
    slow.send("no json");
    is(&slow.answer(), 408, "VALIDATION_ERROR");
    is(&ask(&Request::raw(port, "no json").to(CALL).bearer(&key)), 400, "VALIDATION_ERROR");
    // Beside them MCP goes on in its own words.
    let other = ask(&known.to("/api/mcp/calls"));
    assert_eq!((other.status, &other.json()["jsonrpc"]), (404, &json!("2.0")));
}

#[test]
fn rates_hold_for_it_and_are_told_in_its_words() {
    let service = Service::serve_as("rate_per_min = 3", |command| {
        command.env("RUNLORE_MCP_TOKEN", "t");
    });
    let tool = |tool: &str| service.ask(&call(service.port, "t", tool, &json!({})));
    // Whatever becomes of a call, it is one of its caller's.
    is(&tool("nothing"), 400, "VALIDATION_ERROR");
    is(&tool("eval.run"), 403, "FORBIDDEN");
    result(&tool("eval.list"));
    for name in ["eval.list", "eval.run", "nothing"] {
        let refused = tool(name);
        assert!(is(&refused, 429, "RATE_LIMITED").contains("at most 3 a minute"), "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    let mcp = service.ask(&Request::call(service.port, "whoami", &json!({})).bearer("t")).json();
    assert!(mcp["result"]["content"][0]["text"].as_str().unwrap().contains("a minute"), "one rate for both faces: {mcp}");
    assert_eq!(service.ask(&list(service.port, "t")).status, 200, "the list is no call");
}

#[test]
fn its_tools_are_none_of_mcps_and_calls_are_counted_and_logged_by_name() {
    let town = Town::start("");
    let (port, key) = (town.service.port, town.key("acme", "owner", &["*"]));
    let listed = town.service.ask(&Request::legacy(port, "tools/list", &json!({})).bearer(&key)).json().to_string();
    for tool in ["eval.list", "eval.get", "eval.quality.latest", "eval.run", "eval.testcase.add", "trace.create", "trace.span.create"] {
        assert!(!listed.contains(&format!("\"{tool}\"")), "{tool}");
        for name in [tool.to_owned(), tool.replace('.', "_")] {
            let answer = town.ask(&key, "/mcp/acme/main", &name, &json!({}));
            assert_eq!(answer.code(), -32602, "{name}: {answer:?}");
        }
    }
    result(&town.service.ask(&call(port, &key, "eval.list", &json!({"project": "main"}))));
    is(&town.service.ask(&call(port, &key, "eval.get", &json!({"project": "main", "evaluationId": 987_654}))), 404, "NOT_FOUND");
    let counted = |tool: &str, outcome: &str| {
        town.service.metric("runlore_calls_total", &[&format!("tool=\"{tool}\""), &format!("outcome=\"{outcome}\"")])
    };
    assert_eq!((counted("eval.list", "ok"), counted("eval.get", "refused")), (1.0, 1.0));
    let line = |tool: &str| {
        let log = town.service.log();
        let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.into_iter().find(|line| line["tool"] == tool).unwrap_or_else(|| panic!("{log}"))
    };
    let (list, get) = (line("eval.list"), line("eval.get"));
    assert_eq!((&list["outcome"], &get["outcome"], &get["args"]), (&json!("ok"), &json!("refused"), &json!(["evaluationId"])));
    assert_eq!(list["principal"], town.newest_key(), "{list}");
}

#[test]
fn runlore_mcp_has_no_tool_api_and_a_server_of_one_project_reads() {
    let local = Service::start(&["--token", "t"]);
    for request in [Request::get(local.port, TOOLS), posted(local.port, &json!({"tool": "eval.list"}))] {
        let answer = local.ask(&request.bearer("t"));
        assert_eq!((answer.status, answer.reason()), (404, "not_found".to_owned()));
    }
    let one = Service::serve_as("", |command| {
        command.env("RUNLORE_MCP_TOKEN", "t").env("RUNLORE_TOOL_API_WRITES", "true");
    });
    let listed = one.ask(&list(one.port, "t")).json();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "it takes no writes: {listed}");
    is(&one.ask(&Request::get(one.port, TOOLS)), 401, "UNAUTHORIZED");
    is(&one.ask(&call(one.port, "t", "eval.testcase.add", &json!({}))), 403, "FORBIDDEN");
    assert_eq!(result(&one.ask(&call(one.port, "t", "eval.list", &json!({})))).as_array().unwrap().len(), 4);
}

/// What the trail says, newest first: tool, outcome, actor.
fn trail(town: &Town) -> Vec<(String, String, String)> {
    let said: Value = serde_json::from_str(&town.said(&["audit", "--into", "acme/main", "--json"])).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    said["rows"].as_array().unwrap().iter().map(|row| (text(row, "tool"), text(row, "outcome"), text(row, "actor"))).collect()
}

/// Whoever may not write is refused for what he lacks, and a stranger as if there were nothing.
fn denied(town: &Town, refunds: &Value) {
    let port = town.service.port;
    let (viewer, narrow) = (town.key("acme", "viewer", &["*"]), town.key("acme", "member", &["eval:read"]));
    let case = json!({"project": "main", "evaluationId": refunds, "input": "x"});
    let answer = town.service.ask(&call(port, &viewer, "eval.testcase.add", &case));
    assert!(is(&answer, 403, "FORBIDDEN").contains("role member") && answer.header("www-authenticate").is_none(), "{answer:?}");
    let answer = town.service.ask(&call(port, &narrow, "eval.testcase.add", &case));
    assert!(is(&answer, 403, "FORBIDDEN").contains("eval:write"));
    assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\", scope=\"eval:write\""));
    let zeta = town.key("zeta", "owner", &["*"]);
    let foreign = json!({"project": "acme/main", "evaluationId": refunds, "input": "x"});
    is(&town.service.ask(&call(port, &zeta, "eval.testcase.add", &foreign)), 404, "NOT_FOUND");
}

#[test]
fn writes_that_are_switched_on_ask_for_no_leave_and_leave_a_trail() {
    let town = Town::made_with_writes();
    let (port, member) = (town.service.port, town.key("acme", "member", &["eval:read", "eval:write", "runs:write", "traces:write"]));
    let id = town.newest_key();
    let here = |tool: &str, arguments: Value| {
        let mut arguments = arguments;
        arguments["project"] = "main".into();
        call(port, &member, tool, &arguments)
    };
    let ask = |tool: &str, arguments: Value| town.service.ask(&here(tool, arguments));
    let refunds = number(&town, &member, "main", "refund_policy");
    // A case: with an id, without one, twice, and by whom may not.
    let added = result(&ask(
        "eval.testcase.add",
        json!({"evaluationId": refunds, "id": "late", "input": "after 31 days?", "expectedOutput": "no"}),
    ));
    assert_eq!(added, json!({"id": "late", "evaluation": "refund_policy", "repeated": false}));
    let twice = is(&ask("eval.testcase.add", json!({"evaluationId": refunds, "id": "late", "input": "x"})), 400, "VALIDATION_ERROR");
    assert!(twice.contains("late"), "{twice}");
    is(&ask("eval.testcase.add", json!({"evaluationId": 987_654, "input": "x"})), 404, "NOT_FOUND");
    let keyed = || here("eval.testcase.add", json!({"evaluationId": refunds, "input": "another"})).with("idempotency-key", "k1");
    let (first, again) = (result(&town.service.ask(&keyed())), result(&town.service.ask(&keyed())));
    assert_eq!((&first["id"], &first["repeated"], &again["repeated"]), (&again["id"], &json!(false), &json!(true)));
    let got = result(&ask("eval.get", json!({"evaluationId": refunds})));
    assert_eq!(
        (&got["testCaseCount"], &got["testCases"][0]["id"], &got["testCases"][0]["input"]),
        (&json!(2), &json!("late"), &Value::Null)
    );
    let reader = town.key("acme", "viewer", &["eval:read", "traces:read"]);
    let got = result(&town.service.ask(&call(port, &reader, "eval.get", &json!({"project": "main", "evaluationId": refunds}))));
    assert_eq!((&got["testCases"][0]["input"], &got["testCases"][0]["expectedOutput"]), (&json!("after 31 days?"), &json!("no")));
    // A run: queued, and no pass.
    let run = result(&ask("eval.run", json!({"evaluationId": refunds, "environment": "staging"})));
    assert_eq!((&run["status"], &run["gate"]), (&json!("pending"), &json!("not_evaluated")));
    let got = result(&ask("eval.get", json!({"evaluationId": refunds})));
    assert_eq!(
        (&got["runs"][0]["id"], &got["runs"][0]["status"], &got["runs"][0]["score"]),
        (&run["evaluationRunId"], &json!("pending"), &Value::Null)
    );
    is(&ask("eval.run", json!({"evaluationId": number(&town, &member, "main", "tool_use")})), 400, "VALIDATION_ERROR");
    // A trace and its spans.
    let unseen = is(&ask("trace.create", json!({"name": "checkout", "traceId": "t1"})), 400, "VALIDATION_ERROR");
    assert!(unseen.contains("piiReviewed"), "{unseen}");
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let trace = result(&ask(
        "trace.create",
        json!({"name": format!("checkout {secret}"), "traceId": "t1", "piiReviewed": true, "retentionDays": 2}),
    ));
    assert_eq!((&trace["traceId"], trace["expiresAt"].is_string()), (&json!("t1"), true));
    let span = json!({"traceId": "t1", "name": "ask", "spanId": "s1", "input": {"q": secret}, "piiReviewed": true});
    assert_eq!(result(&ask("trace.span.create", span))["traceId"], "t1");
    is(&ask("trace.span.create", json!({"traceId": "t2", "name": "ask", "piiReviewed": true})), 404, "NOT_FOUND");
    denied(&town, &refunds);
    // The trail has each of them under its name, and nothing of the stranger.
    let trail = trail(&town);
    let count = |tool: &str, outcome: &str| trail.iter().filter(|(of, came_to, _)| of == tool && came_to == outcome).count();
    assert_eq!(["ok", "repeated", "refused", "denied"].map(|outcome| count("eval.testcase.add", outcome)), [2, 1, 2, 2], "{trail:?}");
    assert_eq!((count("eval.run", "ok"), count("eval.run", "refused")), (1, 1), "{trail:?}");
    assert_eq!((count("trace.create", "ok"), count("trace.create", "refused")), (1, 1), "{trail:?}");
    assert_eq!((count("trace.span.create", "ok"), count("trace.span.create", "refused")), (1, 1), "{trail:?}");
    assert!(trail.iter().all(|(_, outcome, actor)| *actor == id || outcome == "denied"), "{trail:?}");
    let kept = std::fs::read(town.file("acme", "main")).unwrap();
    assert!(!kept.windows(secret.len()).any(|part| part == secret.as_bytes()), "no secret is kept");
}
