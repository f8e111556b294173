//! `test_cases_add`: a case more for an evaluation.
//!
//! Promises: a locked evaluation takes none, and says who locked it; a case that is there is not changed.
//! Does not: change runs that were started before: each has the cases that there were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::authoring::{CaseId, CaseText, EvaluationId, here, shown};
use crate::{
    store::workspace::{Act, Acted, NewCase, rules},
    tools::{
        Ctx, ToolError,
        write::{
            Does, Intent, Write,
            fields::{Name, Pairs},
        },
    },
};

/// Bytes of a case's free pairs.
const METADATA_BYTES_MAX: usize = 16 * 1024;

/// The tool.
pub struct TestCasesAdd;

/// The case, and where it belongs.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The evaluation's id.
    evaluation: EvaluationId,
    /// Its id, unique in the evaluation; without one it gets the next free number.
    #[serde(default)]
    id: Option<CaseId>,
    /// What is asked.
    input: CaseText,
    /// What is right.
    #[serde(default)]
    expected: Option<CaseText>,
    /// Free pairs.
    #[serde(default)]
    metadata: Option<Pairs<METADATA_BYTES_MAX>>,
}

/// The case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The evaluation's id.
    evaluation: String,
    /// The case's id.
    case: String,
}

impl Write for TestCasesAdd {
    const NAME: &'static str = "test_cases_add";
    const TITLE: &'static str = "Add a test case";
    const DOC: &'static str = "Adds a case to an evaluation that is not locked. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:write"]];
    const DOES: Does = Does::AddCase;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let evaluation = here(ctx, input.evaluation.get())?;
        rules::may_grow(&evaluation.id, evaluation.status, evaluation.lock.as_ref())?;
        let id = input.id.as_ref().map_or_else(String::new, |id| format!(" {}", shown(id.get())));
        let (name, cases) = (shown(&evaluation.id), evaluation.cases);
        Ok(Intent {
            summary: format!("Add the case{id} to the evaluation {name}."),
            effects: vec![format!(
                "The evaluation {name} has {} cases instead of {cases}, for runs that are started from now on.",
                cases + 1
            )],
        })
    }

    fn act(_: &Ctx, input: Input) -> Result<Act, ToolError> {
        let case = NewCase {
            id: input.id.map(Name::into_string),
            input: input.input.get().to_owned(),
            expected: input.expected.map(|text| text.get().to_owned()),
            metadata: input.metadata.map(Pairs::into_map),
        };
        Ok(Act::AddCase { evaluation: input.evaluation.into_string(), case })
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Case { evaluation, case } => Some(Done { evaluation, case }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("evaluation {} has the case {}", shown(&done.evaluation), shown(&done.case))
    }
}
