//! `eval.get`: one evaluation with its first cases and its newest runs (decision 74).
//!
//! Promises: at most 100 cases and 10 runs, and as many of the cases as fit into half an answer; texts of cases only for whom may read texts; a run
//! has a score once it is completed, and its counts beside it.
//! Does not: show attempts; MCP's `show` and `failures` do.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Evaluation, Number, evaluation, pretty, quality::Score};
use crate::{
    domain::{log::RunStatus, outcome::Counts, time::Timestamp},
    store::{Projection, ProjectionQuery, ProjectionSort, workspace::AuthoredCase},
    tools::{Ctx, Tool, ToolError, Toolset, render::Style},
};

/// The tool.
pub enum EvalGet {}

const CASES_MAX: usize = 100;
const RUNS_MAX: usize = 10;

/// The arguments of `eval.get`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The evaluation's number.
    #[arg(value_name = "NUMBER")]
    evaluation_id: Number,
}

/// The result of `eval.get`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Its first cases, in the order that they were made; testCaseCount says how many there are.
    test_cases: Vec<TestCase>,
    /// Its newest runs, newest first.
    runs: Vec<Run>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A case. Its texts are null for whom may not read texts (`traces:read`).
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestCase {
    /// Its id.
    id: String,
    /// What is asked.
    input: Option<String>,
    /// What is right.
    expected_output: Option<String>,
    /// Free pairs.
    metadata: Option<Map<String, Value>>,
    /// When it was made.
    created_at: Timestamp,
}

/// A run of the evaluation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    id: String,
    /// Where it stands.
    status: RunStatus,
    /// `recorded` or `scratch`.
    kind: &'static str,
    /// The arms that tried the evaluation.
    arms: Vec<String>,
    /// Passed over counted, 0 to 100; null until the run is completed, and where nothing was counted.
    score: Option<f64>,
    /// Attempts that the score is over.
    total: u32,
    /// What the score is over, and what is not in it.
    counts: Counts,
    /// When it was created.
    created_at: Timestamp,
    /// When work ended.
    completed_at: Option<Timestamp>,
}

impl Tool for EvalGet {
    const NAME: &'static str = "eval.get";
    const TITLE: &'static str = "Evaluation";
    const ABOUT: &'static str = "One evaluation with its cases and runs";
    const DOC: &'static str = "Gives one evaluation with its first 100 test cases and its newest 10 runs.";
    const TOOLSETS: &'static [Toolset] = &[];
    const NARROWS: &'static str = "nothing: read the runs with MCP's runs_list and show";

    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let found = evaluation(ctx, input.evaluation_id)?;
        let (cases, _) = ctx.store.authored_cases(&found.id, 0, CASES_MAX)?;
        let query = ProjectionQuery {
            evaluation: &found.id,
            sort: ProjectionSort::CreatedAt,
            descending: true,
            from: None,
            back: false,
            limit: RUNS_MAX,
        };
        // None where no run has ever held it.
        let page = ctx.store.projections(&query)?.unwrap_or_default();
        Ok(Output {
            evaluation: found.into(),
            test_cases: fitting(cases, ctx.limits.result_bytes / 2, ctx.caller.holds("traces:read")),
            runs: page.rows.into_iter().map(Run::from).collect(),
            note: None,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    /// A run that is under way changes without a write of ours (decision 82).
    fn lasting(output: &Output) -> bool {
        output.runs.iter().all(|run| run.status.ended())
    }

    fn text(output: &Output, _: &Style) -> String {
        pretty(output)
    }
}

/// The first cases whose JSON takes at most `bytes_max` bytes.
fn fitting(cases: Vec<AuthoredCase>, bytes_max: usize, text: bool) -> Vec<TestCase> {
    let mut left = bytes_max;
    let fits = |case: &TestCase| {
        let size = serde_json::to_vec(case).map_or(usize::MAX, |json| json.len());
        left.checked_sub(size).map(|rest| left = rest).is_some()
    };
    cases.into_iter().map(|case| TestCase::of(case, text)).take_while(fits).collect()
}

impl TestCase {
    fn of(case: AuthoredCase, text: bool) -> Self {
        Self {
            id: case.id,
            input: Some(case.input).filter(|_| text),
            expected_output: case.expected.filter(|_| text),
            metadata: Some(case.metadata).filter(|_| text),
            created_at: case.created_at,
        }
    }
}

impl From<Projection> for Run {
    fn from(row: Projection) -> Self {
        let Projection { run, arms, counts, .. } = row;
        let score = Score::of(counts).filter(|_| run.status == RunStatus::Completed);
        Self {
            id: run.run_id,
            status: run.status,
            kind: run.kind.word(),
            arms: arms.into_iter().map(|arm| arm.name).collect(),
            score: score.map(Score::shown),
            total: counts.counted(),
            counts,
            created_at: run.created_at,
            completed_at: run.completed_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str, input: &str) -> AuthoredCase {
        AuthoredCase {
            id: id.to_owned(),
            input: input.to_owned(),
            expected: Some("right".to_owned()),
            metadata: Map::new(),
            created_at: Timestamp::from_millis(0),
            created_by: "k".to_owned(),
        }
    }

    #[test]
    fn texts_are_for_whom_may_read_them() {
        let shown = |text| serde_json::to_value(fitting(vec![case("a", "what")], 10_000, text)).unwrap();
        let whole = shown(true);
        assert_eq!((&whole[0]["input"], &whole[0]["expectedOutput"]), (&"what".into(), &"right".into()));
        let less = shown(false);
        assert_eq!(
            (&less[0]["id"], &less[0]["input"], &less[0]["expectedOutput"], &less[0]["metadata"]),
            (&"a".into(), &Value::Null, &Value::Null, &Value::Null)
        );
    }

    #[test]
    fn only_as_many_cases_as_fit() {
        let many: Vec<AuthoredCase> = (0..100).map(|n| case(&format!("c{n}"), &"x".repeat(1000))).collect();
        let kept = fitting(many, 10_000, true);
        let bytes = serde_json::to_vec(&kept).unwrap().len();
        assert!((8..10).contains(&kept.len()) && bytes <= 10_000 + kept.len() + 1, "{} cases, {bytes} bytes", kept.len());
        assert_eq!(kept.first().map(|case| case.id.as_str()), Some("c0"));
    }
}
