//! `eval.run`: a run is queued (decision 72).
//!
//! Promises: the guards and the budget of `runs_start`, without a question of leave: the operator's switch is it. What is answered is never a pass.
//! Does not: wait for the run; `eval.get` shows where it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Number, evaluation};
use crate::{
    domain::log::RunStatus,
    store::workspace::{Act, Acted, rules},
    tools::{
        Ctx, ToolError, Toolset,
        workspace::{
            authoring::shown,
            runs_start::{Environment, Gate, started},
        },
        write::{
            Does, Intent, Write,
            fields::{Dollars, Name},
        },
    },
};

/// The tool.
pub enum EvalRun {}

/// What is to be run.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The evaluation's number.
    evaluation_id: Number,
    /// The arm: what is compared. Without one, the executor's default.
    #[serde(default)]
    arm: Option<Name<200>>,
    /// Where it runs; dev where it is not said.
    #[serde(default)]
    environment: Option<Environment>,
    /// Dollars that it may cost.
    #[serde(default)]
    max_cost_usd: Option<Dollars>,
}

/// The run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    evaluation_run_id: String,
    /// Where it stood when it was started.
    status: &'static str,
    /// What it says of a release: nothing, before it has ended and somebody has looked.
    gate: Gate,
}

impl Write for EvalRun {
    const NAME: &'static str = "eval.run";
    const TITLE: &'static str = "Start a run";
    const DOC: &'static str = "Queues a run of an active evaluation; a worker takes it. A started run is not a pass.";
    const TOOLSETS: &'static [Toolset] = &[];
    const SCOPES: &'static [&'static [&'static str]] = &[&["runs:write"]];
    const DOES: Does = Does::StartRun;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        rules::may_start(&found.id, found.status, found.lock.as_ref(), found.cases)?;
        Ok(Intent { summary: format!("Start a run of the evaluation {}.", shown(&found.id)), effects: Vec::new() })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        started(ctx, found.id, input.arm, input.environment.unwrap_or(Environment::Dev), input.max_cost_usd)
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            // What was started is told as it was: a repeat does not say where it stands now.
            Acted::Run { run_id, .. } => {
                Some(Done { evaluation_run_id: run_id, status: RunStatus::Pending.word(), gate: Gate::NotEvaluated })
            }
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("run {} is queued", done.evaluation_run_id)
    }
}
