//! Resources, templates, completion and prompts, over stdio and HTTP, in both eras.
//!
//! Promises: the two transports are asked the same and must say the same; what is read is held against the tools and the logs.
//! Does not: use an SDK (`clients` does).

use serde_json::{Value, json};

use super::{
    harness::Project,
    http::{service::Service, wire::Request},
    logs::Log,
    mcp::{Server, meta},
};

/// Ids with all that a URI must not hold as it is.
const RUN: &str = "night run/7 é?#@%2F";
const TASK: &str = "suite/tool use#1@x%";
const CASE: &str = "a/b#2@c%d é 路";

fn strange() -> Project {
    let project = Project::new();
    Log::new("older", "suite", "2026-11-01T09:00:00+00:00").sample("x", 1, "C").put(&project);
    Log::new(RUN, TASK, "2026-11-02T09:00:00+00:00").sample(CASE, 1, "I").sample("z", 1, "C").put(&project);
    project
}

/// One server on stdio and one over HTTP, each with its own copy of the same logs.
struct Both {
    stdio: Server,
    http: Service,
    modern: bool,
    /// The one that stdio serves; held, not read.
    _project: Project,
}

impl Both {
    fn over(project: fn() -> Project, modern: bool) -> Self {
        let own = project();
        let stdio = if modern { Server::start(&own) } else { Server::initialize(&own, "2025-11-25").0 };
        Self { stdio, http: Service::with(project(), "", &[]), modern, _project: own }
    }

    /// The result or error, which is the same on both but for what belongs to one request.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut own = params.clone();
        if self.modern {
            own["_meta"] = meta();
        }
        let stdio = self.stdio.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": own}));
        let port = self.http.port;
        let request = if self.modern { Request::modern(port, method, params) } else { Request::legacy(port, method, params) };
        let http = self.http.ask(&request).json();
        assert_eq!((&stdio["result"], &stdio["error"]["code"]), (&http["result"], &http["error"]["code"]), "{method} {params}");
        assert_eq!(stdio["error"]["message"], http["error"]["message"], "{method} {params}");
        if http["error"].is_object() { http["error"].clone() } else { http["result"].clone() }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["structuredContent"].clone()
    }

    fn read(&mut self, uri: &str) -> (Value, String) {
        let mut result = self.ask("resources/read", &json!({"uri": uri}));
        let text = result["contents"][0]["text"].take();
        (result, text.as_str().unwrap_or_default().to_owned())
    }
}

#[test]
fn a_list_leads_to_each_run_and_a_tool_to_each_transcript() {
    for modern in [true, false] {
        let mut both = Both::over(strange, modern);
        let list = both.ask("resources/list", &json!({}));
        let names: Vec<&str> = list["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!((names, list.get("nextCursor")), (vec![RUN, "older"], None), "{list}");
        assert_eq!(list["resources"][0]["title"], format!("{RUN} 2026-11-02T09:00:00Z recorded"));
        for one in list["resources"].as_array().unwrap() {
            let (result, text) = both.read(one["uri"].as_str().unwrap());
            let shown = both.call("show", &json!({"run": one["name"]}));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), shown, "{one}");
            let rest = json!({"uri": one["uri"], "mimeType": "application/json", "text": null});
            assert_eq!((&result["contents"], result.get("ttlMs").is_some()), (&json!([rest]), modern), "{result}");
        }
        let failures = both.call("failures", &json!({}));
        let attempt = failures["cells"][0]["attempts"][0]["attempt"].clone();
        let page = both.call("transcript", &json!({"attempt": attempt}));
        let (result, text) = both.read(page["uri"].as_str().unwrap());
        assert_eq!(text, page["lines"].as_array().unwrap().iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect::<String>());
        assert!(text.contains("answer I") && text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
        assert_eq!(result["contents"][0]["mimeType"], "application/jsonl");
        assert_eq!(both.read(&page["uri"].as_str().unwrap().replacen("runlore", "reeval", 1)).1, text);
    }
}

