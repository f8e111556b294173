//! `eval.testcase.add`: a case more (decision 72).
//!
//! Promises: what `test_cases_add` promises over MCP, locks included, without a question of leave: the operator's switch is it.
//! Does not: change a case that is there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Number, evaluation};
use crate::{
    store::workspace::{Act, Acted, NewCase, rules},
    tools::{
        Ctx, ToolError, Toolset,
        workspace::authoring::{CaseId, CaseText, shown},
        write::{Does, Intent, Write, fields::Pairs},
    },
};

/// The tool.
pub enum EvalTestcaseAdd {}

/// The case.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The evaluation's number.
    evaluation_id: Number,
    /// The case's id, unique in the evaluation; the next free case-<n> where there is none.
    #[serde(default)]
    id: Option<CaseId>,
    /// What is asked.
    input: CaseText,
    /// What is right.
    #[serde(default)]
    expected_output: Option<CaseText>,
    /// Free pairs.
    #[serde(default)]
    metadata: Option<Pairs<16_384>>,
}

/// The case that was added.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    id: String,
    /// The evaluation's id.
    evaluation: String,
}

impl Write for EvalTestcaseAdd {
    const NAME: &'static str = "eval.testcase.add";
    const TITLE: &'static str = "Add a test case";
    const DOC: &'static str = "Adds a test case to an evaluation that is not locked.";
    const TOOLSETS: &'static [Toolset] = &[];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:write"]];
    const DOES: Does = Does::AddCase;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        rules::may_grow(&found.id, found.status, found.lock.as_ref())?;
        Ok(Intent { summary: format!("Add a case to the evaluation {}.", shown(&found.id)), effects: Vec::new() })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        let case = NewCase {
            id: input.id.map(CaseId::into_string),
            input: input.input.get().to_owned(),
            expected: input.expected_output.map(|text| text.get().to_owned()),
            metadata: input.metadata.map(Pairs::into_map),
        };
        Ok(Act::AddCase { evaluation: found.id, case })
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Case { evaluation, case } => Some(Done { id: case, evaluation }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("case {} is in the evaluation {}", shown(&done.id), shown(&done.evaluation))
    }
}
