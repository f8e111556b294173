//! Case differences that come in groups (questions on one passage, tasks of one repository): what their mean's error is.
//!
//! Promises: cases of a group count as dependent, however they are; with groups of one size it is the standard error and the G - 1 degrees of
//! [`super::clustered_mean`], and with groups of several sizes it does not get shorter than it says, as that one does.
//!
//! Deliberately not here: choosing the groups, tests and intervals (`paired` does).

use std::collections::BTreeMap;

/// The differences summed by group.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// Of each group: the sum of its differences and its number of cases.
    groups: Vec<(f64, f64)>,
    /// All cases.
    cases: f64,
}

/// How sure the mean is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// The variance of the mean.
    pub variance: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
}

impl Groups {
    /// A difference without a group stands for itself. `None` where no two share one: then nothing is clustered.
    pub(crate) fn of(differences: impl Iterator<Item = (Option<u64>, f64)>) -> Option<Self> {
        let (mut named, mut groups) = (BTreeMap::<u64, (f64, f64)>::new(), Vec::new());
        for (group, difference) in differences {
            match group {
                Some(group) => {
                    let (sum, size) = named.entry(group).or_default();
                    (*sum, *size) = (*sum + difference, *size + 1.0);
                }
                None => groups.push((difference, 1.0)),
            }
        }
        let shared = named.values().any(|(_, size)| *size > 1.0);
        groups.extend(named.into_values());
        let cases = groups.iter().map(|(_, size)| size).sum();
        shared.then_some(Self { groups, cases })
    }

    /// How many groups there are.
    pub(crate) fn count(&self) -> u64 {
        self.groups.len() as u64
    }

    /// The sum of each group: what turns its sign as one.
    pub(crate) fn sums(&self) -> Vec<f64> {
        self.groups.iter().map(|(sum, _)| *sum).collect()
    }

    /// Groups whose differences do not cancel out. Sums of rates that should cancel leave rounding.
    pub(crate) fn turned(&self) -> u64 {
        self.groups.iter().filter(|(sum, size)| sum.abs() > 1e-12 * size).count() as u64
    }

    /// The variance of the mean with the residuals of each group put right for their part in it (CR2), and Satterthwaite's degrees for that.
    /// `None` with one group alone.
    ///
    /// Source: Bell and McCaffrey (2002), Survey Methodology 28:169-181, as in Imbens and Kolesar (2016), Rev. Econ. Stat. 98:701-712, for a
    /// regression on a constant, where a group's leverage is its share w of the cases: variance sum (residuals of a group)^2 / (1 - w) / n^2;
    /// degrees 1 / (sum w^2 + sum over pairs (w v)^2 / ((1 - w)(1 - v))). With G groups of one size they are G - 1.
    pub(crate) fn spread(&self) -> Option<Spread> {
        if self.groups.len() < 2 {
            return None;
        }
        let mean = self.groups.iter().map(|(sum, _)| sum).sum::<f64>() / self.cases;
        let (mut squares, mut own, mut both, mut same) = (0.0, 0.0, 0.0, 0.0);
        for (sum, size) in &self.groups {
            let share = size / self.cases;
            squares += (sum - mean * size).powi(2) / (1.0 - share);
            let part = share * share / (1.0 - share);
            (own, both, same) = (own + share * share, both + part, same + part * part);
        }
        let (variance, degrees) = (squares / (self.cases * self.cases), 1.0 / (own + (both * both - same).max(0.0)));
        (variance.is_finite() && degrees.is_finite()).then_some(Spread { variance, degrees })
    }
}

#[cfg(test)]
mod tests {
    use super::super::clustered_mean;
    use super::super::fixture::{cases, close, float, floats};
    use super::*;

    fn groups(names: &[f64], values: &[f64]) -> Groups {
        Groups::of(names.iter().map(|name| Some(*name as u64)).zip(values.iter().copied())).unwrap()
    }

    #[test]
    fn the_computed_values() {
        for c in cases("clustered_cr2") {
            let found = groups(&floats(&c, "groups"), &floats(&c, "values")).spread().unwrap();
            close(found.variance.sqrt(), float(&c, "se"), 1e-9);
            close(found.degrees, float(&c, "degrees"), 1e-9);
        }
    }

    #[test]
    fn groups_of_one_size_are_the_plain_clustered_error() {
        let values: Vec<f64> = (0..24).map(|at| f64::from(at * at % 7 - 3) / 4.0).collect();
        let names: Vec<f64> = (0..24).map(|at| f64::from(at / 4)).collect();
        let rows: Vec<(u64, f64)> = names.iter().map(|name| *name as u64).zip(values.iter().copied()).collect();
        let (plain, found) = (clustered_mean(&rows).unwrap(), groups(&names, &values).spread().unwrap());
        close(found.variance.sqrt(), plain.se, 1e-12);
        close(found.degrees, 5.0, 1e-12);
    }

    #[test]
    fn what_nobody_shares_is_no_group() {
        assert!(Groups::of([(Some(1), 0.5), (Some(2), 0.5), (None, 0.1), (None, 0.2)].into_iter()).is_none());
        let one = Groups::of([(Some(1), 0.5), (Some(1), -0.5)].into_iter()).unwrap();
        assert!(one.spread().is_none() && one.turned() == 0 && one.count() == 1);
        let with_loners = Groups::of([(Some(1), 1.0), (None, 1.0), (Some(1), 1.0), (None, 0.0)].into_iter()).unwrap();
        assert_eq!((with_loners.count(), with_loners.turned()), (3, 2));
    }
}
