//! Two organizations on one server: what is one's is nothing to the other (issue "tenants", HARDENING.md).

use std::{collections::BTreeSet, thread, time::Instant};

use serde_json::{Value, json};

use super::{
    service::wait_for,
    town::{CANARY, Town},
    wire::{Answer, Request},
};

/// The answer without what differs between any two: the request id.
fn plain(answer: &Answer) -> (u16, String) {
    let mut json = answer.json();
    if let Some(data) = json["error"]["data"].as_object_mut() {
        data.remove("requestId");
    }
    (answer.status, json.to_string())
}

fn text(answer: &Answer) -> String {
    let json = answer.json();
    json["result"]["content"][0]["text"].as_str().map_or_else(|| json.to_string(), str::to_owned)
}

#[test]
fn each_sees_its_own_and_names_it_by_path_or_argument() {
    let town = Town::start("");
    let (acme, zeta) = (town.key("acme", "viewer", &["eval:read"]), town.key("zeta", "viewer", &["eval:read"]));
    let runs = |key: &str, path: &str, arguments: Value| {
        let result = town.ask(key, path, "runs_list", &arguments).json()["result"].clone();
        result["structuredContent"]["total"].as_u64().ok_or_else(|| result["content"][0]["text"].as_str().unwrap().to_owned())
    };
    let (here, there) = (runs(&acme, "/mcp/acme/main", json!({})).unwrap(), runs(&zeta, "/mcp/zeta/main", json!({})).unwrap());
    assert_eq!(
        (there, runs(&acme, "/mcp", json!({"project": "main"})), runs(&acme, "/mcp/acme/side", json!({}))),
        (here + 1, Ok(here), Ok(0))
    );
    assert_eq!(runs(&zeta, "/api/mcp", json!({"project": "zeta/main"})), Ok(there));
    assert_eq!(runs(&acme, "/mcp", json!({})), Err("argument project: say which project; there are main, side".to_owned()));
    let twice = runs(&acme, "/mcp/acme/main", json!({"project": "main"})).unwrap_err();
    assert!(twice.contains("project"), "the path has named it: {twice}");
    let schema = |path: &str| {
        let listed = town.service.ask(&Request::legacy(town.service.port, "tools/list", &json!({})).bearer(&acme).to(path)).json();
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let takes = |tool: &&Value| tool["inputSchema"]["properties"]["project"].is_object();
        (tools.iter().filter(takes).count(), tools.len())
    };
    let ((named, all), (placed, same)) = (schema("/mcp"), schema("/mcp/acme/main"));
    assert_eq!((named, placed, all), (all - 1, 0, same), "whoami alone is about no project");
}

#[test]
fn a_foreign_name_and_an_invented_one_are_the_same_to_the_byte() {
    let town = Town::start("");
    let acme = town.key("acme", "admin", &["*"]);
    let port = town.service.port;
    let call =
        |path: &str, tool: &str, arguments: Value| plain(&town.service.ask(&Request::call(port, tool, &arguments).bearer(&acme).to(path)));
    for (foreign, invented) in
        [("/mcp/zeta/main", "/mcp/nope/main"), ("/mcp/zeta/side", "/mcp/acme/nope"), ("/api/mcp/zeta/main", "/mcp/ACME/..")]
    {
        assert_eq!(call(foreign, "runs_list", json!({})), call(invented, "runs_list", json!({})));
        assert_eq!(call(foreign, "runs_list", json!({})).0, 404);
    }
    let swap = |(status, text): (u16, String), from: &str| (status, text.replace(from, "NAME"));
    for (tool, argument) in [("runs_list", "project"), ("show", "run"), ("compare", "head"), ("failures", "run"), ("transcript", "attempt")]
    {
        let ask = |name: &str| {
            let mut arguments = json!({ argument: name });
            if argument != "project" {
                arguments["project"] = "main".into();
            }
            swap(call("/mcp", tool, arguments), name)
        };
        assert_eq!(ask(CANARY), ask("invented7"), "{tool} {argument}");
        assert_eq!(ask("zeta/main"), ask("nope/main"), "{tool} {argument}");
    }
    let read = |uri: String| {
        plain(&town.service.ask(&Request::legacy(port, "resources/read", &json!({ "uri": uri })).bearer(&acme).to("/mcp/acme/main")))
    };
    assert_eq!(swap(read(format!("runlore://runs/{CANARY}")), CANARY), swap(read("runlore://runs/invented7".to_owned()), "invented7"));
}

