//! Commands of the operator's as tools: what they answer, how they end, and that nothing of them is left.
//!
//! Promises: the children are shell scripts that a declaration of the test's own starts, as unruly as they can be; what is left of them is
//! looked for in `/proc`, by a variable that each of them carries.
//! Does not: change the program.

mod clients;
mod hostile;
mod public;

use serde_json::{Value, json};

use super::{
    harness::{Project, command},
    http::{
        service::{Service, wait_for},
        wire::Request,
    },
    mcp::Server,
};

/// A declaration of a shell script as a tool; `more` are its other lines.
pub fn script(name: &str, script: &str, more: &str) -> String {
    let (description, program) = ("description = \"A script of the test's.\"", "program = \"sh\"");
    format!("[[command]]\nname = \"{name}\"\n{description}\n{program}\nargs = [\"-c\", '''{script}''', \"sh\"]\n{more}\n")
}

/// A project of these declarations, each of whose children has the project's path in the variable `MARK`.
pub fn project(config: &str, scripts: &[String]) -> Project {
    let project = Project::new();
    let mark = format!("set_env = {{ MARK = {:?} }}\n", project.path().display().to_string());
    let scripts: Vec<String> = scripts.iter().map(|script| script.replacen("program =", &format!("{mark}program ="), 1)).collect();
    project.write(".runlore/config.toml", format!("[index]\nwait_ms = 60000\n{config}\n{}", scripts.concat()));
    project
}

/// `runlore mcp --http` with them.
pub fn service(config: &str, scripts: &[String], flags: &[&str]) -> Service {
    let flags: Vec<&str> = ["--toolsets", "commands"].iter().chain(flags).copied().collect();
    Service::with(project(config, scripts), "", &flags)
}

/// The processes that carry the project's mark.
pub fn alive(project: &Project) -> Vec<String> {
    let mark = format!("MARK={}", project.path().display());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let marked = |path: &std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    };
    let shown = |path: std::path::PathBuf| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " ");
    processes.filter(marked).map(shown).collect()
}

/// Waits until there are none.
pub fn none_alive(project: &Project) {
    wait_for("every child to be gone", || alive(project).is_empty().then_some(()));
}

pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The exit code of a refused command.
pub fn exit(result: &Value) -> i64 {
    assert_eq!(result["isError"], true, "{result}");
    let code = result["_meta"]["runlore/exitCode"].as_i64().unwrap_or(-1);
    assert!(text(result).ends_with(&format!("exit code {code}")), "{result}");
    code
}

const ECHO: &str = r#"printf '{"words": ["%s"]}' "$*""#;

fn echo() -> String {
    let options = "[[command.option]]\nname = \"limit\"\nflag = \"--limit\"\ntype = \"integer\"\n[[command.option]]\nname = \"tags\"\nflag = \"--tag\"\nrepeated = true\n[[command.positional]]\nname = \"dataset\"\ntype = \"name\"\nrequired = false";
    script("echo", ECHO, &format!("json_flag = \"--json\"\noutput = \"json\"\n{options}"))
}

