//! `runs_start`: a run is queued (decision 30).
//!
//! Promises: an evaluation that is a draft, archived, locked or without cases is refused, and so is a run beyond the budget; what is answered
//! is never a pass: it waits, and its gate is `not_evaluated`.
//! Does not: run it (a worker does), or name a program: the operator's configuration does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::authoring::{EvaluationId, here, shown};
use crate::{
    clock,
    domain::{hex::hex, log::RunStatus, time::Timestamp},
    store::workspace::{Act, Acted, Budget, NewRun, rules},
    tools::{
        Ctx, ToolError,
        write::{
            Does, Intent, Rules, Write,
            fields::{Dollars, Name},
        },
    },
};

/// A day, over which cost is counted.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The tool.
pub struct RunsStart;

/// What is to be run.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The evaluation's id.
    evaluation: EvaluationId,
    /// The arm: what is compared. Without one, the executor's default.
    #[serde(default)]
    arm: Option<Name<200>>,
    /// Where it runs.
    environment: Environment,
    /// Dollars that it may cost.
    #[serde(default)]
    max_cost_usd: Option<Dollars>,
}

/// Where a run runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// For trying.
    Dev,
    /// As it will be.
    Staging,
    /// As it is.
    Prod,
}

impl Environment {
    /// Its word.
    const fn word(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Staging => "staging",
            Self::Prod => "prod",
        }
    }
}

/// The run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    run_id: String,
    /// Where it stands.
    status: &'static str,
    /// What it says of a release: nothing, before it has ended and somebody has looked.
    gate: Gate,
}

/// What a run that was started says of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Nothing.
    NotEvaluated,
}

fn budget(rules: &Rules, now: Timestamp) -> Budget {
    let since = Timestamp::from_millis(now.millis() - now.millis().rem_euclid(DAY_MS));
    Budget { queued_max: rules.queued_max, cost_usd_max: rules.cost_usd_max, since }
}

/// A run of `evaluation` with an id of its own, ready to be queued.
pub(in crate::tools) fn started(
    ctx: &Ctx,
    evaluation: String,
    arm: Option<Name<200>>,
    environment: Environment,
    max_cost_usd: Option<Dollars>,
) -> Result<Act, ToolError> {
    let id = clock::random::<10>().map_err(ToolError::Internal)?;
    Ok(Act::StartRun(NewRun {
        run_id: format!("run-{}", hex(&id)),
        evaluation,
        arm: arm.map(Name::into_string),
        environment: environment.word().to_owned(),
        max_cost_usd: max_cost_usd.map(Dollars::get),
        budget: budget(&ctx.rules, ctx.now),
    }))
}

impl Write for RunsStart {
    const NAME: &'static str = "runs_start";
    const TITLE: &'static str = "Start a run";
    const DOC: &'static str = "Queues a run of an active evaluation; a worker takes it, runs_list shows where it stands. A started run is not a pass. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["runs:write"]];
    const DOES: Does = Does::StartRun;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let evaluation = here(ctx, input.evaluation.get())?;
        rules::may_start(&evaluation.id, evaluation.status, evaluation.lock.as_ref(), evaluation.cases)?;
        // What the others of the day cost only the transaction can hold.
        let open = ctx.store.queued(&[])?.len() as u64;
        rules::fits(&budget(&ctx.rules, ctx.now), open, 0.0, input.max_cost_usd.map(Dollars::get))?;
        let arm = input.arm.as_ref().map_or_else(|| "the executor's default arm".to_owned(), |arm| format!("the arm {}", shown(arm.get())));
        let cost = match input.max_cost_usd {
            Some(cost) => format!("It may cost up to {} dollars.", cost.get()),
            None => "Nothing bounds what it may cost.".to_owned(),
        };
        Ok(Intent {
            summary: format!("Start a run of the evaluation {} in {}.", shown(&evaluation.id), input.environment.word()),
            effects: vec![format!("A run of {} cases with {arm} is queued, and a worker runs it.", evaluation.cases), cost],
        })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        started(ctx, input.evaluation.into_string(), input.arm, input.environment, input.max_cost_usd)
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            // What was started is told as it was: a repeat does not say where it stands now.
            Acted::Run { run_id, .. } => Some(Done { run_id, status: RunStatus::Pending.word(), gate: Gate::NotEvaluated }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("run {} is queued; it says nothing of a release before it has ended: look with runs_list", done.run_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let rules = Rules { cost_usd_max: Some(5.0), ..Rules::default() };
        let noon = Timestamp::parse("2026-05-01T12:34:56Z").unwrap();
        let budget = budget(&rules, noon);
        assert_eq!((budget.since, budget.queued_max), (Timestamp::parse("2026-05-01T00:00:00Z").unwrap(), 20));
        assert_eq!(budget.cost_usd_max, Some(5.0));
    }
}
