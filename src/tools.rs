//! Tools: what an agent calls and a person runs, from one declaration each.
//!
//! Promises: a tool is one file and one word in [`ENTRIES`]; its arguments, schema, `--help` and decoding come from one struct; its text and
//! its JSON from one result. Calls block and belong on the blocking pool.
//! Does not: know MCP, HTTP or SQL; check who may call (the gate does, from the entry's own fields).

pub mod arguments;
pub mod canonical;
pub mod catalog;
pub mod cursor;
pub mod declared;
pub mod error;
pub mod history;
pub mod projections;
pub mod query;
pub mod render;
pub mod resolve;
pub mod tool_api;
pub mod toolsets;
#[cfg(feature = "fixtures")]
pub mod trivial;
pub mod uri;
pub mod workspace;
pub mod write;

use std::sync::{Arc, LazyLock};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

pub use self::{
    error::ToolError,
    toolsets::{Toolset, Toolsets},
    write::Effect,
};
use self::{
    render::Style,
    write::{Consent, Rules},
};
use crate::{
    auth::{Caller, Role},
    domain::time::Timestamp,
    store::Store,
    telemetry::redaction::Redactor,
};

/// All tools, in the order that `tools/list` has them.
pub static ENTRIES: &[Entry] = &[
    Entry::of::<history::failures::Failures>(),
    Entry::of::<history::history::History>(),
    Entry::of::<history::show::Show>(),
    Entry::of::<history::compare::Compare>(),
    Entry::of::<history::verify::Verify>(),
    Entry::of::<history::plan_run::PlanRun>(),
    Entry::of::<history::analysis::Analysis>(),
    Entry::of::<history::transcript::Transcript>(),
    Entry::of::<history::runs_list::RunsList>(),
    Entry::of::<query::free::Query>(),
    Entry::of::<query::schema::QuerySchema>(),
    Entry::of::<query::views::Lift>(),
    Entry::of::<query::views::FamilyLift>(),
    Entry::of::<query::views::Effort>(),
    Entry::of::<query::views::Contrasts>(),
    Entry::of::<query::views::QuestionPairs>(),
    Entry::of::<query::views::AttemptAnswers>(),
    Entry::of::<query::views::FactorEffects>(),
    Entry::of::<query::views::SkillReads>(),
    Entry::of::<query::views::ContextUse>(),
    Entry::of::<query::views::SkillFiles>(),
    Entry::of::<query::views::FlakyCells>(),
    Entry::of::<query::views::Drift>(),
    Entry::of::<query::views::FailingAttempts>(),
    Entry::of::<query::views::EvalTrend>(),
    Entry::of::<query::views::VerdictFlips>(),
    Entry::of::<query::views::CheckDiscrimination>(),
    Entry::of::<query::views::CheckRates>(),
    Entry::of::<query::views::CheckStreaks>(),
    Entry::of::<catalog::overview::Overview>(),
    Entry::of::<catalog::datasets::Datasets>(),
    Entry::of::<catalog::dataset_items::DatasetItems>(),
    Entry::of::<catalog::arms::Arms>(),
    Entry::of::<catalog::goals::Goals>(),
    Entry::of::<catalog::references::References>(),
    Entry::of::<catalog::metrics::Metrics>(),
    Entry::of::<catalog::activity::Activity>(),
    Entry::of::<catalog::search::Search>(),
    Entry::of::<catalog::inspect::Inspect>(),
    Entry::of::<catalog::rounds::Rounds>(),
    Entry::of::<catalog::validate::Validate>(),
    Entry::of::<projections::list_eval_run_projections::ListEvalRunProjections>(),
    Entry::of::<workspace::project_inspect::ProjectInspect>(),
    Entry::of::<workspace::project_plan::ProjectPlan>(),
    Entry::of::<workspace::evaluations_list::EvaluationsList>(),
    Entry::of::<workspace::run_explain::RunExplain>(),
    Entry::of::<workspace::baseline_lineage::BaselineLineage>(),
    Entry::of::<workspace::docs_search::DocsSearch>(),
    Entry::of::<workspace::connections_list::ConnectionsList>(),
    Entry::of::<workspace::connections_catalog::ConnectionsCatalog>(),
    Entry::of::<workspace::connector_health::ConnectorHealth>(),
    Entry::of::<workspace::whoami::Whoami>(),
    Entry::writes::<workspace::evaluations_create::EvaluationsCreate>(),
    Entry::writes::<workspace::test_cases_add::TestCasesAdd>(),
    Entry::writes::<workspace::runs_start::RunsStart>(),
    Entry::writes::<workspace::traces_create::TracesCreate>(),
    Entry::writes::<workspace::connections_create::ConnectionsCreate>(),
    Entry::writes::<workspace::connections_update::ConnectionsUpdate>(),
    Entry::writes::<workspace::connections_delete::ConnectionsDelete>(),
    Entry::writes::<workspace::connections_sync::ConnectionsSync>(),
    #[cfg(feature = "fixtures")]
    Entry::of::<trivial::Trivial>(),
];

