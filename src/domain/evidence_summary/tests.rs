//! Evidence of made-up sides, all held against the contract's own check.

use serde_json::{Value, json};

use super::*;
use crate::domain::decision;

fn counts(passed: u32, failed: u32, infra: u32, missing: u32) -> Counts {
    Counts { passed, failed, infra, unscored: 0, missing }
}

fn side(name: &str, counts: Counts) -> Side {
    let attempts = u64::from(tried(counts));
    let figures = Figures {
        attempts,
        cost_usd: Some(0.1 * attempts as f64),
        costed: attempts,
        duration_ms: Some(1000 * attempts),
        timed: attempts,
        ..Figures::default()
    };
    Side { name: name.to_owned(), status: Some(RunStatus::Completed), counts, figures: Some(figures) }
}

fn suite(difference: f64) -> Evidence {
    Evidence {
        difference: Some(difference),
        interval: Some([-0.4, -0.1]),
        method: Some("exact_mcnemar"),
        word: Word::Confirmed,
        reason: None,
        ..Evidence::none(40, "")
    }
}

fn shown(known: &Known<'_>) -> Value {
    let value = serde_json::to_value(summary(known)).unwrap();
    assert_eq!(decision::check_evidence(&value), [], "{value}");
    value
}

#[test]
fn two_runs_are_held_against_each_other() {
    let suite = suite(-0.25);
    let known = Known {
        candidate: Some(side("now", counts(5, 5, 2, 1))),
        baseline: Some(side("then", counts(8, 2, 0, 0))),
        suite: Some(&suite),
        suite_reason: None,
    };
    let value = shown(&known);
    assert_eq!(
        value["quality"]["measurements"],
        json!([
            {"name": "paired_difference", "delta": -0.25, "unit": "share", "source": "exact_mcnemar"},
            {"name": "pass_rate", "baseline": 0.8, "candidate": 0.5, "delta": -0.3, "unit": "share"}
        ])
    );
    assert!(value["quality"]["summary"].as_str().unwrap().ends_with("by -0.25, 95% interval -0.4 to -0.1: statistically confirmed."));
    assert_eq!(
        value["reliability"]["measurements"],
        json!([
            {"name": "infra_error_rate", "baseline": 0.0, "candidate": 0.167, "delta": 0.167, "unit": "share"},
            {"name": "missing_attempts", "baseline": 0.0, "candidate": 1.0, "delta": 1.0, "unit": "attempts"}
        ])
    );
    assert_eq!(value["latency"]["measurements"][0]["delta"], 0.0);
    assert_eq!(
        value["cost"]["measurements"][1],
        json!({"name": "run_cost", "baseline": 1.0, "candidate": 1.2, "delta": 0.2, "unit": "USD"})
    );
    assert_eq!(value["protectedSlices"]["status"], "not_measured");
}

#[test]
fn a_run_alone_has_values_and_no_differences() {
    let value = shown(&Known { candidate: Some(side("now", counts(5, 5, 0, 0))), ..Known::default() });
    assert_eq!(value["quality"]["measurements"], json!([{"name": "pass_rate", "value": 0.5, "unit": "share"}]));
    assert!(value["cost"]["measurements"][0].get("delta").is_none());
}

#[test]
fn what_has_not_ended_or_failed_says_nothing_of_quality() {
    for status in RunStatus::ALL {
        let one = Side { status: Some(status), ..side("now", counts(9, 0, 1, 0)) };
        let value = shown(&Known { candidate: Some(one.clone()), ..Known::default() });
        let base = Known { baseline: Some(one), candidate: Some(side("x", counts(9, 0, 0, 0))), suite: None, suite_reason: None };
        let measured = json!(if status == RunStatus::Completed { "measured" } else { "not_measured" });
        assert_eq!(value["quality"]["status"], measured, "{status:?}");
        assert_eq!(value["reliability"]["status"], json!(if status.ended() { "measured" } else { "not_measured" }));
        if status != RunStatus::Completed {
            assert!(shown(&base)["quality"]["reason"].as_str().unwrap().contains(status.word()));
        }
    }
}

#[test]
fn what_is_not_recorded_is_not_measured() {
    let bare = Side { figures: Some(Figures { attempts: 10, ..Figures::default() }), ..side("now", counts(9, 1, 0, 0)) };
    let value = shown(&Known { candidate: Some(bare.clone()), baseline: Some(side("then", counts(1, 1, 0, 0))), ..Known::default() });
    assert_eq!(value["cost"]["reason"], "no attempt of now records what it cost");
    assert_eq!(value["quality"]["reason"], "no case was counted on both sides");
    // Half of the costs make a mean and no total.
    let half = Figures { attempts: 10, costed: 5, cost_usd: Some(1.0), ..Figures::default() };
    let value = shown(&Known { candidate: Some(Side { figures: Some(half), ..bare.clone() }), baseline: Some(bare), ..Known::default() });
    assert_eq!(value["cost"]["measurements"], json!([{"name": "attempt_cost_mean", "candidate": 0.2, "unit": "USD"}]));
    let nothing = shown(&Known { candidate: Some(side("now", Counts::default())), ..Known::default() });
    assert!(["quality", "reliability", "latency", "cost"].iter().all(|name| nothing[*name]["status"] == "not_measured"), "{nothing}");
    assert_eq!(shown(&Known::default())["quality"]["reason"], "there is no run");
    let several = Side { figures: None, status: None, ..side("now", counts(1, 1, 0, 0)) };
    assert_eq!(shown(&Known { candidate: Some(several), ..Known::default() })["latency"]["status"], "not_measured");
}
