//! `authz_matrix`: every tool by every kind of caller, as a table that a person can read (house rule 4: nothing is unguarded by omission).
//!
//! Promises: the rows are those of the registry, so a new tool is in it; `runs` is a call that reached the tool, whatever it made of having no
//! arguments.

use serde_json::{Value, json};

use super::{
    town::Town,
    wire::{Answer, Request},
};
use crate::harness::{registry, writers};

/// A kind of caller, and the path that it asks at.
struct Kind {
    name: &'static str,
    header: Option<String>,
    path: &'static str,
}

fn kinds(town: &Town) -> Vec<Kind> {
    let (signer, good) = (town.signer(), town.claims("acme"));
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        signer.signed(&claims)
    };
    let bearer = |token: String| Some(format!("Bearer {token}"));
    let here = |name, header| Kind { name, header, path: "/mcp/acme/main" };
    vec![
        here("none", None),
        here("malformed", Some("Basic eDp5".to_owned())),
        here("expired", bearer(with("exp", json!(1)))),
        here("wrong audience", bearer(with("aud", json!("another")))),
        here("wrong issuer", bearer(with("iss", json!("another")))),
        here("no scope", bearer(with("scope", json!("")))),
        here("read scope, viewer", bearer(with("scope", json!("eval:read")))),
        here("all scopes, viewer", bearer(with("scope", json!("*")))),
        here("all scopes, member", bearer(town.key("acme", "member", &["*"]))),
        here("all scopes, admin", bearer(town.key("acme", "admin", &["*"]))),
        Kind { name: "other tenant", header: bearer(town.key("zeta", "owner", &["*"])), path: "/mcp/acme/main" },
        here("right: owner, all scopes", bearer(town.key("acme", "owner", &["*"]))),
    ]
}

/// What became of it, in a word.
fn word(answer: &Answer) -> String {
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    let scope = challenge.split("scope=\"").nth(1).and_then(|rest| rest.split('"').next());
    match (answer.status, scope) {
        (200, _) if answer.json()["result"].is_object() => "runs".to_owned(),
        (403, Some(scope)) => format!("403 {scope}"),
        (status, _) => status.to_string(),
    }
}

#[test]
fn authz_matrix() {
    let town = Town::issuing();
    let kinds = kinds(&town);
    let ask = |kind: &Kind, method: &str, params: &Value| {
        let request = Request::legacy(town.service.port, method, params).to(kind.path);
        let request = kind.header.iter().fold(request, |request, header| request.with("authorization", header));
        town.service.ask(&request)
    };
    let mut table = String::new();
    for kind in &kinds {
        // What it may do is what it is shown.
        let listed = ask(kind, "tools/list", &json!({}));
        let shown: Vec<String> = match listed.status {
            200 => {
                listed.json()["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        let outcome = |tool: &String| word(&ask(kind, "tools/call", &json!({"name": tool, "arguments": {}})));
        let outcomes: Vec<(String, String)> = registry().into_iter().chain(writers()).map(|tool| (outcome(&tool), tool)).collect();
        if kind.header.is_some() {
            let runs: Vec<&String> = outcomes.iter().filter(|(word, _)| word == "runs").map(|(_, tool)| tool).collect();
            assert_eq!(runs, shown.iter().collect::<Vec<_>>(), "{}: what it is shown is what it may call", kind.name);
        }
        table += &format!("{}: tools/list {} ({} tools)\n", kind.name, word(&listed), shown.len());
        for method in ["resources/list", "prompts/list", "completion/complete", "resources/read", "nonsense"] {
            let params = json!({"uri": "runlore://runs/x/transcripts/y", "ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}});
            table += &format!("    {method}: {}\n", word(&ask(kind, method, &params)));
        }
        let mut words: Vec<&String> = outcomes.iter().map(|(word, _)| word).collect();
        words.sort();
        words.dedup();
        for word in words {
            let tools: Vec<&str> = outcomes.iter().filter(|(other, _)| other == word).map(|(_, tool)| tool.as_str()).collect();
            let tools = if tools.len() == outcomes.len() { "every tool".to_owned() } else { tools.join(" ") };
            table += &format!("    {word}: {tools}\n");
        }
    }
    insta::assert_snapshot!(table);
}