/// What a tool costs, which decides the queue that it waits in (decision 34).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Milliseconds: several at once for one caller.
    Light,
    /// Possibly seconds: one at a time for one caller.
    Heavy,
}

/// Bounds on answers; each is a config key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a result's JSON, over MCP.
    pub result_bytes: usize,
    /// Bytes of a resource's body.
    pub resource_bytes: usize,
    /// Rows of a `history` or `compare` answer.
    pub rows: usize,
    /// Bytes of one transcript line.
    pub line_bytes: usize,
    /// Bytes of one transcript line in the tail that `failures` shows.
    pub tail_line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { result_bytes: 1024 * 1024, resource_bytes: 8 * 1024 * 1024, rows: 500, line_bytes: 32 * 1024, tail_line_bytes: 1024 }
    }
}

/// What a call may use.
#[derive(Clone)]
pub struct Ctx {
    /// The project; [`crate::store::Absent`] for a tool that is about none.
    pub store: Arc<dyn Store>,
    /// What tells the project from every other of this server: a cursor of one is none of another.
    pub project: Arc<str>,
    /// For a tool that is about no project: the names of those that the caller may see.
    pub projects: Arc<[String]>,
    /// Who asks.
    pub caller: Caller,
    /// When.
    pub now: Timestamp,
    /// How much may be answered.
    pub limits: Limits,
    /// How text is to look.
    pub style: Style,
    /// What the answer should say besides: that the index is not whole.
    pub note: Option<String>,
    /// For a tool that writes: by whom and by which leave.
    pub consent: Option<Consent>,
    /// What holds for writes.
    pub rules: Rules,
    /// What replaces secrets in what is kept.
    pub redactor: Arc<Redactor>,
}

impl Ctx {
    /// A call about `store` alone: no project's name, the usual limits, plain text, no note.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, caller: Caller, now: Timestamp) -> Self {
        let (limits, style, redactor) = (Limits::default(), Style::PLAIN, PATTERNS.clone());
        let rules = Rules::default();
        Self { store, project: "".into(), projects: [].into(), caller, now, limits, style, note: None, consent: None, rules, redactor }
    }
}

/// What is replaced where nobody says more; made once, since its automaton takes longer than a call.
static PATTERNS: LazyLock<Arc<Redactor>> = LazyLock::new(|| Arc::new(Redactor::patterns_only()));

/// A result: the JSON that a program reads and the text that a person reads.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The typed result, serialised once: an object; `null` where the answer is text alone, which only a declared tool's may be.
    pub json: Box<RawValue>,
    /// A short rendering of the same.
    pub text: String,
    /// Whether it stays true until the store's generation rises: then it may be kept.
    pub lasting: bool,
}

