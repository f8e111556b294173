//! The helper tables of one evaluation that follow from its sums alone: contrasts, effort, levels of factors, checks.
//!
//! Promises: rows are those of the sums, where those of before were cleared (`refresh` does, but for contrasts); a pair of arms of which neither changed is not worked out again, since it would come out the same.
//! Does not: look at single runs (`series` does).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::{
    Cases, Changed, Tally, ends, interval_of, natural, pairs, part,
    sums::{Section, Sums},
    together,
};
use crate::{
    stats,
    store::{Result, sqlite::names::Names},
};

/// Writes the tables.
pub(super) fn write(connection: &Connection, eval_no: i64, changed: &Changed) -> Result<()> {
    contrasts(connection, eval_no, changed)?;
    effort(connection, eval_no, changed)?;
    levels(connection, eval_no, changed)?;
    checks(connection, eval_no, &changed.sums)
}

/// The cases of each group of variants.
fn by<K: Ord>(changed: &Changed, group: impl Fn(&super::Variant) -> K) -> BTreeMap<K, Cases> {
    let mut out = BTreeMap::<K, Cases>::new();
    each(changed, Section::Cases, group, &mut out, |cases, case, values| cases.entry(case).or_default().add(values));
    out
}

/// Hands each row of a section to `add`, with what `out` has of its variant's group. A variant's rows stand together, so that its group is
/// worked out once for all of them.
fn each<K: Ord, V: Default>(
    changed: &Changed,
    section: Section,
    group: impl Fn(&super::Variant) -> K,
    out: &mut BTreeMap<K, V>,
    add: impl Fn(&mut V, i64, [i64; 2]),
) {
    let mut rows = changed.sums.of(section).peekable();
    while let Some(([number, ..], _)) = rows.peek().copied() {
        let mut held = changed.variants.get(&number).map(|variant| out.entry(group(variant)).or_default());
        while let Some(([_, second, ..], values)) = rows.next_if(|([other, ..], _)| *other == number) {
            if let Some(held) = held.as_deref_mut() {
                add(held, second, values);
            }
        }
    }
}

fn contrasts(connection: &Connection, eval_no: i64, changed: &Changed) -> Result<()> {
    let known: BTreeSet<i64> = changed.variants.values().map(|variant| variant.arm_no).collect();
    if known.len() < 2 {
        // Neither is there a pair, nor was there one.
        return Ok(());
    }
    let arms = by(changed, |variant| variant.arm_no);
    let mut names = Names::arms(connection);
    for touched in changed.arms.keys() {
        let sql = "DELETE FROM contrasts_m WHERE eval_no = ?1 AND (arm_a = ?2 OR arm_b = ?2)";
        connection.prepare_cached(sql)?.execute([eval_no, *touched])?;
    }
    let mut done = BTreeSet::new();
    for a in changed.arms.keys().filter(|arm| arms.contains_key(arm)) {
        done.insert(*a);
        for b in arms.keys().filter(|arm| !done.contains(arm)) {
            let name = names.get(*a)?.to_owned();
            let first = name.as_str() < names.get(*b)?;
            let (a, b) = if first { (a, b) } else { (b, a) };
            if let (Some(of_a), Some(of_b)) = (arms.get(a), arms.get(b)) {
                contrast(connection, eval_no, (*a, of_a), (*b, of_b))?;
            }
        }
    }
    Ok(())
}

/// Writes a pair of arms in both directions.
fn contrast(connection: &Connection, eval_no: i64, (a, of_a): (i64, &Cases), (b, of_b): (i64, &Cases)) -> Result<()> {
    let cases = pairs(of_a, of_b);
    let found = stats::paired(&cases);
    let (all_a, all_b) = (together(of_a), together(of_b));
    let [low, high] = ends(found.and_then(|found| found.interval));
    let (difference, p) = (found.map(|found| found.difference), found.map(|found| found.p));
    let sql =
        "INSERT INTO contrasts_m (eval_no, arm_a, arm_b, forward, rate_a, rate_b, n_a, n_b, difference, ci_low, ci_high, p_value, n_pairs)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    // 0.0 -: the other way round 0 stays 0, and is not -0.
    let turned = |value: Option<f64>| value.map(|value| 0.0 - value);
    for (forward, arms, rates, difference, [low, high]) in
        [(1, [a, b], [all_a, all_b], difference, [low, high]), (0, [b, a], [all_b, all_a], turned(difference), [turned(high), turned(low)])]
    {
        let ([a, b], [of_a, of_b]) = (arms, rates);
        let (n_a, n_b) = (of_a.counted as i64, of_b.counted as i64);
        connection.prepare_cached(sql)?.execute(params![
            eval_no,
            a,
            b,
            forward,
            of_a.rate(),
            of_b.rate(),
            n_a,
            n_b,
            difference,
            low,
            high,
            p,
            cases.len() as i64
        ])?;
    }
    Ok(())
}

/// Harness, model and effort, where the arm has the factor.
type Stack = [Option<String>; 3];

fn stack(variant: &super::Variant) -> Stack {
    ["harness", "model", "effort"].map(|factor| variant.factors.get(factor).cloned())
}

