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
    assert_eq!(runs(&acme, "/mcp/acme/main", json!({"project": "main"})), Ok(here), "the path has named it, and this says the same");
    let other = runs(&acme, "/mcp/acme/main", json!({"project": "side"})).unwrap_err();
    assert_eq!(other, "argument project: there is no project \"side\"");
    let schema = |path: &str| {
        let listed = town.service.ask(&Request::legacy(town.service.port, "tools/list", &json!({})).bearer(&acme).to(path)).json();
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let takes = |tool: &&Value| ["project", "project_reference"].iter().any(|name| tool["inputSchema"]["properties"][name].is_object());
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
fn what_was_answered_to_one_who_may_read_texts_is_not_anothers_answer() {
    let town = Town::issuing();
    let token = |scopes: &[&str]| {
        let words: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
        town.minted(&[&["--organization", "zeta", "--subject", "one"][..], &words].concat())
    };
    let (whole, less) = (token(&["eval:read", "traces:read"]), token(&["eval:read"]));
    let sql = json!({"sql": "SELECT reason FROM checks WHERE reason IS NOT NULL LIMIT 1"});
    let ask = |token: &str| town.ask(token, "/mcp/zeta/main", "query", &sql).json()["result"].clone();
    let before = town.service.metric("runlore_cache_hits_total", &[]);
    let (first, again) = (ask(&whole), ask(&whole));
    assert_eq!((first["structuredContent"]["rows"].as_array().unwrap().len(), &first), (1, &again), "{first}");
    assert!(town.service.metric("runlore_cache_hits_total", &[]) > before, "the second was kept");
    let less = ask(&less);
    assert_ne!(less, first, "the same caller, after a scope was taken away: {less}");
    assert_eq!(less["structuredContent"]["rows"].as_array().map_or(0, Vec::len), 0);
}

#[test]
fn a_suspended_organization_is_let_in_again_with_all_that_it_had() {
    let town = Town::issuing();
    let (key, token) = (town.key("acme", "viewer", &["eval:read"]), town.minted(&["--organization", "acme"]));
    assert_eq!((town.whoami(&key).status, town.whoami(&token).status), (200, 200));
    town.said(&["org", "suspend", "acme"]);
    wait_for("both to be refused", || (town.whoami(&key).status == 401 && town.whoami(&token).status == 401).then_some(()));
    town.said(&["org", "resume", "acme"]);
    wait_for("the key to be let in", || (town.whoami(&key).status == 200).then_some(()));
}

#[test]
fn a_revoked_key_is_refused_while_another_process_writes_and_after_the_file_was_restored() {
    let town = Town::start("");
    let (first, second) = (town.key("acme", "viewer", &["eval:read"]), town.key("acme", "viewer", &["runs:read"]));
    let keys: Value = serde_json::from_str(&town.said(&["key", "list", "--json"])).unwrap();
    let id = |place: usize| keys[place]["id"].as_str().unwrap().to_owned();
    town.said(&["key", "revoke", &id(0)]);
    let writer = rusqlite::Connection::open(town.control()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Uses that cannot be written must not hold the reading up.
    wait_for("it to be refused", || (town.whoami(&second).status == 200 && town.whoami(&first).status == 401).then_some(()));
    writer.execute_batch("COMMIT").unwrap();
    drop(writer);
    // Another file in its place, in which the second is revoked.
    town.said(&["key", "list"]);
    let copy = town.control().with_extension("copy");
    rusqlite::Connection::open(town.control()).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let other = rusqlite::Connection::open(&copy).unwrap();
    other.execute("UPDATE keys_m SET revoked_at = 1 WHERE id = ?1", [id(1)]).unwrap();
    drop(other);
    for rest in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{rest}", town.control().display()));
    }
    std::fs::rename(&copy, town.control()).unwrap();
    wait_for("the other file to be read", || (town.whoami(&second).status == 401).then_some(()));
}

#[test]
fn a_control_file_that_is_gone_or_damaged_is_said_and_never_made_anew_by_a_verb() {
    let town = Town::start("");
    let ready = || town.service.admin("/readyz").status;
    assert_eq!(ready(), 200);
    std::fs::remove_file(town.control()).unwrap();
    wait_for("the server to be not ready", || (ready() == 503).then_some(()));
    let words = ["key", "list", "--data-dir", town.control().parent().unwrap().to_str().unwrap()].map(str::to_owned);
    let ran = crate::harness::ran(crate::harness::command().args(words).output().unwrap());
    assert!(ran.code == 1 && ran.err.contains("there are no organizations here") && !town.control().exists(), "{}", ran.err);
}

#[test]
fn one_organization_with_many_callers_does_not_keep_the_others_from_heavy_tools() {
    let town = Town::issuing();
    let zeta = town.key("zeta", "viewer", &["eval:read"]);
    // Each another question: the same one is computed once.
    let endless = |number: usize| json!({"sql": format!("WITH RECURSIVE n(i) AS (SELECT {number} UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")});
    let tokens: Vec<String> = (0..6).map(|number| town.minted(&["--organization", "acme", "--subject", &format!("s{number}")])).collect();
    let mut busy: Vec<_> = tokens.iter().map(|token| (town.service.connect(), token)).collect();
    for (number, (connection, token)) in busy.iter_mut().enumerate() {
        connection.send(Request::call(town.service.port, "query", &endless(number)).bearer(token).to("/mcp/acme/main").bytes());
    }
    wait_for("their places to be taken", || (town.service.metric("runlore_slots_in_use", &[]) >= 2.0).then_some(()));
    let began = Instant::now();
    let answer = town.ask(&zeta, "/mcp/zeta/main", "query", &json!({"sql": "SELECT 77 AS n"}));
    assert_eq!(answer.json()["result"]["structuredContent"]["rows"], json!([[77]]), "{answer:?}");
    assert!(began.elapsed().as_secs() < 5, "it does not wait for theirs");
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