/// One tool. Implemented by an empty type; everything else derives from it.
pub trait Tool {
    /// The name, in snake_case.
    const NAME: &'static str;
    /// The same as a command-line verb, in kebab-case.
    const VERB: &'static str = Self::NAME;
    /// Another name that it is called by and that no list shows (decision 84).
    const ALIAS: Option<&'static str> = None;
    /// The title that people see.
    const TITLE: &'static str;
    /// What it answers, in a few words: its line in `runlore --help`.
    const ABOUT: &'static str;
    /// What it answers, in a sentence or two: the description for agents and the head of its own `--help`.
    const DOC: &'static str;
    /// The toolsets that it is in.
    const TOOLSETS: &'static [Toolset] = &[Toolset::History];
    /// The scopes of which the caller needs one of each group.
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read"]];
    /// The least role.
    const ROLE: Role = Role::Viewer;
    /// Whether it is about one project.
    const OF_PROJECT: bool = true;
    /// The argument that names the project, where a document fixes one and the schema has it; else the registry adds its own where a caller
    /// sees several.
    const PROJECT_ARGUMENT: Option<&'static str> = None;
    /// Whether it stands in the list of those who brought no credential (decision 46): what is still being tried does not.
    const RELEASED: bool = false;
    /// Arguments that ask for texts of attempts: for whom may not read those, they are not there (decision 35).
    const TEXT_ARGUMENTS: &'static [&'static str] = &[];
    /// What it costs.
    const WEIGHT: Weight = Weight::Light;
    /// The arguments that narrow an answer, named when one is too large.
    const NARROWS: &'static str;
    /// Whether answers may be kept while the store's generation stays (decision 82): not where they depend on more than the store, the
    /// arguments and what the caller may see.
    const CACHEABLE: bool = true;

    /// The arguments.
    type Input: Args + DeserializeOwned + Serialize + JsonSchema;
    /// The result.
    type Output: Serialize + JsonSchema;

    /// The JSON Schema of the arguments; a tool gives one itself where a document fixes it.
    #[must_use]
    fn input_schema() -> Map<String, Value> {
        arguments::input_schema::<Self::Input>()
    }

    /// The JSON Schema of the result; likewise.
    #[must_use]
    fn output_schema() -> Map<String, Value> {
        arguments::output_schema::<Self::Output>()
    }

    /// The arguments of a command line.
    ///
    /// # Errors
    /// clap's, where they cannot be read.
    fn words(matches: &ArgMatches) -> Result<Self::Input, clap::Error> {
        Self::Input::from_arg_matches(matches)
    }

    /// Answers.
    ///
    /// # Errors
    /// [`ToolError`], whose text is for the caller.
    fn call(ctx: &Ctx, input: Self::Input) -> Result<Self::Output, ToolError>;

    /// Where the result says what else should be known.
    fn note(output: &mut Self::Output) -> &mut Option<String>;

    /// Whether this one answer may be kept, where the tool's may.
    fn lasting(_: &Self::Output) -> bool {
        true
    }

    /// The answer as text for people.
    fn text(output: &Self::Output, style: &Style) -> String;
}

/// A tool's arguments, as the tool has them.
pub type Decoded = Result<Map<String, Value>, ToolError>;

/// A tool with its types erased: a row of the registry.
pub struct Entry {
    /// [`Tool::NAME`].
    pub name: &'static str,
    /// [`Tool::VERB`].
    pub verb: &'static str,
    /// [`Tool::ALIAS`].
    pub alias: Option<&'static str>,
    /// [`Tool::TITLE`].
    pub title: &'static str,
    /// [`Tool::ABOUT`].
    pub about: &'static str,
    /// [`Tool::DOC`].
    pub doc: &'static str,
    /// [`Tool::TOOLSETS`].
    pub toolsets: &'static [Toolset],
    /// [`Tool::SCOPES`].
    pub scopes: &'static [&'static [&'static str]],
    /// [`Tool::ROLE`].
    pub role: Role,
    /// [`Tool::OF_PROJECT`].
    pub of_project: bool,
    /// [`Tool::PROJECT_ARGUMENT`].
    pub project_argument: Option<&'static str>,
    /// [`Tool::TEXT_ARGUMENTS`].
    pub text_arguments: &'static [&'static str],
    /// [`Tool::RELEASED`].
    pub released: bool,
    /// [`Tool::WEIGHT`].
    pub weight: Weight,
    /// [`Tool::CACHEABLE`].
    pub cacheable: bool,
    /// Whether it reads or writes.
    pub effect: Effect,
    /// Where an operator declared it: then what follows is not asked.
    pub declared: Option<&'static dyn declared::Declared>,
    /// The JSON Schema of the arguments.
    pub input_schema: fn() -> Map<String, Value>,
    /// The JSON Schema of the result.
    pub output_schema: fn() -> Map<String, Value>,
    /// The arguments as a command line.
    pub command: fn() -> Command,
    /// A command line's arguments as JSON.
    pub arguments: fn(&ArgMatches) -> Result<Map<String, Value>, clap::Error>,
    /// Checks the arguments and writes them as the tool has them: defaults in, `null` out.
    pub canonical: fn(Map<String, Value>) -> Decoded,
    /// Decodes the arguments, answers, renders.
    pub run: fn(&Ctx, Map<String, Value>) -> Result<Answer, ToolError>,
}