fn effort(connection: &Connection, eval_no: i64, changed: &Changed) -> Result<()> {
    let mut usage = BTreeMap::<Stack, [[i64; 2]; 4]>::new();
    each(changed, Section::Usage, stack, &mut usage, |held, place, [sum, n]| {
        if let Some([held_sum, held_n]) = usize::try_from(place).ok().and_then(|place| held.get_mut(place)) {
            (*held_sum, *held_n) = (held_sum.wrapping_add(sum), held_n.wrapping_add(n));
        }
    });
    let mut durations = BTreeMap::<Stack, BTreeMap<i64, i64>>::new();
    each(changed, Section::Durations, stack, &mut durations, |held, duration, [n, _]| *held.entry(duration).or_default() += n);
    let sql = "INSERT INTO effort_m (eval_no, seq, harness, model, effort, n, rate, ci_low, ci_high, cost_usd_mean, tokens_in_mean, tokens_out_mean,
               turns_mean, duration_ms_p50, duration_ms_p90) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    for (seq, (stack, cases)) in (0_i64..).zip(by(changed, stack)) {
        let (all, [low, high]) = (together(&cases), interval_of(&cases));
        let figures = usage.get(&stack).copied().unwrap_or_default();
        let [cost, tokens_in, tokens_out, turns] = figures;
        let none = BTreeMap::new();
        let held = durations.get(&stack).unwrap_or(&none);
        let [harness, model, effort] = &stack;
        connection.prepare_cached(sql)?.execute(params![
            eval_no,
            seq,
            harness,
            model,
            effort,
            all.counted as i64,
            all.rate(),
            low,
            high,
            part::mean(0, cost),
            part::mean(1, tokens_in),
            part::mean(2, tokens_out),
            part::mean(3, turns),
            nearest_rank(held, 50),
            nearest_rank(held, 90)
        ])?;
    }
    Ok(())
}

/// The smallest value that at least `percent` of the values do not exceed.
fn nearest_rank(values: &BTreeMap<i64, i64>, percent: i64) -> Option<i64> {
    let all: i64 = values.values().sum();
    let mut seen = 0_i64;
    values.iter().find_map(|(value, n)| {
        seen += n;
        (seen.saturating_mul(100) >= all.saturating_mul(percent)).then_some(*value)
    })
}

fn levels(connection: &Connection, eval_no: i64, changed: &Changed) -> Result<()> {
    let factors: BTreeSet<&String> = changed.variants.values().flat_map(|variant| variant.factors.keys()).collect();
    let sql = "INSERT INTO levels_m (eval_no, factor, level, passed, counted, difference) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for factor in factors {
        let levels = by(changed, |variant| variant.factors.get(factor).cloned());
        for (level, cases) in &levels {
            // Where the factor is not told it is no level, and nothing to hold others against.
            let Some(level) = level else { continue };
            let others = levels.iter().filter(|(other, _)| other.as_ref().is_some_and(|other| other != level));
            let difference = mean_difference(cases, &merged(others.map(|(_, cases)| cases)));
            let all = together(cases);
            connection.prepare_cached(sql)?.execute(params![eval_no, factor, level, all.passed as i64, all.counted as i64, difference])?;
        }
    }
    Ok(())
}

pub(super) fn merged<'a>(all: impl Iterator<Item = &'a Cases>) -> Cases {
    let mut out = Cases::new();
    for (case, tally) in all.flatten() {
        let held = out.entry(*case).or_default();
        (held.passed, held.counted) = (held.passed + tally.passed, held.counted + tally.counted);
    }
    out
}

/// The mean over the cases that both sides counted; none where there is no such case.
fn mean_difference(head: &Cases, base: &Cases) -> Option<f64> {
    let pairs = pairs(head, base);
    let sum: f64 = pairs.iter().map(|pair| pair.head - pair.base).sum();
    (!pairs.is_empty()).then(|| sum / pairs.len() as f64)
}

fn checks(connection: &Connection, eval_no: i64, sums: &Sums) -> Result<()> {
    let mut answers = BTreeMap::<i64, Cases>::new();
    for ([_, check_no, case, _], values) in sums.of(Section::Checks) {
        answers.entry(check_no).or_default().entry(case).or_default().add(values);
    }
    let mut rests = BTreeMap::<i64, Vec<(f64, f64, u64)>>::new();
    for ([check_no, answer, passed, all], [n, _]) in sums.of(Section::Rests) {
        rests.entry(check_no).or_default().push((answer as f64, passed as f64 / all as f64, natural(n)));
    }
    let sql = "INSERT INTO check_rates_m (eval_no, check_no, n, passed, rate, ci_low, ci_high, rest_n, rest_rate, item_rest_correlation)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    for (check_no, cases) in answers {
        let (Tally { passed, counted }, [low, high]) = (together(&cases), interval_of(&cases));
        let rest = rests.remove(&check_no).unwrap_or_default();
        let rest_n: u64 = rest.iter().map(|(.., n)| n).sum();
        let rest_passed: u64 = rest.iter().filter(|(answer, ..)| *answer > 0.0).map(|(.., n)| n).sum();
        let rest_rate = (rest_n > 0).then(|| rest_passed as f64 / rest_n as f64);
        connection.prepare_cached(sql)?.execute(params![
            eval_no,
            check_no,
            counted as i64,
            passed as i64,
            passed as f64 / counted as f64,
            low,
            high,
            rest_n as i64,
            rest_rate,
            stats::correlation(&rest)
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values = BTreeMap::from([(10, 1), (20, 2), (30, 1)]);
        // Of 10 20 20 30, half do not exceed 20, and nine in ten need all four.
        assert_eq!((nearest_rank(&values, 50), nearest_rank(&values, 90), nearest_rank(&values, 25)), (Some(20), Some(30), Some(10)));
        assert_eq!(nearest_rank(&BTreeMap::new(), 50), None);
    }
}