#[test]
fn a_template_is_filled_from_its_completions() {
    let mut both = Both::over(strange, true);
    let templates = both.ask("resources/templates/list", &json!({}));
    let template = templates["resourceTemplates"][1]["uriTemplate"].as_str().unwrap().to_owned();
    assert_eq!(template, "runlore://runs/{runId}/transcripts/{attempt}");
    let mut complete = |name: &str, value: &str, known: Value| {
        let argument = json!({"name": name, "value": value});
        both.ask(
            "completion/complete",
            &json!({"ref": {"type": "ref/resource", "uri": template}, "argument": argument, "context": {"arguments": known}}),
        )
    };
    let runs = complete("runId", "NIGHT", json!({}));
    assert_eq!(runs["completion"], json!({"values": [RUN], "total": 1, "hasMore": false}), "{runs}");
    let attempts = complete("attempt", "路", json!({"runId": RUN}));
    let attempt = attempts["completion"]["values"][0].as_str().unwrap().to_owned();
    // RFC 6570, simple expansion.
    let expanded = |text: &str| {
        let byte = |byte: u8| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        };
        text.bytes().map(byte).collect::<String>()
    };
    let uri = template.replace("{runId}", &expanded(RUN)).replace("{attempt}", &expanded(&attempt));
    assert!(both.read(&uri).1.contains(CASE), "{uri}");
    assert_eq!(both.call("transcript", &json!({"run": RUN, "attempt": attempt}))["uri"], uri);
    let unknown =
        both.ask("completion/complete", &json!({"ref": {"type": "ref/resource", "uri": template}, "argument": {"name": "x", "value": ""}}));
    assert_eq!(unknown["code"], -32602, "{unknown}");
}

#[test]
fn prompts_name_calls_that_work() {
    for modern in [true, false] {
        let mut both = Both::over(Project::demo, modern);
        let list = both.ask("prompts/list", &json!({}));
        let names: Vec<&str> = list["prompts"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["triage_failures", "explain_regression", "write_run_summary"], "{list}");
        for name in names {
            let got = both.ask("prompts/get", &json!({"name": name}));
            let text = got["messages"][0]["content"]["text"].as_str().unwrap();
            // The first call of each can be made as it stands.
            let (tool, arguments) = text.split_once("call ").unwrap().1.split_once(" with ").unwrap();
            let arguments: Value = serde_json::Deserializer::from_str(arguments).into_iter().next().unwrap().unwrap();
            let answer = both.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
            assert_eq!(answer["isError"], false, "{name}: {answer}");
        }
        for (params, said) in [
            (json!({"name": "none"}), "there is no prompt"),
            (json!({"name": "triage_failures", "arguments": {"runs": "x"}}), "unknown argument \"runs\""),
            (json!({"name": "triage_failures", "arguments": {"run": 7}}), "argument run"),
        ] {
            let fault = both.ask("prompts/get", &params);
            assert_eq!(fault["code"], -32602, "{params}: {fault}");
            assert!(fault["message"].as_str().unwrap().contains(said), "{params}: {fault}");
        }
    }
}

/// Parameters that do not fit are refused with a sentence, by both transports in the same words, and taken neither for an unknown method nor for
/// none at all.
#[test]
fn wrong_parameters_are_told_from_unknown_methods() {
    let argument = json!({"name": "run", "value": ""});
    for modern in [true, false] {
        let mut both = Both::over(Project::demo, modern);
        for (method, params, said) in [
            ("resources/read", json!({}), "params.uri"),
            ("resources/read", json!({"uri": 7}), "params.uri"),
            ("prompts/get", json!({}), "params.name"),
            ("prompts/get", json!({"name": ["x"]}), "params.name"),
            ("completion/complete", json!({}), "params.argument"),
            ("completion/complete", json!({"ref": {"type": "ref/bogus", "name": "x"}, "argument": argument}), "params.ref.type"),
            ("completion/complete", json!({"ref": {"type": "ref/prompt"}, "argument": argument}), "params.ref.name"),
            ("tools/call", json!({}), "params.name"),
            ("tools/list", json!({"cursor": 7}), "cursor"),
            ("prompts/list", json!({"cursor": {}}), "cursor"),
            ("resources/templates/list", json!({"cursor": [1]}), "cursor"),
            ("resources/list", json!({"cursor": 7}), "params.cursor must be a text"),
            ("resources/list", json!({"cursor": true}), "params.cursor must be a text"),
        ] {
            let fault = both.ask(method, &params);
            assert_eq!(fault["code"], -32602, "{method} {params}: {fault}");
            assert!(fault["message"].as_str().unwrap().contains(said), "{method} {params}: {fault}");
        }
        assert_eq!(both.stdio.ask(&request("no/such", modern))["error"]["code"], -32601);
        // Null is none.
        assert!(both.ask("resources/list", &json!({"cursor": null}))["resources"].is_array());
    }
}