impl Entry {
    const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            verb: T::VERB,
            alias: T::ALIAS,
            title: T::TITLE,
            about: T::ABOUT,
            doc: T::DOC,
            toolsets: T::TOOLSETS,
            scopes: T::SCOPES,
            role: T::ROLE,
            of_project: T::OF_PROJECT,
            project_argument: T::PROJECT_ARGUMENT,
            released: T::RELEASED,
            text_arguments: T::TEXT_ARGUMENTS,
            weight: T::WEIGHT,
            cacheable: T::CACHEABLE,
            effect: Effect::Read,
            declared: None,
            input_schema: T::input_schema,
            output_schema: T::output_schema,
            command: command::<T>,
            arguments: from_matches::<T>,
            canonical: canonical_of::<T::Input>,
            run: run::<T>,
        }
    }
}

/// What a call of a tool that is not there is counted and logged as (decision 37). It is in no list and cannot be called.
pub static UNKNOWN: Entry = Entry {
    name: "unknown",
    verb: "unknown",
    alias: None,
    about: "",
    title: "",
    doc: "",
    toolsets: &[],
    scopes: &[],
    role: Role::Viewer,
    of_project: true,
    project_argument: None,
    text_arguments: &[],
    released: false,
    weight: Weight::Light,
    cacheable: false,
    effect: Effect::Read,
    declared: None,
    input_schema: Map::new,
    output_schema: Map::new,
    command: || Command::new("unknown"),
    arguments: |_| Ok(Map::new()),
    canonical: |_| Err(not_there()),
    run: |_, _| Err(not_there()),
};

fn not_there() -> ToolError {
    ToolError::NotFound("there is no such tool".to_owned())
}

/// The tools of MCP and of the HTTP tool API: whatever is called by a name from outside.
pub fn everywhere() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().chain(tool_api::ENTRIES)
}

/// The names of `entry`'s arguments. A schema is made anew each time it is asked for, so they are kept.
#[must_use]
pub fn argument_names(entry: &'static Entry) -> &'static [String] {
    if let Some(declared) = entry.declared {
        return declared.argument_names();
    }
    static KEPT: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| everywhere().map(names_of).collect());
    let index = everywhere().position(|other| std::ptr::eq(other, entry));
    index.and_then(|index| KEPT.get(index)).map_or(&[], Vec::as_slice)
}

/// The tools that read: all there are on the command line and for `runlore mcp` (decision 48).
pub fn readers() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(|entry| !entry.effect.writes())
}

fn names_of(entry: &Entry) -> Vec<String> {
    let schema = (entry.input_schema)();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|names| names.keys().cloned()).collect()
}

/// The entry that `name` means: its own name, one with dots or dashes for underscores, or its alias to the letter (decision 84).
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    let plain = plain(name);
    ENTRIES.iter().find(|entry| entry.name == plain || entry.alias == Some(name))
}

