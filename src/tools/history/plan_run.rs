//! `plan_run`: how many cases and attempts a difference takes, and what they cost, from an evaluation's own history.
//!
//! Promises: every number comes with what it is from; what the history does not say (cost, time) is null and never 0.
//! Does not: start anything, or promise: the next change may vary more than the last ones did.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kept;
use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        log::RunStatus,
        outcome::{Counts, Outcome},
        planning::{Aim, Spread},
    },
    stats::Method,
    store::{AttemptQuery, CellQuery, Groups, Kind, RunQuery},
    tools::{
        Ctx, Tool, ToolError, Weight,
        arguments::{self, Bounded, Hundredths},
        render::{self, Grid, Style},
    },
};

/// Newest runs that are looked at.
const RUNS: usize = 20;
/// Evaluations and arms that one answer plans; each takes all its cells.
const ROWS: usize = 20;
/// Newest runs whose attempts say what an attempt costs.
const PRICED: usize = 3;

/// The tool.
pub enum PlanRun {}

/// The arguments of `plan_run`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only evaluations whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub evaluation: Option<String>,
    /// Only this arm.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub arm: Option<String>,
    /// The difference of pass rates that is to be detected.
    #[arg(long, value_name = "SHARE", default_value_t)]
    #[serde(default)]
    pub difference: Hundredths<1, 100, 10>,
    /// How surely.
    #[arg(long, value_name = "SHARE", default_value_t)]
    #[serde(default)]
    pub power: Hundredths<50, 99, 80>,
    /// Attempts at each case; without it, the fewest for which the cases that exist are enough.
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub attempts: Option<Bounded<1, 100, 1>>,
    /// Plan to show instead that the pass rate is no worse by so much.
    #[arg(long, value_name = "SHARE")]
    #[serde(default)]
    pub margin: Option<Hundredths<1, 100, 5>>,
}

/// The result of `plan_run`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What is to be detected; null where a margin was given.
    pub difference: Option<f64>,
    /// What is to be excluded.
    pub margin: Option<f64>,
    /// How surely.
    pub power: f64,
    /// One plan for each evaluation and arm, by id.
    pub rows: Vec<Row>,
    /// What else should be known.
    pub note: Option<String>,
    /// How many rows are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
}

/// The plan for one evaluation by one arm, for each of the two runs that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The evaluation's id.
    pub evaluation: String,
    /// The arm.
    pub arm: String,
    /// Cases that it takes; null beyond any plan.
    pub cases: Option<u64>,
    /// Attempts at each.
    pub attempts: u64,
    /// Cases that exist: the most that a run of it held.
    pub exist: u64,
    /// Whether they are enough.
    pub enough: bool,
    /// What one run of it costs; null where no cost is known.
    pub cost_usd: Option<f64>,
    /// How long its attempts take one after another; null where that is not known.
    pub duration_ms: Option<u64>,
    /// The formula.
    pub method: &'static str,
    /// What the plan is from.
    pub from: From,
}

/// The part of the history that a plan is from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct From {
    /// Recorded runs that counted it, of the newest twenty.
    pub runs: usize,
    /// Cases that they counted.
    pub cases: usize,
    /// Attempts that they counted.
    pub attempts: u64,
    /// How its cases vary.
    #[serde(flatten)]
    pub spread: Spread,
}

impl Tool for PlanRun {
    const NAME: &'static str = "plan_run";
    const VERB: &'static str = "plan-run";
    const TITLE: &'static str = "Plan a run";
    const ABOUT: &'static str = "How many cases and attempts a difference takes, with cost and time";
    const DOC: &'static str = "Says how many cases and attempts it takes to detect a difference of pass rates (or with margin, to show that nothing got worse by so much), whether the cases that exist are enough, and what a run costs, from each evaluation's own history.";
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "evaluation and arm";
    type Input = Input;
    type Output = Output;