#[test]
fn looking_for_a_foreign_name_takes_as_long_as_for_an_invented_one() {
    let town = Town::start("");
    let acme = town.key("acme", "viewer", &["eval:read"]);
    let mut connection = town.service.connect();
    let mut times = [Vec::new(), Vec::new()];
    let requests =
        ["/mcp/zeta/main", "/mcp/nope/main"].map(|path| Request::call(town.service.port, "runs_list", &json!({})).bearer(&acme).to(path));
    let names =
        ["zeta/main", "nope/main"].map(|name| Request::call(town.service.port, "runs_list", &json!({"project": name})).bearer(&acme));
    for pair in [&requests, &names] {
        times.iter_mut().for_each(Vec::clear);
        for round in 0..1000 {
            // Each first as often as the other.
            for which in [round % 2, 1 - round % 2] {
                let began = Instant::now();
                connection.ask(&pair[which]);
                times[which].push(began.elapsed());
            }
        }
        let [foreign, invented] = times.each_mut().map(|times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        });
        let ratio = foreign / invented;
        assert!((0.9..1.1).contains(&ratio), "{foreign} s against {invented} s");
    }
}

#[test]
fn nothing_of_one_is_seen_by_the_other_while_both_are_busy() {
    let town = Town::start("");
    let keys = ["acme", "zeta"].map(|organization| town.key(organization, "viewer", &["eval:read", "traces:read"]));
    let tools = [
        ("history", json!({})),
        ("compare", json!({"all": true})),
        ("failures", json!({})),
        ("runs_list", json!({"limit": 100})),
        ("query", json!({"sql": "SELECT * FROM runs"})),
        ("show", json!({"run": "latest~1"})),
    ];
    let request = |which: usize, tool: &str, arguments: &Value| {
        let path = format!("/mcp/{}/main", ["acme", "zeta"][which]);
        Request::call(town.service.port, tool, arguments).bearer(&keys[which]).to(&path)
    };
    let alone = |which: usize, tool: &str, arguments: &Value| text(&town.service.ask(&request(which, tool, arguments)));
    let expected: Vec<Vec<String>> =
        (0..2).map(|which| tools.iter().map(|(tool, arguments)| alone(which, tool, arguments)).collect()).collect();
    assert!(expected[1].iter().any(|text| text.contains(CANARY)) && !expected[0].iter().any(|text| text.contains(CANARY)));
    thread::scope(|scope| {
        for which in [0, 1, 0, 1] {
            let (tools, expected, request, town) = (&tools, &expected, &request, &town);
            scope.spawn(move || {
                let mut connection = town.service.connect();
                for _ in 0..15 {
                    for ((tool, arguments), expected) in tools.iter().zip(&expected[which]) {
                        let said = text(&connection.ask(&request(which, tool, arguments)));
                        // A heavy call of the same caller may still run.
                        assert!(said == *expected || said.contains("running already") || said.contains("busy"), "{tool}: {said}");
                    }
                }
            });
        }
    });
    let labels: BTreeSet<String> = town.service.metrics().into_keys().collect();
    for word in ["acme", "zeta", CANARY] {
        assert!(!labels.iter().any(|label| label.contains(word)), "{word} is a label");
    }
}