fn request(method: &str, modern: bool) -> Value {
    let params = if modern { json!({"_meta": meta()}) } else { json!({}) };
    json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params})
}

#[test]
fn many_runs_are_listed_by_pages() {
    let project = || {
        let project = Project::new();
        (0..205).for_each(|at| {
            let created = format!("2026-11-01T{:02}:{:02}:00+00:00", at / 60, at % 60);
            Log::new(&format!("r{at:03}"), "t", &created).sample("x", 1, "C").put(&project);
        });
        project
    };
    let service = Service::with(project(), "rate_per_min = 0", &[]);
    let ask = |params: Value| service.ask(&Request::modern(service.port, "resources/list", &params)).json();
    let (mut names, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = ask(json!({"cursor": cursor}))["result"].clone();
        names.extend(page["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        (cursor, pages) = (page["nextCursor"].clone(), pages + 1);
        if cursor.is_null() {
            break;
        }
        let text = cursor.as_str().unwrap();
        let altered = ask(json!({"cursor": format!("{}x{}", &text[..9], &text[10..])}));
        assert!(altered["error"]["code"] == -32602 || &text[9..10] == "x", "{altered}");
    }
    assert_eq!(pages, 3);
    assert_eq!(names, (0..205).rev().map(|at| format!("r{at:03}")).collect::<Vec<_>>());
}

#[test]
fn a_public_server_offers_no_texts() {
    let service = Service::with(strange(), "", &["--public"]);
    let ask = |method: &str, params: Value| service.ask(&Request::modern(service.port, method, &params)).json();
    let templates = ask("resources/templates/list", json!({}))["result"].clone();
    assert_eq!(
        (templates["resourceTemplates"].as_array().map(Vec::len), &templates["cacheScope"]),
        (Some(1), &json!("public")),
        "{templates}"
    );
    let list = ask("resources/list", json!({}))["result"].clone();
    assert_eq!((list["resources"].as_array().map(Vec::len), &list["cacheScope"]), (Some(2), &json!("private")), "{list}");
    let run = ask("resources/read", json!({"uri": list["resources"][0]["uri"]}))["result"]["contents"][0]["text"].clone();
    assert!(run.as_str().unwrap().contains(RUN) && !run.as_str().unwrap().contains("said I"), "{run}");
    let uri = format!("{}/transcripts/x", list["resources"][0]["uri"].as_str().unwrap());
    let refused = ask("resources/read", json!({"uri": uri}));
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["reason"]),
        (&json!(-32000), &json!("insufficient_scope")),
        "{refused}"
    );
    let prompt = ask("prompts/get", json!({"name": "triage_failures"}))["result"].to_string();
    assert!(prompt.contains("call failures") && !prompt.contains("call transcript"), "{prompt}");
    let reference = json!({"type": "ref/resource", "uri": "runlore://runs/{runId}/transcripts/{attempt}"});
    let completed = ask("completion/complete", json!({"ref": reference, "argument": {"name": "attempt", "value": ""}}));
    assert_eq!(completed["error"]["code"], -32602, "{completed}");
}

#[test]
fn reads_are_counted_and_logged_as_what_they_are() {
    let service = Service::start(&[]);
    let ask = |method: &str, params: Value| service.ask(&Request::legacy(service.port, method, &params)).json();
    let uri = ask("resources/list", json!({}))["result"]["resources"][0]["uri"].clone();
    ask("resources/read", json!({"uri": uri}));
    ask("resources/read", json!({"uri": uri}));
    ask("resources/read", json!({"uri": "runlore://runs/none/transcripts/none"}));
    ask("resources/read", json!({"uri": "canary://none"}));
    let count = |tool: &str, outcome: &str| {
        service.metric("runlore_calls_total", &[&format!("tool=\"{tool}\""), &format!("outcome=\"{outcome}\"")])
    };
    let counted: Vec<f64> = [
        ("resources/list", "ok"),
        ("resources/run", "ok"),
        ("resources/run", "cached"),
        ("resources/transcript", "ok"),
        ("unknown", "refused"),
    ]
    .into_iter()
    .map(|(tool, outcome)| count(tool, outcome))
    .collect();
    assert_eq!(counted, [1.0; 5]);
    assert!(!service.log().contains("canary"), "{}", service.log());
}
