//! The programs of `runlore worker` and the watched directories' root, held against what could be run and read.
//!
//! Promises: every fault is told at once, with the key and what would be right.
//! Does not: look for the programs: the worker does when it starts, on its own machine.

use std::{collections::BTreeSet, path::Path};

use toml::{Table, Value};

use super::keys::{Connections, Executor};

/// Where a run can be asked for (decision 30).
const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];

/// What is wrong with the tables `worker` and `connections` beyond the kinds of their values, which others tell.
pub fn complaints(table: &Table) -> Vec<String> {
    table.get("worker").into_iter().flat_map(worker).chain(table.get("connections").and_then(connections)).collect()
}

fn connections(section: &Value) -> Option<String> {
    let root = section.clone().try_into::<Connections>().ok()?.root;
    let fit = root.is_empty() || Path::new(&root).is_absolute();
    (!fit).then(|| format!("connections.root is \"{root}\"; it must be an absolute path, or empty"))
}

fn worker(section: &Value) -> Vec<String> {
    let executors = section.get("executor").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (index, value) in executors.iter().enumerate() {
        let Ok(executor) = value.clone().try_into::<Executor>() else { continue };
        let place = format!("worker.executor[{index}]");
        if !executor.name.is_empty() && !seen.insert(executor.name.clone()) {
            all.push(format!("{place}.name is \"{}\", as another's; it must be its own", executor.name));
        }
        all.extend(faults(&executor).into_iter().map(|(key, is, must)| format!("{place}.{key} is {is}; it must be {must}")));
    }
    all
}

type Fault = (&'static str, String, &'static str);

fn faults(executor: &Executor) -> Vec<Fault> {
    let quoted = |text: &str| format!("\"{}\"", text.escape_debug());
    let name = &executor.name;
    let is_name = !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control);
    let program = Path::new(&executor.program);
    let is_program = !executor.program.is_empty() && (program.is_absolute() || !executor.program.contains('/'));
    let strange = executor.environments.iter().find(|name| !ENVIRONMENTS.contains(&name.as_str()));
    let wrong = executor.env.iter().find(|name| name.is_empty() || name.contains(['=', '\0']));
    let directory = &executor.directory;
    [
        (!is_name).then(|| ("name", quoted(name), "1 to 64 bytes without control characters")),
        executor
            .evaluations
            .is_empty()
            .then(|| ("evaluations", "empty".to_owned(), "ids of evaluations, such as [\"math\"], or [\"*\"] for all")),
        executor.evaluations.iter().any(String::is_empty).then(|| ("evaluations", "a list with an empty text".to_owned(), "a list of ids")),
        executor.environments.is_empty().then(|| ("environments", "empty".to_owned(), "some of dev, staging, prod")),
        strange.map(|name| ("environments", format!("a list with {}", quoted(name)), "some of dev, staging, prod")),
        (!is_program).then(|| ("program", quoted(&executor.program), "an absolute path, or a name without / that is in PATH")),
        wrong.map(|name| {
            ("env", format!("a list with {}", quoted(name)), "a list of names, such as OPENAI_API_KEY; values are the worker's own")
        }),
        (!directory.is_empty() && !Path::new(directory).is_absolute())
            .then(|| ("directory", quoted(directory), "an absolute path, or empty")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn complaints(text: &str) -> Vec<String> {
        let error = Config::parse(text, "x").expect_err("this config is wrong").to_string();
        error.strip_prefix("x: ").unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_key_and_what_is_right() {
        let text = r#"
[connections]
root = "logs"
[[worker.executor]]
name = "a"
evaluations = ["*"]
program = "/bin/true"
[[worker.executor]]
name = "a"
program = "bin/true"
environments = ["dev", "live"]
directory = "x"
env = ["A=1"]
[[worker.executor]]
evaluations = [""]
environments = []
timeout_s = 0
"#;
        let must = [
            r#"worker.executor[2].timeout_s is 0; it must be from 1 to 604800"#,
            r#"worker.executor[1].name is "a", as another's; it must be its own"#,
            r#"worker.executor[1].evaluations is empty; it must be ids of evaluations, such as ["math"], or ["*"] for all"#,
            r#"worker.executor[1].environments is a list with "live"; it must be some of dev, staging, prod"#,
            r#"worker.executor[1].program is "bin/true"; it must be an absolute path, or a name without / that is in PATH"#,
            r#"worker.executor[1].env is a list with "A=1"; it must be a list of names, such as OPENAI_API_KEY; values are the worker's own"#,
            r#"worker.executor[1].directory is "x"; it must be an absolute path, or empty"#,
            r#"worker.executor[2].name is ""; it must be 1 to 64 bytes without control characters"#,
            r#"worker.executor[2].evaluations is a list with an empty text; it must be a list of ids"#,
            r#"worker.executor[2].environments is empty; it must be some of dev, staging, prod"#,
            r#"worker.executor[2].program is ""; it must be an absolute path, or a name without / that is in PATH"#,
            r#"connections.root is "logs"; it must be an absolute path, or empty"#,
        ];
        let told = complaints(text);
        for sentence in must {
            assert!(told.iter().any(|one| one == sentence), "{sentence}\nis not among\n{}", told.join("\n"));
        }
        assert_eq!(told.len(), must.len(), "{}", told.join("\n"));
    }

    #[test]
    fn what_is_declared_is_what_the_worker_gets() {
        let text = "[[worker.executor]]\nname = \"a\"\nevaluations = [\"math/*\"]\nprogram = \"python3\"\nargs = [\"-u\"]\n";
        let executor = &Config::parse(text, "x").unwrap().worker.executor[0];
        assert_eq!((executor.program.as_str(), executor.timeout_s, executor.environments.len()), ("python3", 3600, 3));
        assert!(Config::default().worker.executor.is_empty() && Config::default().connections.root.is_empty());
    }
}