    /// Short: it stands in every list of tools.
    fn output_schema() -> serde_json::Map<String, serde_json::Value> {
        arguments::shallow_schema::<Output>()
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let query = RunQuery {
            evaluation_contains: input.evaluation.clone(),
            kind: Some(Kind::Recorded),
            status: Some(RunStatus::Completed),
            limit: RUNS,
            ..RunQuery::default()
        };
        let mut runs: Vec<String> = ctx.store.runs(&query)?.0.into_iter().map(|run| run.run_id).collect();
        runs.reverse();
        let none = runs.is_empty();
        let whole = ctx.store.cells(&CellQuery { runs, evaluation_contains: input.evaluation.clone(), ..CellQuery::default() })?;
        let (series, arms) = series(whole, input.arm.as_deref());
        let total = series.len();
        let (mut rows, mut known) = (Vec::new(), Known::new());
        for (key, runs) in series.into_iter().take(ROWS) {
            rows.extend(row(ctx, &input, &mut known, key, runs)?);
        }
        let complete = total <= ROWS;
        Ok(Output {
            difference: input.margin.is_none().then(|| input.difference.get()),
            margin: input.margin.map(Hundredths::get),
            power: input.power.get(),
            note: if total == 0 { Some(nothing(ctx, none.then_some(&query), input.arm.as_deref(), &arms)?) } else { None },
            returned: rows.len(),
            total,
            complete,
            rows,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let aim = match (output.difference, output.margin) {
            (Some(difference), _) => format!("to detect a difference of {difference}"),
            (None, margin) => format!("to show that nothing is worse by {}", margin.unwrap_or_default()),
        };
        let mut parts = vec![format!("{aim} with {:.0}% power, each of the two runs takes:", output.power * 100.0)];
        if !output.rows.is_empty() {
            let heads = ["evaluation", "arm", "cases", "exist", "attempts each", "cost", "time", "from"];
            let mut grid = Grid::new(style, &heads);
            output.rows.iter().for_each(|row| grid.row(shown(row).map(Into::into)));
            parts.push(grid.text());
        }
        if !output.complete {
            parts.push(format!("... and {} more; narrow with evaluation and arm", output.total - output.returned));
        }
        parts.extend(output.note.clone());
        parts.join("\n")
    }
}

fn shown(row: &Row) -> [String; 8] {
    let unknown = || "unknown".to_owned();
    [
        row.evaluation.clone(),
        row.arm.clone(),
        row.cases.map_or_else(|| "too many".to_owned(), |cases| cases.to_string()),
        format!("{}{}", row.exist, if row.enough { "" } else { " (too few)" }),
        row.attempts.to_string(),
        row.cost_usd.map_or_else(unknown, |cost| format!("${cost:.2}")),
        row.duration_ms.map_or_else(unknown, |millis| format!("{:.1} min", millis as f64 / 60_000.0)),
        format!("{} runs, {} attempts", row.from.runs, row.from.attempts),
    ]
}

type Series = BTreeMap<(String, String), Vec<String>>;

/// The runs, oldest first, that counted each evaluation by each arm that is asked for; and all arms.
fn series(cells: Vec<Cell>, arm: Option<&str>) -> (Series, BTreeSet<String>) {
    let (mut series, mut arms) = (Series::new(), BTreeSet::new());
    for cell in cells.into_iter().filter(|cell| cell.verdict.counted()) {
        arms.insert(cell.key.arm.clone());
        if arm.is_none_or(|arm| arm == cell.key.arm) {
            series.entry((cell.key.evaluation, cell.key.arm)).or_default().push(cell.run_id);
        }
    }
    (series, arms)
}

/// Why there is nothing to plan from; `query` found no run where it is given.
fn nothing(ctx: &Ctx, query: Option<&RunQuery>, arm: Option<&str>, arms: &BTreeSet<String>) -> Result<String, ToolError> {
    if let (Some(arm), false) = (arm, arms.is_empty()) {
        let known = arms.iter().take(5).map(|arm| render::clean(arm)).collect::<Vec<_>>().join(", ");
        return Ok(format!("No recorded run counted an attempt by the arm \"{}\"; there are {known}.", render::clean(arm)));
    }
    let none = "No recorded run counted an attempt of such an evaluation: without a history there is nothing to plan from.";
    let kept = match query {
        Some(query) => kept::none_anywhere(ctx, query)?,
        None => None,
    };
    Ok(kept.unwrap_or_else(|| none.to_owned()))
}

fn row(
    ctx: &Ctx,
    input: &Input,
    known: &mut Known,
    (evaluation, arm): (String, String),
    runs: Vec<String>,
) -> Result<Option<Row>, ToolError> {
    let query = CellQuery { runs: runs.clone(), evaluation: Some(evaluation.clone()), grain: Grain::Case, ..CellQuery::default() };
    let mut by_run = BTreeMap::<String, BTreeMap<String, Counts>>::new();
    for cell in ctx.store.cells(&query)?.into_iter().filter(|cell| cell.key.arm == arm) {
        by_run.entry(cell.run_id).or_default().insert(cell.key.case.unwrap_or_default(), cell.counts);
    }
    let counts: Vec<BTreeMap<String, Counts>> = runs.iter().filter_map(|run| by_run.remove(run)).collect();
    let Some(spread) = Spread::of(&counts) else { return Ok(None) };
    let spread = spread.in_groups(&counts, &groups(ctx, known, &evaluation, &runs)?);
    let exist = counts.iter().map(BTreeMap::len).max().unwrap_or_default() as u64;
    let aim = input.margin.map_or(Aim::Difference(input.difference.get()), |margin| Aim::Margin(margin.get()));
    let (attempts, cases) = match input.attempts {
        Some(given) => (given.get(), spread.cases(aim, input.power.get(), given.get())),
        None => spread.plan(aim, input.power.get(), exist),
    };
    let (cost, duration) = price(ctx, &evaluation, &arm, &runs)?;
    let whole = cases.map(|cases| cases as f64 * attempts as f64);
    let plain = attempts == 1 && input.margin.is_none();
    let counted = || counts.iter().flatten().filter(|(_, counts)| counts.counted() > 0);
    let from = From {
        runs: counts.len(),
        cases: counted().map(|(case, _)| case).collect::<BTreeSet<_>>().len(),
        attempts: counted().map(|(_, counts)| u64::from(counts.counted())).sum(),
        spread: spread.shown(),
    };
    Ok(Some(Row {
        enough: cases.is_some_and(|cases| cases <= exist),
        cost_usd: whole.zip(cost).map(|(whole, cost)| (whole * cost * 1e9).round() / 1e9),
        duration_ms: whole.zip(duration).map(|(whole, duration)| (whole * duration).round() as u64),
        method: if plain { Method::McnemarPower } else { Method::PairedTPower }.as_str(),
        evaluation,
        arm,
        cases,
        attempts,
        exist,
        from,
    }))
}

/// What has been read of the groups of runs: rows share their runs.
type Known = BTreeMap<String, Groups>;

/// The groups of an evaluation's cases, as the newest of the runs that name any has them.
fn groups(ctx: &Ctx, known: &mut Known, evaluation: &str, runs: &[String]) -> Result<BTreeMap<String, String>, ToolError> {
    for run in runs.iter().rev() {
        let of_run = match known.entry(run.clone()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => free.insert(ctx.store.groups(run)?),
        };
        if let Some(found) = of_run.get(evaluation) {
            return Ok(found.clone());
        }
    }
    Ok(BTreeMap::new())
}

/// What an attempt costs and how long it takes, at the mean over those of the newest runs that say so.
fn price(ctx: &Ctx, evaluation: &str, arm: &str, runs: &[String]) -> Result<(Option<f64>, Option<f64>), ToolError> {
    let keys = [CellKey { evaluation: evaluation.to_owned(), case: None, arm: arm.to_owned() }];
    // What broke or was stopped says little of what a whole attempt takes.
    let outcomes = &[Outcome::Pass, Outcome::Fail, Outcome::Unscored];
    let (mut costs, mut durations) = (Vec::new(), Vec::new());
    for run in runs.iter().rev().take(PRICED) {
        let query = AttemptQuery { keys: Some(&keys), outcomes, ..AttemptQuery::default() };
        for attempt in ctx.store.attempts(run, &query)? {
            costs.extend(attempt.cost_usd);
            durations.extend(attempt.duration_ms.map(|millis| millis as f64));
        }
    }
    let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
    Ok((mean(&costs), mean(&durations)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        auth::Caller,
        domain::{
            attempt::Attempt,
            outcome::Outcome::{Fail, Pass},
            time::Timestamp,
        },
        store::{
            contract::{attempt, log},
            model::Model,
        },
    };

    fn ask(store: &Arc<Model>, arguments: serde_json::Value) -> Output {
        let (caller, now) = (Caller::local(), Timestamp::from_millis(0));
        let ctx = Ctx::new(store.clone(), caller, now);
        PlanRun::call(&ctx, serde_json::from_value(arguments).unwrap()).unwrap()
    }

    /// Two runs of forty cases with two attempts each; in each run the first `flaky` cases pass once of twice.
    fn filled(flaky: usize) -> Arc<Model> {
        let store = Arc::new(Model::default());
        for (id, at) in [("a", 1), ("b", 2)] {
            let tries = (0..40).flat_map(|case| {
                [1, 2].map(|epoch| Attempt {
                    epoch,
                    duration_ms: Some(if at == 1 { 1000 } else { 2000 }),
                    ..attempt(&format!("{case:02}"), if epoch == 1 && case < flaky { Fail } else { Pass })
                })
            });
            log(id, at).with(tries).put(&*store).unwrap();
        }
        store
    }

    #[test]
    fn the_plan_is_from_the_history() {
        let output = ask(&filled(20), json!({"difference": 0.1, "attempts": 2}));
        let row = &output.rows[0];
        // Twenty of forty cases have the variance 1/2, the rest none; nothing changed between the runs.
        let from = &row.from;
        assert_eq!((from.runs, from.cases, from.attempts, from.spread.pairs), (2, 40, 160, 40));
        assert!((from.spread.within - 0.25).abs() < 1e-9 && from.spread.between.abs() < 1e-9);
        // 0.09 + 2 * 0.25 / 2 = 0.34 at 0.1 and 80%: scipy's smallest n with n >= (t(.975) + t(.8))^2 * 34 is 269.
        assert_eq!((row.cases, row.exist, row.enough, row.method), (Some(269), 40, false, "paired_t_power"));
        // 538 attempts at $0.125 and 1.5 s each.
        assert_eq!((row.cost_usd, row.duration_ms), (Some(67.25), Some(807_000)));
    }

    #[test]
    fn attempts_are_chosen_where_none_are_given() {
        let row = ask(&filled(20), json!({"difference": 0.5})).rows.remove(0);
        assert!(row.enough && row.cases.unwrap() <= 40, "{row:?}");
        let still = ask(&filled(0), json!({"difference": 0.5})).rows.remove(0);
        // Whole cases that turn, 0.25: (1.96 * sqrt(0.5) + 0.8416 * 0.5)^2 / 0.25 = 13.05; of 14 six turn with 79% only, of 15 with 85%.
        assert_eq!((still.cases, still.attempts, still.method), (Some(15), 1, "mcnemar_power"));
    }

    #[test]
    fn a_margin_is_planned_without_a_difference() {
        let output = ask(&filled(0), json!({"margin": 0.2}));
        assert_eq!((output.difference, output.margin), (None, Some(0.2)));
        // 1/42 at 0.2 and 80%: scipy's smallest n with n >= (t(.95) + t(.8))^2 * 0.0238 / 0.04 is 6; but 0.8^13 > 0.05.
        assert_eq!((output.rows[0].cases, output.rows[0].enough), (Some(14), true));
    }

    #[test]
    fn cases_in_groups_take_as_many_groups() {
        let plan = |size: Option<usize>| {
            let store = Arc::new(Model::default());
            for (id, at) in [("a", 1), ("b", 2)] {
                let of = |case: usize| Attempt {
                    group: size.map(|size| format!("g{}", case / size)),
                    ..attempt(&format!("{case:02}"), if id == "b" && case < 10 { Fail } else { Pass })
                };
                log(id, at).with((0..40).map(of)).put(&*store).unwrap();
            }
            ask(&store, json!({"difference": 0.2, "attempts": 1})).rows.remove(0)
        };
        let (alone, grouped) = (plan(None), plan(Some(5)));
        // Two of eight groups turned whole: 5 * 8/7.
        assert_eq!((alone.from.spread.design_effect, grouped.from.spread.design_effect), (None, Some(5.71429)));
        assert_eq!(grouped.cases, alone.cases.map(|cases| (cases as f64 * 40.0 / 7.0).ceil() as u64));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let store = Arc::new(Model::default());
        assert!(ask(&store, json!({})).note.unwrap().contains("nothing to plan from"));
        log("0", 0).with([attempt("1", Outcome::InfraError)]).put(&*store).unwrap();
        assert!(ask(&store, json!({})).note.unwrap().contains("nothing to plan from"), "it holds one, and counted nothing of it");
        let bare = ["1", "2"].map(|case| Attempt { cost_usd: None, duration_ms: None, ..attempt(case, Pass) });
        log("a", 1).with(bare).put(&*store).unwrap();
        let row = ask(&store, json!({})).rows.remove(0);
        assert_eq!((row.cost_usd, row.duration_ms), (None, None));
        assert!(ask(&store, json!({"arm": "zzz"})).note.unwrap().contains("there are m."));
        assert!(ask(&store, json!({"evaluation": "zzz"})).note.unwrap().contains("holds e"));
    }
}
