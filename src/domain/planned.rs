//! Planned attempts that have no record, given to the arms of a log (decision 95).
//!
//! Promises: the shares add up to what is missing, and are never negative.
//! Does not: know which log is a task's last.

/// How many planned attempts each arm lacks: `planned` for one evaluation of one task, `recorded` attempts per arm, in the order of names.
///
/// A log says how many attempts it planned in all, not for which arm. What is missing goes to the arms below the even share, in their order.
#[must_use]
pub fn missing(planned: u32, recorded: &[u32]) -> Vec<u32> {
    let total: u64 = recorded.iter().copied().map(u64::from).sum();
    let mut left = u32::try_from(u64::from(planned).saturating_sub(total)).unwrap_or(0);
    let share = planned.div_ceil(u32::try_from(recorded.len()).unwrap_or(u32::MAX).max(1));
    let mut out = Vec::with_capacity(recorded.len());
    for have in recorded {
        let given = left.min(share.saturating_sub(*have));
        left -= given;
        out.push(given);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_shared_out_once() {
        assert_eq!(missing(10, &[5, 3]), [0, 2]);
        assert_eq!(missing(10, &[7, 3]), [0, 0]);
        assert_eq!(missing(10, &[7, 1]), [0, 2]);
        assert_eq!(missing(3, &[5]), [0]);
        assert_eq!(missing(7, &[0, 0]), [4, 3]);
        assert_eq!(missing(5, &[]), Vec::<u32>::new());
        assert_eq!(missing(u32::MAX, &[0]), [u32::MAX]);
    }
}