/// A name with dots or dashes as one with underscores.
fn plain(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

fn command<T: Tool>() -> Command {
    // After the arguments: their struct's own documentation would stand in place of these.
    let command = T::Input::augment_args(Command::new(T::VERB)).about(T::ABOUT).long_about(T::DOC);
    // Who read the tool's name in an answer may type it.
    if T::NAME == T::VERB { command } else { command.alias(T::NAME) }
}

fn from_matches<T: Tool>(matches: &ArgMatches) -> Result<Map<String, Value>, clap::Error> {
    let input = T::words(matches)?;
    match serde_json::to_value(input) {
        Ok(Value::Object(map)) => Ok(map.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        _ => Err(clap::Error::raw(clap::error::ErrorKind::Format, "the arguments could not be read\n")),
    }
}

fn run<T: Tool>(ctx: &Ctx, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
    let mut output = T::call(ctx, arguments::decode(arguments)?).map_err(|error| error.beside(ctx.note.as_deref()))?;
    if let Some(said) = &ctx.note {
        let note = T::note(&mut output);
        *note = Some(note.take().map_or_else(|| said.clone(), |own| format!("{own} {said}")));
    }
    let json = serde_json::value::to_raw_value(&output).map_err(|error| ToolError::Internal(error.to_string()))?;
    if json.get().len() > ctx.limits.result_bytes {
        return Err(ToolError::TooLarge { tool: T::NAME, bytes: json.get().len(), max: ctx.limits.result_bytes, narrows: T::NARROWS });
    }
    Ok(Answer { json, text: T::text(&output, &ctx.style), lasting: T::lasting(&output) })
}

/// The arguments of one `I`, checked and written as the tool has them.
fn canonical_of<I: DeserializeOwned + Serialize>(arguments: Map<String, Value>) -> Decoded {
    let input: I = arguments::decode(arguments)?;
    match serde_json::to_value(input).map_err(|error| ToolError::Internal(error.to_string()))? {
        Value::Object(mut map) => {
            map.retain(|_, value| !value.is_null());
            Ok(map)
        }
        _ => Err(ToolError::Internal("a tool's arguments are no object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_aliases_find_them() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES.iter().skip(index + 1).all(|other| other.name != entry.name), "{}", entry.name);
            assert!(entry.effect.writes() || entry.verb == entry.name.replace('_', "-"), "{}", entry.name);
            assert!(entry.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", entry.name);
        }
        assert_eq!(find("runs-list").map(|entry| entry.name), Some("runs_list"));
        assert_eq!(find("runs.list").map(|entry| entry.name), Some("runs_list"));
        assert!(find("runs list").is_none());
        let alias = "veryfront__list_eval_run_projections";
        assert_eq!(find(alias).map(|entry| entry.name), Some("list_eval_run_projections"));
        assert!(find("veryfront--list-eval-run-projections").is_none() && ENTRIES.iter().all(|entry| entry.name != alias));
    }

    /// Decisions 27 and 28: the tools give evidence, and no tool takes, gives or makes a release decision.
    #[test]
    fn no_tool_decides() {
        const DECIDED: [&str; 3] = ["classification", "invokeEvalGate", "releaseDecision"];
        const MADE: [&str; 7] = ["baseline_accept", "quality_upload", "upload_results", "release", "promote", "approve", "merge"];
        fn names(schema: &Value, out: &mut Vec<String>) {
            match schema {
                Value::Object(map) => map.iter().for_each(|(name, inner)| {
                    out.push(name.clone());
                    names(inner, out);
                }),
                Value::Array(list) => list.iter().for_each(|one| names(one, out)),
                Value::String(word) => out.push(word.clone()),
                _ => {}
            }
        }
        for entry in ENTRIES {
            let mut all = Vec::new();
            names(&Value::Object((entry.output_schema)()), &mut all);
            all.extend(argument_names(entry).iter().cloned());
            assert!(DECIDED.iter().all(|word| !all.iter().any(|name| name == word)), "{}", entry.name);
            for word in DECIDED {
                let refused = (entry.canonical)(Map::from_iter([(word.to_owned(), "block".into())])).unwrap_err().to_string();
                assert!(refused.contains("unknown argument") && refused.contains(word), "{}: {refused}", entry.name);
            }
            assert!(MADE.iter().all(|word| !entry.name.contains(word)), "{}", entry.name);
        }
    }

    #[test]
    fn canonical_arguments_are_their_own_canonical_form() {
        for entry in readers() {
            let required = (entry.input_schema)().get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let given: Map<String, Value> = required.iter().filter_map(|name| Some((name.as_str()?.to_owned(), "latest".into()))).collect();
            let once = (entry.canonical)(given).unwrap();
            assert_eq!((entry.canonical)(once.clone()).unwrap(), once, "{}", entry.name);
            assert!(once.keys().all(|name| argument_names(entry).contains(name)), "{}", entry.name);
        }
    }

    #[test]
    fn an_empty_command_line_and_an_empty_object_mean_the_same() {
        for entry in readers() {
            let required = (entry.input_schema)().get("required").cloned();
            let mut command = (entry.command)();
            let words: Vec<&str> = if required.is_some() { vec![entry.name, "x"] } else { vec![entry.name] };
            let matches = command.try_get_matches_from_mut(words).map_err(|error| error.to_string());
            let arguments = matches.and_then(|matches| (entry.arguments)(&matches).map_err(|error| error.to_string()));
            let schema = (entry.input_schema)();
            for (name, value) in arguments.unwrap_or_default() {
                let default = schema.get("properties").and_then(|all| all.get(&name)).and_then(|one| one.get("default"));
                let wanted = required.iter().flat_map(|all| all.as_array().into_iter().flatten()).any(|one| one == &name);
                assert!(wanted || default == Some(&value), "{} {name}: {value} on the command line, {default:?} in the schema", entry.name);
            }
        }
    }
}
