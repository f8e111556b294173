//! `query_<view>`: the views that answer the usual questions, one tool each, from one table (DESIGN.md section 6).
//!
//! Promises: a tool is one row of the table below; its columns are those of the store's own schema, so a condition on an unknown one is refused
//! with the nearest; rows stand in the order of the view's keys, so the same question has the same answer.
//! Does not: count or test anything (the store's helper tables and their views do).

use std::collections::BTreeMap;

use clap::Args;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::free;
use crate::{
    domain::{attempt::shorten, text::clean},
    store::Query,
    tools::{Ctx, Tool, ToolError, Toolset, Weight, arguments::Bounded, render::Style},
};

/// A view.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What its rows stand in the order of.
    pub order: &'static str,
    /// What a row is and what its columns mean.
    pub doc: &'static str,
}

/// The arguments of every `query_<view>`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Columns and the values that they equal.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    #[serde(
        rename = "where",
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "as_object",
        deserialize_with = "from_object"
    )]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub equal: Vec<Equality>,
    /// How many rows.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 1000, 100>,
}

/// A column and the value that it equals.
#[derive(Debug, Clone, PartialEq)]
pub struct Equality {
    column: String,
    value: Value,
}

impl std::str::FromStr for Equality {
    type Err = String;

    /// On a command line: null, true, false and numbers are themselves, anything else is text.
    fn from_str(text: &str) -> Result<Self, String> {
        let (column, value) = text.split_once('=').ok_or("give a column, = and a value, as in arm=gpt")?;
        let plain = serde_json::from_str(value).ok().filter(|value: &Value| value.is_null() || value.is_boolean() || value.is_number());
        Ok(Self { column: column.to_owned(), value: plain.unwrap_or_else(|| value.into()) })
    }
}

fn as_object<S: Serializer>(equal: &[Equality], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(equal.iter().map(|Equality { column, value }| (column, value)))
}

fn from_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Equality>, D::Error> {
    let held = BTreeMap::<String, Value>::deserialize(deserializer)?;
    Ok(held.into_iter().map(|(column, value)| Equality { column, value }).collect())
}

/// As `query`'s. Its schema stands in a list of tools eighteen times, and so says the least.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Output(free::Output);

impl JsonSchema for Output {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "required": ["columns", "rows", "truncated"]})
    }
}

fn call(ctx: &Ctx, view: &View, input: &Input) -> Result<Output, ToolError> {
    let objects = ctx.store.objects()?;
    let columns = objects.into_iter().find(|object| object.name == view.name).map(|object| object.columns).unwrap_or_default();
    let columns: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    for Equality { column, .. } in &input.equal {
        if !columns.contains(&column.as_str()) {
            return Err(ToolError::Argument(unknown(view, column, &columns)));
        }
    }
    free::ask(ctx, question(view, input, &columns)).map(Output)
}