#[test]
fn a_cursor_of_one_project_is_none_of_another() {
    let town = Town::start("");
    let (acme, zeta) = (town.key("acme", "viewer", &["eval:read"]), town.key("zeta", "viewer", &["eval:read"]));
    let page = |key: &str, path: &str, cursor: Value| {
        town.ask(key, path, "runs_list", &json!({"limit": 1, "cursor": cursor})).json()["result"].clone()
    };
    let cursor = page(&zeta, "/mcp/zeta/main", Value::Null)["structuredContent"]["nextCursor"].clone();
    assert!(cursor.is_string());
    assert_eq!(page(&zeta, "/mcp/zeta/main", cursor.clone())["isError"], false);
    for (key, path) in [(&acme, "/mcp/acme/main"), (&zeta, "/mcp/zeta/side")] {
        assert_eq!(page(key, path, cursor.clone())["isError"], true, "{path}");
    }
}

#[test]
fn strangers_read_public_projects_where_the_server_lets_them_and_nothing_else() {
    let town = Town::with("", "public = true");
    let ask = |path: &str, tool: &str, arguments: Value| town.service.ask(&Request::call(town.service.port, tool, &arguments).to(path));
    assert_eq!(ask("/mcp/acme/main", "runs_list", json!({})).status, 404, "nothing is public yet");
    town.said(&["project", "visibility", "acme/main", "public"]);
    wait_for("it to be public", || (ask("/mcp/acme/main", "runs_list", json!({})).status == 200).then_some(()));
    assert_eq!(ask("/mcp", "history", json!({})).json()["result"]["isError"], false, "the only one needs no name");
    assert_eq!(ask("/mcp/zeta/main", "history", json!({})).status, 404);
    let transcript = ask("/mcp/acme/main", "transcript", json!({"attempt": "x"}));
    assert_eq!(transcript.json()["result"]["isError"], true, "texts stay hidden");
    town.said(&["project", "visibility", "zeta/side", "public"]);
    wait_for("two to be public", || text(&ask("/mcp", "history", json!({}))).contains("acme/main, zeta/side").then_some(()));
    assert_eq!(ask("/mcp", "history", json!({"project": "zeta/side"})).json()["result"]["isError"], false);
    assert_eq!(ask("/mcp", "history", json!({"project": "zeta/main"})).json()["result"]["isError"], true);
    let zeta = town.key("zeta", "viewer", &["eval:read"]);
    assert_eq!(town.ask(&zeta, "/mcp/acme/main", "history", &json!({})).status, 404, "one who is known sees its own organization");
    assert_eq!(town.ask("rlk_wrong", "/mcp/acme/main", "history", &json!({})).status, 401, "and a bad credential is never none");
}

#[test]
fn a_key_ends_when_it_is_rotated_or_revoked() {
    let town = Town::start("");
    let key = town.key("acme", "viewer", &["eval:read"]);
    let id = town.newest_key();
    let second = town.said(&["key", "rotate", &id]);
    wait_for("the new text to be known", || (town.whoami(&second).status == 200).then_some(()));
    assert_eq!(town.whoami(&key).status, 401);
    wait_for("its use to be written down", || {
        let keys: Value = serde_json::from_str(&town.said(&["key", "list", "--json"])).unwrap();
        keys[0]["usedAt"].is_string().then_some(())
    });
    town.said(&["key", "revoke", &id]);
    wait_for("it to be refused", || (town.whoami(&second).status == 401).then_some(()));
    let log = town.service.log();
    assert!(!log.contains(&key) && !log.contains(&second), "no line has a key");
    assert!(log.contains(&id), "each call's line has the key's id");
}

#[test]
fn one_organization_does_not_take_anothers_share() {
    let town = Town::start("rate_per_min = 30");
    let (acme, zeta) = (town.key("acme", "viewer", &["eval:read"]), town.key("zeta", "viewer", &["eval:read"]));
    let refused = wait_for("acme's share to be used up", || Some(town.whoami(&acme)).filter(|answer| answer.status == 429));
    assert_eq!((refused.reason(), refused.header("retry-after").is_some()), ("tenant_rate".to_owned(), true));
    assert_eq!(town.whoami(&zeta).status, 200);
}