#[test]
fn a_command_is_a_tool_over_http_and_over_stdio() {
    let scripts = [echo(), script("plain", "echo \"here is $(pwd)\"", "")];
    let service = service("", &scripts, &[]);
    let mut stdio = Server::initialize_with(&service.project, "2025-11-25", &["--toolsets", "commands"]).0;
    let listed = service.ask(&Request::legacy(service.port, "tools/list", &json!({}))).json()["result"].clone();
    let other = stdio.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))["result"].clone();
    assert_eq!(listed, other);
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["echo", "plain"]);
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    assert_eq!((&tools[0]["annotations"], &tools[0]["outputSchema"]), (&hints, &json!({"type": "object"})));
    assert!(tools[1].get("outputSchema").is_none() && tools[0]["inputSchema"]["properties"]["limit"]["type"] == "integer");
    let arguments = json!({"tags": ["a", "b c"], "dataset": "d", "limit": 3.0});
    let result = service.call("echo", &arguments);
    assert_eq!(result["structuredContent"], json!({"words": ["--json --limit 3 --tag a --tag b c -- d"]}), "{result}");
    assert_eq!((text(&result), &result["isError"]), (r#"{"words": ["--json --limit 3 --tag a --tag b c -- d"]}"#, &json!(false)));
    assert_eq!(stdio.call("echo", arguments)["result"], result);
    let plain = service.call("plain", &json!({}));
    // The working directory is the project's root; an answer in text has nothing but text.
    assert_eq!(text(&plain), format!("here is {}\n", service.project.path().canonicalize().unwrap().display()), "{plain}");
    assert!(plain.get("structuredContent").is_none() && plain["isError"] == false, "{plain}");
    assert_eq!(stdio.end(None).0, Some(0));
}

#[test]
fn what_is_wrong_is_refused_before_anything_runs() {
    let service = service("", &[script("touch", "touch ran", "[[command.option]]\nname = \"tag\"\nflag = \"--tag\"\n")], &[]);
    for (arguments, told) in [
        (json!({"adapter": "mod:fn"}), "unknown argument `adapter`, expected one of `tag`"),
        (json!({"tag": ["x", "--adapter", "mod:fn"]}), "argument tag: it takes one value, not a list"),
        (json!({"tag": "--adapter"}), "argument tag: \"--adapter\" begins with -"),
        (json!({"tag": null}), "argument tag: null is not a text"),
    ] {
        let result = service.call("touch", &arguments);
        assert!(result["isError"] == true && text(&result).starts_with(told), "{result}");
    }
    assert!(!service.project.path().join("ran").exists());
    assert_eq!(service.call("touch", &json!({"tag": "x"}))["isError"], false);
    assert!(service.project.path().join("ran").exists());
}

#[test]
fn a_refusal_has_the_last_words_and_the_exit_code() {
    let scripts = [
        script("no", "echo out; echo 'no goal x' >&2; exit 3", ""),
        script("mute", "echo 'it says so here'; exit 1", ""),
        script("killed", "kill -9 $$", ""),
        script("late", "trap '' TERM INT HUP; echo slow >&2; sleep 600 & sleep 600; sleep 600", "timeout_s = 1"),
        script("well", "echo fine; echo 'a warning' >&2", ""),
        script("broken", "echo '{'", "output = \"json\""),
    ];
    let service = service("", &scripts, &[]);
    let told = |tool: &str| {
        let result = service.call(tool, &json!({}));
        (exit(&result), text(&result).to_owned())
    };
    assert_eq!(told("no"), (3, "no goal x\nexit code 3".to_owned()));
    assert_eq!(told("mute"), (1, "it says so here\nexit code 1".to_owned()));
    assert_eq!(told("killed"), (137, "exit code 137".to_owned()));
    assert_eq!(told("late"), (124, "slow\nit did not end within 1 s and was stopped\nexit code 124".to_owned()));
    assert_eq!(text(&service.call("well", &json!({}))), "fine\n");
    let broken = service.call("broken", &json!({}));
    assert!(broken["isError"] == true && text(&broken).starts_with("broken printed what is no JSON"), "{broken}");
    none_alive(&service.project);
    let late = service.metric("runlore_calls_total", &["tool=\"late\"", "outcome=\"timeout\""]);
    assert_eq!((late, service.metric("runlore_calls_total", &["tool=\"no\"", "outcome=\"refused\""])), (1.0, 1.0));
}

#[test]
fn a_child_has_no_more_of_the_environment_than_is_said() {
    let env = script("environment", "env | cut -d= -f1 | sort", "env = [\"TOLD\"]");
    let project = project("", &[env]);
    let service = Service::spawned(project, |command, port, admin| {
        let at = (port.to_string(), format!("127.0.0.1:{admin}"));
        command.env("TOLD", "1").env("UNTOLD_KEY", "a-secret-value").env("RUNLORE_MCP_TOKEN_FILE", "").env("TZ", "UTC");
        command.args(["mcp", "--http", "--toolsets", "commands", "--port", &at.0, "--admin-listen", &at.1]);
    });
    let result = service.call("environment", &json!({}));
    let may = ["HOME", "LANG", "LC_ALL", "MARK", "PATH", "PWD", "RUNLORE_CALL", "SHLVL", "TMPDIR", "TOLD", "TZ", "_", "OLDPWD"];
    let names: Vec<&str> = text(&result).lines().collect();
    assert!(names.contains(&"TOLD") && names.contains(&"MARK") && names.contains(&"PATH") && names.contains(&"TZ"), "{names:?}");
    assert!(names.iter().all(|name| may.contains(name)), "{names:?}");
}

#[test]
fn a_secret_does_not_leave_whichever_way() {
    let secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let scripts = [
        script("says", &format!("echo 'token {secret}'"), ""),
        script(
            "json",
            &format!(r#"printf '{{"a": "%s", "b": "\\u0073k-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}}' {secret}"#),
            "output = \"json\"",
        ),
        script("refuses", &format!("echo '{secret}' >&2; exit 1"), ""),
        script("own", "echo $APP_TOKEN", "").replacen(
            "program =",
            "set_env = { APP_TOKEN = \"an-own-value-of-the-operator\" }\nprogram =",
            1,
        ),
    ];
    // The mark would be a second table of variables.
    let project = Project::new();
    project.write(".runlore/config.toml", format!("[index]\nwait_ms = 60000\n{}", scripts.concat()));
    let service = Service::with(project, "", &["--toolsets", "commands"]);
    for tool in ["says", "json", "refuses", "own"] {
        let result = service.call(tool, &json!({})).to_string();
        assert!(result.contains("[REDACTED]"), "{tool}: {result}");
        assert!(!result.contains("abcdefghij") && !result.contains("own-value"), "{tool}: {result}");
    }
}

#[test]
fn what_cannot_be_run_is_told_at_the_start_and_what_is_not_asked_for_is_not_offered() {
    let project = Project::new();
    let fault = |config: &str, words: &[&str]| {
        project.write(".runlore/config.toml", config);
        let ran = project.run(words);
        assert_eq!(ran.code, 2, "{}", ran.err);
        ran.err
    };
    let gone = "[[command]]\nname = \"gone\"\ndescription = \"x\"\nprogram = \"no-such-program\"\ndirectory = \"nowhere\"\n";
    for words in
        [&["mcp", "--toolsets", "commands"][..], &["mcp", "--http", "--toolsets", "history,commands"], &["serve", "--toolsets", "commands"]]
    {
        let told = fault(gone, words);
        assert!(told.contains("command[0].program is \"no-such-program\"; it must be a program that is there"), "{told}");
        assert!(told.contains("command[0].directory is \"nowhere\"; it must be a directory that is there"), "{told}");
    }
    let wrong = fault("[http]\ntoolsets = [\"history\", \"sql\"]\n", &["serve"]);
    assert!(wrong.contains("http.toolsets: \"sql\" is none"), "{wrong}");
    let clash = fault("[[command]]\nname = \"history\"\ndescription = \"x\"\nprogram = \"sh\"\n", &["mcp"]);
    assert!(clash.contains("command[0].name is \"history\"; it must be another name than that of a tool of this program"), "{clash}");
    // Not offered, not looked for: the usual toolsets are without commands.
    project.write(".runlore/config.toml", gone);
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    let listed = server.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert!(!listed.to_string().contains("\"gone\""), "{listed}");
    assert_eq!(server.call("gone", json!({}))["error"]["code"], -32602);
    assert_eq!(server.end(None).0, Some(0));
}

#[test]
fn the_operator_offers_them_by_config_and_a_caller_narrows() {
    let project = project("[http]\ntoolsets = [\"history\", \"commands\"]", &[echo()]);
    let service = Service::with(project, "", &[]);
    let names = |target: &str| {
        let listed = service.ask(&Request::legacy(service.port, "tools/list", &json!({})).to(target)).json();
        let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let all = names("/mcp");
    assert!(all.contains(&"echo".to_owned()) && all.contains(&"history".to_owned()) && !all.contains(&"query".to_owned()), "{all:?}");
    assert_eq!(names("/mcp?toolsets=commands"), ["echo"]);
    assert!(!names("/mcp?toolsets=history,query").contains(&"echo".to_owned()));
    let narrowed = service.ask(&Request::call(service.port, "echo", &json!({})).to("/mcp?toolsets=history"));
    assert_eq!(narrowed.code(), -32602, "{narrowed:?}");
    assert_eq!(service.call("echo", &json!({}))["isError"], false);
}

#[test]
fn a_scan_is_refused_where_there_is_no_parser_to_read() {
    let project = Project::new();
    project.write("hello.py", "print('hello')\n");
    project.write("gone.py", "import argparse, sys\nsys.exit('not today')\nargparse.ArgumentParser().parse_args()\n");
    for (words, told) in [
        (vec!["commands", "scan", "hello.py"], "it ended without asking argparse to read its command line"),
        (vec!["commands", "scan", "gone.py"], "it ended (not today) before it asked argparse"),
        (vec!["commands", "scan", "nothing.py"], "there is no program nothing.py"),
        (vec!["commands", "scan", "python3"], "name the script behind it, or -m and a module"),
    ] {
        let ran = project.run(&words);
        assert!(ran.code == 1 && ran.err.contains(told) && ran.out.is_empty(), "{words:?}: {} {}", ran.code, ran.err);
    }
    project.write("one.py", "import argparse\np = argparse.ArgumentParser(description='One.')\np.add_argument('--n', type=int, required=True)\np.add_argument('-q', nargs='+')\np.add_argument('--load')\np.parse_args()\nopen('ran', 'w')\n");
    let ran = project.run(&["commands", "scan", "--omit", "load", "--prefix", "my-tools", "python3", "one.py"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for line in [
        "name = \"my_tools\"",
        "description = \"One.\"",
        "program = \"python3\"",
        "args = [\"one.py\"]",
        "required = true",
        "flag = \"-q\"",
        "one_flag = true",
    ] {
        assert!(ran.out.lines().any(|one| one == line), "{line}\n{}", ran.out);
    }
    assert!(!ran.out.contains("load") && !project.path().join("ran").exists(), "{}", ran.out);
    let clash = project.run(&["commands", "scan", "--prefix", "history", "one.py"]);
    assert!(clash.code == 1 && clash.err.contains("--prefix gives tools other names"), "{}", clash.err);
    assert_eq!(command().current_dir(project.path()).args(["commands"]).output().unwrap().status.code(), Some(2));
}