/// All columns by name: those that the caller may not read are not among them.
fn question(view: &View, input: &Input, columns: &[&str]) -> Query {
    let mut sql = format!("SELECT {} FROM \"{}\"", columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "), view.name);
    let conditions: Vec<String> =
        (1..).zip(&input.equal).map(|(number, Equality { column, .. })| format!("{} IS ?{number}", quoted(column))).collect();
    if !conditions.is_empty() {
        sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    sql.push_str(&format!(" ORDER BY {}", view.order));
    let values = input.equal.iter().map(|Equality { value, .. }| value.clone()).collect();
    Query { sql, values, limit: input.limit.count() }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// From here on two names are too different to be a slip.
const SIMILAR: f64 = 0.6;

fn unknown(view: &View, given: &str, columns: &[&str]) -> String {
    let near = columns.iter().map(|name| (strsim::normalized_damerau_levenshtein(given, name), *name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.filter(|(near, _)| *near >= SIMILAR).map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"));
    format!("argument where: {} has no column {}{hint} Its columns: {}", view.name, clean(&shorten(given, 80)), columns.join(", "))
}

/// Makes the table, and of each row a tool.
macro_rules! views {
    ($($type:ident $name:ident $tool:literal $verb:literal $title:literal $order:literal $doc:literal;)*) => {
        /// The views, by the names of their tools.
        pub const VIEWS: &[View] = &[$(View { name: stringify!($name), order: $order, doc: $doc }),*];

        $(
            #[doc = concat!("The tool `", $tool, "`.")]
            pub enum $type {}

            impl Tool for $type {
                const NAME: &'static str = $tool;
                const VERB: &'static str = $verb;
                const TITLE: &'static str = $title;
                const ABOUT: &'static str = $title;
                const DOC: &'static str = $doc;
                const TOOLSETS: &'static [Toolset] = &[Toolset::Query];
                const WEIGHT: Weight = Weight::Heavy;
                const RELEASED: bool = true;
                const NARROWS: &'static str = "where and limit";
                type Input = Input;
                type Output = Output;

                fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
                    call(ctx, &View { name: stringify!($name), order: $order, doc: $doc }, &input)
                }

                fn note(output: &mut Output) -> &mut Option<String> {
                    &mut output.0.note
                }

                fn text(output: &Output, style: &Style) -> String {
                    free::table(&output.0, style)
                }
            }
        )*
    };
}

views! {
    Lift lift "query_lift" "query-lift" "Variant arms against control arms" "evaluation, treatment_arm, control_arm"
        "Per evaluation, treatment (role variant) and control arm, over comparable completed runs: the rates of all attempts; lift is the mean over the n_pairs cases that both counted of treatment - control, with its 95% interval.";
    FamilyLift family_lift "query_family_lift" "query-family-lift" "Lift over a family of evaluations" "family, treatment_arm, control_arm"
        "Per family: the mean of its evaluations' lifts, each counting once, with the standard error and interval over evaluations (null for one).";
    Effort effort "query_effort" "query-effort" "Rate, cost and time by harness, model and effort" "evaluation, harness, model, effort"
        "Per evaluation, harness, model and effort, over comparable completed runs: rate of n counted attempts, interval with cases as unit; means over attempts that have the figure; turns are conversation messages; durations to 3 digits.";
    Contrasts contrasts "query_contrasts" "query-contrasts" "Every two arms of an evaluation" "evaluation, arm_a, arm_b"
        "Per evaluation and pair of arms, over comparable completed runs: rates of all attempts; difference a - b, interval and unadjusted p paired over the n_pairs cases that both counted.";
    QuestionPairs question_pairs "query_question_pairs" "query-question-pairs" "Attempts judged side by side" "run_id, evaluation, question, attempt_a, attempt_b, judge, picked, consistent"
        "Per question asked of two attempts: the factor in which alone their arms differ (else null), which was picked, and whether the other order picked the same (null: not asked).";
    AttemptAnswers attempt_answers "query_attempt_answers" "query-attempt-answers" "Questions answered about attempts" "run_id, attempt, question, judge, passed"
        "Per attempt and question: the answer, whether it is the good one, and who judged.";
    FactorEffects factor_effects "query_factor_effects" "query-factor-effects" "Effect of a factor's levels" "factor, level"
        "Per factor and level: rate of n attempts; effect against the factor's other levels: within each evaluation paired by case, then the mean over n_evaluations, interval over evaluations.";
    SkillReads skill_reads "query_skill_reads" "query-skill-reads" "Which skill files attempts read" "run_id, attempt, skill, file, first_turn"
        "Per attempt and file of a skill: how often it was read, and in which turn first.";
    ContextUse context_use "query_context_use" "query-context-use" "How full context windows were" "run_id, attempt"
        "Per attempt: the most tokens at once, the window's size, and their share.";
    SkillFiles skill_files "query_skill_files" "query-skill-files" "Skill files that runs had" "run_id, skill, file"
        "Per run and file of a skill: size and SHA-256.";
    FlakyCells flaky_cells "query_flaky_cells" "query-flaky-cells" "Cells that disagree with themselves" "run_id, evaluation, arm"
        "Per run, evaluation and arm where tries of one case both passed and failed: flip_rate is the chance that two tries of a case disagree, mean over cases counted twice or more.";
    Drift drift "query_drift" "query-drift" "Slow change of a rate" "evaluation, arm"
        "Per evaluation and arm, over its newest comparable completed runs (10 at most): the newer half against the older; change and p paired by case (one case: p 1), rates over all attempts.";
    FailingAttempts failing_attempts "query_failing_attempts" "query-failing-attempts" "Failed and errored attempts" "run_id, attempt"
        "Per failed or errored attempt of any run: first failed check and reason; failing_since is the run since which its case does not pass, is_new whether it passed just before.";
    EvalTrend eval_trend "query_eval_trend" "query-eval-trend" "Rates run by run" "evaluation, arm, created_at, run_id"
        "Per evaluation, arm and recorded run, oldest first: rate of n counted attempts; moving_rate is the mean rate of this run and the four before.";
    VerdictFlips verdict_flips "query_verdict_flips" "query-verdict-flips" "When verdicts changed" "evaluation, arm, created_at, run_id"
        "Per evaluation, arm and recorded run whose verdict differs from that of the last counted run before.";
    CheckDiscrimination check_discrimination "query_check_discrimination" "query-check-discrimination" "Checks that agree with the others" "evaluation, check_name"
        "Per evaluation and check, over n answers beside other checks: item_rest_correlation of the answer with the share of the attempt's other checks that passed (null without variation).";
    CheckRates check_rates "query_check_rates" "query-check-rates" "How often checks pass" "evaluation, check_name"
        "Per evaluation and check, over counted attempts of comparable completed runs: passed of n answers, interval with cases as unit.";
    CheckStreaks check_streaks "query_check_streaks" "query-check-streaks" "Since when checks pass or fail" "evaluation, arm, check_name"
        "Per evaluation, arm and check: passing or failing (any answer of a run failed) now, for how many comparable completed runs in a row, and since which.";
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        auth::{Caller, Scope},
        domain::{outcome::Outcome, time::Timestamp},
        store::{
            Store,
            contract::{attempt, log},
            sqlite::{Options, Sqlite},
        },
        tools::{ENTRIES, Entry},
    };

    fn ctx(scope: &Scope) -> (Ctx, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let store = Sqlite::open(&path, scope, &Options::default()).unwrap();
        log("a", 1).with([attempt("1", Outcome::Pass), attempt("2", Outcome::Fail)]).put(&store as &dyn Store).unwrap();
        let caller = Caller::local();
        let now = Timestamp::from_millis(0);
        (Ctx::new(Arc::new(store), caller, now), dir)
    }

    fn local() -> (Ctx, tempfile::TempDir) {
        ctx(&Caller::local().local_scope())
    }

    fn entry(view: &str) -> &'static Entry {
        ENTRIES.iter().find(|entry| entry.name == format!("query_{view}")).unwrap()
    }

    fn asked(ctx: &Ctx, view: &str, arguments: Value) -> Result<Value, String> {
        let answer = (entry(view).run)(ctx, arguments.as_object().cloned().unwrap()).map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(answer.json.get()).unwrap())
    }

    #[test]
    fn every_view_of_the_store_is_a_tool_with_its_order() {
        let (ctx, _dir) = local();
        let mut views: Vec<String> =
            ctx.store.objects().unwrap().into_iter().filter(|object| object.view).map(|object| object.name).collect();
        let mut listed: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        views.sort();
        listed.sort_unstable();
        assert_eq!(views, listed);
        for view in VIEWS {
            let answer = asked(&ctx, view.name, json!({})).unwrap();
            assert_eq!(answer["truncated"], json!(false), "{}", view.name);
            let columns = answer["columns"].as_array().unwrap();
            assert!(view.order.split(", ").all(|column| columns.contains(&json!(column))), "{}: {columns:?}", view.name);
            assert_eq!(entry(view.name).doc, view.doc);
        }
    }

    #[test]
    fn where_is_equality() {
        let (ctx, _dir) = local();
        let attempts = |arguments: Value| {
            let answer = asked(&ctx, "failing_attempts", arguments).unwrap();
            (answer["rows"].as_array().unwrap().len(), answer["truncated"].clone())
        };
        assert_eq!(attempts(json!({})), (1, json!(false)));
        assert_eq!(attempts(json!({"where": {"is_new": false, "case_id": "2"}})), (1, json!(false)));
        assert_eq!(attempts(json!({"where": {"is_new": true}})), (0, json!(false)));
        assert_eq!(attempts(json!({"where": {"first_failed_check": null}})), (0, json!(false)));
        assert_eq!(attempts(json!({"where": {"arm": "m' OR 1=1 --"}})), (0, json!(false)));
        let trend = asked(&ctx, "eval_trend", json!({"where": {"rate": 0.5}})).unwrap();
        assert_eq!(trend["rows"].as_array().unwrap().len(), 1);
        assert_eq!(
            asked(&ctx, "drift", json!({"where": {"evaluaton": "e"}})).unwrap_err(),
            "argument where: drift has no column evaluaton; did you mean evaluation? Its columns: evaluation, arm, runs, earlier_rate, recent_rate, change, p_value, n_earlier, n_recent"
        );
        assert!(asked(&ctx, "drift", json!({"where": {"arm": ["m"]}})).unwrap_err().contains("a list or an object"));
        assert!(asked(&ctx, "drift", json!({"where": 7})).unwrap_err().starts_with("argument where"));
    }

    #[test]
    fn a_hidden_text_is_no_column() {
        let (ctx, _dir) = ctx(&Caller::public().local_scope());
        let answer = asked(&ctx, "failing_attempts", json!({})).unwrap();
        assert!(!answer["columns"].as_array().unwrap().contains(&json!("reason")), "{answer}");
        assert!(!answer.to_string().contains("expected 4"), "{answer}");
        assert!(asked(&ctx, "failing_attempts", json!({"where": {"reason": "expected 4 got 2"}})).is_err());
    }

    #[test]
    fn a_command_line_says_the_same() {
        let arguments = |words: &[&str]| {
            let mut command = (entry("drift").command)();
            let matches = command.try_get_matches_from_mut([&["query-drift"], words].concat()).map_err(|error| error.to_string())?;
            (entry("drift").arguments)(&matches).map(Value::Object).map_err(|error| error.to_string())
        };
        assert_eq!(arguments(&[]).unwrap(), json!({"limit": 100}));
        let words = ["--where", "arm=a=b", "--where", "runs=3", "--where", "change=null", "--where", "p_value=0.5", "--limit", "7"];
        assert_eq!(arguments(&words).unwrap(), json!({"where": {"arm": "a=b", "runs": 3, "change": null, "p_value": 0.5}, "limit": 7}));
        assert_eq!(arguments(&["--where", "arm="]).unwrap()["where"], json!({"arm": ""}));
        assert!(arguments(&["--where", "arm"]).unwrap_err().contains("give a column, = and a value"));
    }
}
