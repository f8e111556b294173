//! Declared commands as tools of the registry.
//!
//! Promises: what a declaration needs of this machine (its program, its directory) is looked for once, at the start, and a fault is a sentence
//! with its key; a call is one child process under the rules of `child`; at most `commands.running_max` run at once; at the end of the server
//! none is left.
//! Does not: decide who may call, wait for the caller's own place, or keep answers: the gate does, from the entry.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    argv::{self, Bounds},
    child::{self, Fault, Groups, Job},
    program, said, schema,
    strays::{self, Calls},
};
use crate::{
    config::{Config, commands::Command},
    tools::{
        Answer, Decoded, Entry, ToolError, Toolset, UNKNOWN, Weight,
        declared::{Asked, Declared, Registry, Running},
    },
};

/// Variables of the server's environment that every command gets (decision 18).
const PASSED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// The one name in a call's canonical arguments.
const ARGV: &str = "argv";

/// The declared commands of a server.
#[derive(Clone, Default)]
pub struct Commands {
    /// The tools, after the program's own.
    pub registry: Registry,
    groups: Groups,
    calls: Calls,
}

/// Where commands run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The project's root; none on a server of many organizations.
    pub root: Option<&'a Path>,
    /// The longest that a call may run whatever its declaration says; none where nobody else waits for it.
    pub within: Option<Duration>,
}

impl Commands {
    /// The commands that `config` declares, to be run at `place`.
    ///
    /// # Errors
    /// A sentence for each program or directory that is not there.
    pub fn declare(config: &Config, place: Place<'_>) -> Result<Self, Vec<String>> {
        let (groups, calls) = (Groups::default(), Calls::default());
        let shared = Arc::new(Shared {
            groups: groups.clone(),
            calls: calls.clone(),
            seats: Arc::new(Semaphore::new(config.commands.running_max)),
            seats_count: config.commands.running_max,
            wait: Duration::from_secs(config.commands.wait_s),
            bounds: Bounds { value_bytes_max: config.commands.value_bytes_max, values_max: config.commands.values_max },
            stderr_max: config.commands.stderr_bytes_max,
        });
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        for (index, command) in config.command.iter().enumerate() {
            match Tool::new(command, index, place, shared.clone()) {
                Ok(tool) => entries.push(entry(tool)),
                Err(told) => faults.extend(told),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        if !entries.is_empty() {
            Calls::adopt();
        }
        Ok(Self { registry: Registry::with(entries), groups, calls })
    }

    /// Kills what runs and whatever would still be started (decision 80).
    pub fn close(&self) {
        self.groups.close();
        self.calls.end_all();
    }

    /// How many run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.groups.count()
    }
}

/// Values of the declarations that are secrets by their names, for whoever redacts.
pub fn secrets(config: &Config) -> impl Iterator<Item = String> + '_ {
    let secret = |name: &str| ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.to_ascii_uppercase().contains(word));
    let all = config.command.iter().flat_map(|command| &command.set_env);
    all.filter(move |(name, _)| secret(name)).map(|(_, value)| value.clone())
}

/// What all commands share.
struct Shared {
    groups: Groups,
    calls: Calls,
    seats: Arc<Semaphore>,
    seats_count: usize,
    wait: Duration,
    bounds: Bounds,
    stderr_max: usize,
}

struct Tool {
    command: Command,
    program: PathBuf,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    within: Duration,
    names: Vec<String>,
    /// Paths of the server's that strangers must not read, the longest first.
    places: Vec<String>,
    shared: Arc<Shared>,
}

impl Tool {
    fn new(command: &Command, index: usize, place: Place<'_>, shared: Arc<Shared>) -> Result<Arc<Self>, Vec<String>> {
        if let Some(told) = command.fault_without_project(index).filter(|_| place.root.is_none()) {
            return Err(vec![told]);
        }
        let directory = place.root.map_or_else(PathBuf::new, Path::to_path_buf).join(&command.directory);
        let environment = environment(command);
        let told = |key: &str, is: &str, must: &str| format!("command[{index}].{key} is {is:?}; it must be {must}");
        let mut faults = Vec::new();
        if !directory.is_dir() {
            faults.push(told("directory", &command.directory, "a directory that is there"));
        }
        let program = program::found(&command.program, &directory, &environment);
        if program.is_none() {
            faults.push(told("program", &command.program, "a program that is there and may be run: a name on the PATH, or a path"));
        }
        let Some(program) = program.filter(|_| faults.is_empty()) else { return Err(faults) };
        let own = Duration::from_secs(command.timeout_s);
        Ok(Arc::new(Self {
            names: argv::taken(command, false).map(|one| one.name.to_owned()).collect(),
            within: place.within.map_or(own, |longest| own.min(longest)),
            places: places(&program, &directory, &environment),
            command: command.clone(),
            program,
            directory,
            environment,
            shared,
        }))
    }

    fn job(&self, args: Vec<String>) -> Job {
        Job {
            program: self.program.clone(),
            args,
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            within: self.within,
            stdout_max: self.command.output_bytes_max,
            stderr_max: self.shared.stderr_max,
        }
    }

