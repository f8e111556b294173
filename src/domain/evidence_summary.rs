//! What a comparison, or a run alone, is as evidence in the decision contract's form.
//!
//! Promises: what was not recorded is `not_measured` with the reason, and is never inferred; a run that has not ended says nothing of quality;
//! what is given keeps the contract (`decision::check_evidence`, in tests).
//! Does not: classify or decide; read runs.

use super::{
    decision::{Dimension, EvidenceSummary, Measurement},
    evidence::Evidence,
    figures::Figures,
    log::RunStatus,
    outcome::{Counts, round3},
};
use crate::stats::Word;

/// Why protected slices are never measured here.
const NO_SLICES: &str = "no protected slice is declared: runlore knows evaluations and cases, not which of them must not get worse";

/// What is known of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What to call it: the run's id.
    pub name: String,
    /// Where it stands; none where it is of several runs.
    pub status: Option<RunStatus>,
    /// The five counts.
    pub counts: Counts,
    /// What its attempts took; none where it is of several runs.
    pub figures: Option<Figures>,
}

/// What is known.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// The newer side.
    pub candidate: Option<Side>,
    /// What it was held against.
    pub baseline: Option<Side>,
    /// The paired result over all shared cases.
    pub suite: Option<&'a Evidence>,
    /// Why there is none.
    pub suite_reason: Option<&'a str>,
}

/// The evidence.
#[must_use]
pub fn summary(known: &Known<'_>) -> EvidenceSummary {
    let Some(candidate) = &known.candidate else {
        let none = || Dimension::none("there is no run");
        return EvidenceSummary { quality: none(), protected_slices: none(), reliability: none(), latency: none(), cost: none() };
    };
    if let Some(status) = candidate.status.filter(|status| !status.ended()) {
        let none = || Dimension::none(format!("run {} is {}: it has not ended", candidate.name, status.word()));
        return EvidenceSummary {
            quality: none(),
            protected_slices: Dimension::none(NO_SLICES),
            reliability: none(),
            latency: none(),
            cost: none(),
        };
    }
    let baseline = known.baseline.as_ref();
    EvidenceSummary {
        quality: quality(known, candidate, baseline),
        protected_slices: Dimension::none(NO_SLICES),
        reliability: reliability(candidate, baseline),
        latency: latency(candidate, baseline),
        cost: cost(candidate, baseline),
    }
}

/// A figure of both sides, or of one where there is no other.
fn both(name: &'static str, unit: &'static str, candidate: Option<f64>, baseline: Option<Option<f64>>) -> Measurement {
    let one = Measurement { name, unit: Some(unit), ..Measurement::default() };
    match baseline {
        None => Measurement { value: candidate, ..one },
        Some(baseline) => {
            let delta = candidate.zip(baseline).map(|(now, then)| tidy(now - then));
            Measurement { candidate, baseline, delta, ..one }
        }
    }
}

/// Nine digits are more than anything here is known to, and 0.30000000000000004 is no price.
fn tidy(value: f64) -> f64 {
    (value * 1e9).round() / 1e9 + 0.0
}

fn rate(side: &Side) -> Option<f64> {
    side.counts.rate().map(super::outcome::Rate::shown)
}

fn quality(known: &Known<'_>, candidate: &Side, baseline: Option<&Side>) -> Dimension {
    for side in std::iter::once(candidate).chain(baseline) {
        if let Some(status) = side.status.filter(|status| *status != RunStatus::Completed) {
            return Dimension::none(format!("run {} is {}: what it counted is not all of it", side.name, status.word()));
        }
    }
    let Some(base) = baseline else {
        let Some(rate) = rate(candidate) else { return Dimension::none(format!("{} counted no attempt", candidate.name)) };
        let summary = format!(
            "{} of {} counted attempts of {} passed; it was held against no other run.",
            candidate.counts.passed,
            candidate.counts.counted(),
            candidate.name
        );
        return Dimension::Measured { summary, measurements: vec![both("pass_rate", "share", Some(rate), None)] };
    };
    let Some((suite, difference)) = known.suite.and_then(|suite| Some((suite, suite.difference?))) else {
        let own = known.suite.and_then(|suite| suite.reason.as_deref());
        return Dimension::none(own.or(known.suite_reason).unwrap_or("no case was counted on both sides").to_owned());
    };
    let mut measurements = vec![Measurement {
        name: "paired_difference",
        delta: Some(difference),
        unit: Some("share"),
        source: suite.method,
        ..Measurement::default()
    }];
    if let (Some(now), Some(then)) = (candidate.counts.rate(), base.counts.rate()) {
        let delta = Some(round3(now.value() - then.value()));
        measurements.push(Measurement { delta, ..both("pass_rate", "share", Some(now.shown()), Some(Some(then.shown()))) });
    }
    measurements.extend(margin(suite));
    Dimension::Measured { summary: said(suite, difference, candidate, base), measurements }
}

