//! `evaluations_create`: a new evaluation, a draft.
//!
//! Promises: nothing that is there is changed: an id that is taken is refused. A draft cannot be started; a person makes it active.
//! Does not: run anything.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::authoring::{Case, EvaluationId, found, shown};
use crate::{
    store::workspace::{Act, Acted, EvaluationStatus, NewEvaluation, rules},
    tools::{
        Ctx, ToolError,
        arguments::{Hundredths, Text},
        write::{Does, Intent, Write, fields::Name},
    },
};

/// Cases that a new evaluation may come with; more are added one by one.
const CASES_MAX: usize = 100;

/// The tool.
pub struct EvaluationsCreate;

/// What it is to be.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its id, unique in the project.
    id: EvaluationId,
    /// What people call it.
    #[serde(default)]
    name: Option<Name<200>>,
    /// What it is about.
    #[serde(default)]
    description: Option<Text<4000>>,
    /// Evaluations made from one template share a family.
    #[serde(default)]
    family: Option<Name<200>>,
    /// The rate from which it passes, 0 to 1.
    #[serde(default)]
    threshold: Option<Hundredths<0, 100, 100>>,
    /// Its first cases, 100 at most, whose ids are all different.
    #[serde(default)]
    cases: Option<Vec<Case>>,
}

/// The evaluation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    evaluation: String,
    /// Its number in the organization.
    number: i64,
    /// Its status.
    status: EvaluationStatus,
}

impl Input {
    /// How many cases it comes with.
    fn checked(&self) -> Result<usize, ToolError> {
        let cases = self.cases.as_deref().unwrap_or_default();
        if cases.len() > CASES_MAX {
            let sentence =
                format!("argument cases: there are {}; at most {CASES_MAX} are taken, and test_cases_add adds more", cases.len());
            return Err(ToolError::Argument(sentence));
        }
        let mut seen = BTreeSet::new();
        match cases.iter().find(|case| !seen.insert(case.id.get())) {
            Some(twice) => Err(ToolError::Argument(format!("argument cases: there are two of the id {}", shown(twice.id.get())))),
            None => Ok(cases.len()),
        }
    }
}

impl Write for EvaluationsCreate {
    const NAME: &'static str = "evaluations_create";
    const TITLE: &'static str = "Create an evaluation";
    const DOC: &'static str =
        "Creates an evaluation as a draft, with its first cases. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:write"]];
    const DOES: Does = Does::CreateEvaluation;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let cases = input.checked()?;
        let id = input.id.get();
        if found(ctx, id)?.is_some() {
            return Err(rules::evaluation_exists(id).into());
        }
        let with = match cases {
            0 => "It has no cases yet; test_cases_add adds them.".to_owned(),
            1 => "It gets 1 case.".to_owned(),
            more => format!("It gets {more} cases."),
        };
        Ok(Intent {
            summary: format!("Create the evaluation {}.", shown(id)),
            effects: vec![
                format!("The project has a new evaluation {}, a draft: it cannot be started until a person makes it active.", shown(id)),
                with,
            ],
        })
    }

    fn act(_: &Ctx, input: Input) -> Result<Act, ToolError> {
        input.checked()?;
        Ok(Act::CreateEvaluation(NewEvaluation {
            id: input.id.into_string(),
            name: input.name.map(Name::into_string),
            description: input.description.map(|text| text.get().to_owned()),
            family: input.family.map(Name::into_string),
            threshold: input.threshold.map(Hundredths::get),
            cases: input.cases.unwrap_or_default().into_iter().map(Case::into_new).collect(),
        }))
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Evaluation { evaluation, number, status } => Some(Done { evaluation, number, status }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("evaluation {} is number {}, {}", shown(&done.evaluation), done.number, done.status.word())
    }
}