    /// A place among the running, unless whoever asked has left before there is one.
    async fn seat(&self, asked: &Asked) -> Result<OwnedSemaphorePermit, ToolError> {
        let gone = async {
            match &asked.left {
                Some(left) => left.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let wait = self.shared.wait;
        tokio::select! {
            biased;
            () = gone => Err(ToolError::Said("nobody waits for the answer any more".to_owned())),
            seat = tokio::time::timeout(wait, self.shared.seats.clone().acquire_owned()) => match seat {
                Ok(Ok(seat)) => Ok(seat),
                _ => Err(ToolError::Said(format!(
                    "busy: all {} places for commands were taken for {} s; try again later", self.shared.seats_count, wait.as_secs()
                ))),
            },
        }
    }

    async fn answer(&self, asked: Asked) -> Result<Answer, ToolError> {
        let args = asked.arguments.get(ARGV).and_then(Value::as_array).into_iter().flatten();
        let args = args.filter_map(Value::as_str).map(str::to_owned).collect();
        let _seat = self.seat(&asked).await?;
        let call = self.shared.calls.begin();
        let mut job = self.job(args);
        job.environment.push((strays::VARIABLE.into(), call.mark().into()));
        let ended = child::run(job, &self.shared.groups).await;
        call.end().await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(Fault::TooMuch) => return Err(self.too_much(asked.public)),
            Err(fault) => return Err(ToolError::Internal(format!("command {}: {fault}", self.command.name))),
        };
        if ended.code != 0 {
            let places = asked.public.then_some(self.places.as_slice());
            return Err(ToolError::Exit { code: ended.code, said: said::refusal(&ended, self.within.as_secs(), places) });
        }
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let json = if self.is_json() { said::json(&text).map_err(|why| self.no_json(&why))? } else { RawValue::NULL.to_owned() };
        Ok(Answer { json, text, lasting: true })
    }

    fn too_much(&self, public: bool) -> ToolError {
        let narrows: Vec<&str> = argv::taken(&self.command, public).map(|one| one.name).collect();
        let narrow = if narrows.is_empty() { String::new() } else { format!(". Narrow it with {}", narrows.join(", ")) };
        ToolError::Said(format!(
            "the answer of {} takes more than {} bytes, the most that is sent{narrow}",
            self.command.name, self.command.output_bytes_max
        ))
    }

    fn no_json(&self, why: &str) -> ToolError {
        ToolError::Said(format!("{} printed what is no JSON, which its declaration says that it prints ({why})", self.command.name))
    }

    fn is_json(&self) -> bool {
        self.command.output == "json"
    }
}

/// The registry's row. What it borrows is kept for as long as the process lives, as the row is.
fn entry(tool: Arc<Tool>) -> Entry {
    let kept = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let command = &tool.command;
    let (name, doc) = (kept(&command.name), kept(&command.description));
    let title = if command.title.is_empty() { name } else { kept(&command.title) };
    let scopes: &'static [&'static str] = Box::leak(Box::new([kept(&command.scope)]));
    Entry {
        name,
        verb: name,
        title,
        about: doc,
        doc,
        toolsets: &[Toolset::Commands],
        scopes: Box::leak(Box::new([scopes])),
        of_project: false,
        weight: Weight::Heavy,
        declared: Some(Box::leak(Box::new(Row(tool)))),
        ..UNKNOWN
    }
}

struct Row(Arc<Tool>);

impl Declared for Row {
    fn is_public(&self) -> bool {
        self.0.command.public
    }

    fn argument_names(&self) -> &[String] {
        &self.0.names
    }

    fn input_schema(&self, public: bool) -> Map<String, Value> {
        schema::input(&self.0.command, public)
    }

    fn output_schema(&self) -> Option<Map<String, Value>> {
        self.0.is_json().then(|| Map::from_iter([("type".to_owned(), json!("object"))]))
    }

    fn canonical(&self, arguments: Map<String, Value>, public: bool) -> Decoded {
        let words = argv::build(&self.0.command, self.0.shared.bounds, &arguments, public)?;
        Ok(Map::from_iter([(ARGV.to_owned(), words.into())]))
    }

    fn run(&self, asked: Asked) -> Running {
        let tool = self.0.clone();
        Box::pin(async move { tool.answer(asked).await })
    }
}

/// The whole environment of a command.
fn environment(command: &Command) -> Vec<(OsString, OsString)> {
    let names: BTreeSet<&str> = PASSED.into_iter().chain(command.env.iter().map(String::as_str)).collect();
    let passed = names.into_iter().filter(|name| !command.set_env.contains_key(*name));
    let passed = passed.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    passed.chain(command.set_env.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// What strangers must not read in whatever form, the longest first.
fn places(program: &Path, directory: &Path, environment: &[(OsString, OsString)]) -> Vec<String> {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| PathBuf::from(value));
    let own = [program.parent().map(Path::to_path_buf), Some(directory.to_path_buf()), directory.canonicalize().ok(), home];
    let mut all: Vec<String> = own.into_iter().flatten().filter(|path| path.is_absolute()).map(|path| path.display().to_string()).collect();
    all.retain(|path| path.len() > 1);
    all.sort_by_key(|path| std::cmp::Reverse(path.len()));
    all.dedup();
    all
}