/// The bound that was given beforehand, where one was: the verdict of a test, not of a release.
fn margin(suite: &Evidence) -> Option<Measurement> {
    let margin = suite.margin.as_ref()?;
    let [low, _] = margin.bounds;
    Some(Measurement {
        name: "lower_bound_95",
        value: Some(low),
        unit: Some("share"),
        source: Some(margin.method),
        ..Measurement::default()
    })
}

fn said(suite: &Evidence, difference: f64, candidate: &Side, base: &Side) -> String {
    let word = match suite.word {
        Word::Confirmed => "confirmed",
        Word::Inconclusive => "inconclusive",
        Word::NotComparable => "not comparable",
    };
    let reason = suite.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let interval = suite.interval.map(|[low, high]| format!(", 95% interval {low} to {high}")).unwrap_or_default();
    format!(
        "Over {} cases counted on both sides the pass rate of {} differs from that of {} by {difference}{interval}: statistically {word}{reason}.",
        suite.n, candidate.name, base.name
    )
}

/// Recorded attempts: those that could break.
fn tried(counts: Counts) -> u32 {
    counts.total().saturating_sub(counts.missing)
}

fn reliability(candidate: &Side, baseline: Option<&Side>) -> Dimension {
    let share = |side: &Side| {
        let tried = tried(side.counts);
        (tried > 0).then(|| round3(f64::from(side.counts.infra) / f64::from(tried)))
    };
    let Some(now) = share(candidate) else { return Dimension::none(format!("no attempt of {} is recorded", candidate.name)) };
    let mut summary = format!("{} of {} recorded attempts of {} errored", candidate.counts.infra, tried(candidate.counts), candidate.name);
    if let Some(base) = baseline {
        summary += &format!(", {} of {} of {}", base.counts.infra, tried(base.counts), base.name);
    }
    let missing = |side: &Side| Some(f64::from(side.counts.missing));
    let measurements = vec![
        both("infra_error_rate", "share", Some(now), baseline.map(share)),
        both("missing_attempts", "attempts", missing(candidate), baseline.map(missing)),
    ];
    Dimension::Measured { summary: summary + ".", measurements }
}

fn of_several() -> Dimension {
    Dimension::none("the rows compare several runs; give head and base to hold one run against another")
}

fn latency(candidate: &Side, baseline: Option<&Side>) -> Dimension {
    let Some(figures) = candidate.figures else { return of_several() };
    let Some(now) = figures.mean_duration() else {
        return Dimension::none(format!("no attempt of {} that came to an end records how long it took", candidate.name));
    };
    let mean = |side: &Side| side.figures.and_then(|figures| figures.mean_duration()).map(f64::round);
    let summary =
        format!("Mean wall time of an attempt, over {} of {}{}.", figures.timed, candidate.name, over(baseline, |figures| figures.timed));
    Dimension::Measured { summary, measurements: vec![both("attempt_duration_mean", "ms", Some(now.round()), baseline.map(mean))] }
}

/// The other side's number of attempts, where it has any.
fn over(baseline: Option<&Side>, count: fn(&Figures) -> u64) -> String {
    let of = |side: &Side| match side.figures.as_ref().map(count).filter(|count| *count > 0) {
        Some(count) => format!(" and {count} of {}", side.name),
        None => format!("; {} records none", side.name),
    };
    baseline.map(of).unwrap_or_default()
}

fn cost(candidate: &Side, baseline: Option<&Side>) -> Dimension {
    let Some(figures) = candidate.figures else { return of_several() };
    let Some(now) = figures.mean_cost() else {
        return Dimension::none(format!("no attempt of {} records what it cost", candidate.name));
    };
    let mean = |side: &Side| side.figures.and_then(|figures| figures.mean_cost()).map(tidy);
    // A sum over some of the attempts is no total.
    let whole =
        |side: &Side| side.figures.filter(|figures| figures.costed == figures.attempts).and_then(|figures| figures.cost_usd).map(tidy);
    let summary = format!(
        "Mean cost of an attempt, over {} of {} of {}{}.",
        figures.costed,
        figures.attempts,
        candidate.name,
        over(baseline, |figures| figures.costed)
    );
    let mut measurements = vec![both("attempt_cost_mean", "USD", Some(tidy(now)), baseline.map(mean))];
    measurements.extend(whole(candidate).map(|total| both("run_cost", "USD", Some(total), baseline.map(whole))));
    Dimension::Measured { summary, measurements }
}

#[cfg(test)]
mod tests;
