//! Properties that say what a field of ours says, by the names that people give them.
//!
//! Promises: a name is known however its words are joined; a value that cannot be what its name says is taken for any other property.
//! Does not: keep values.

use crate::domain::attempt::Usage;

/// What a property is known to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Sha,
    Branch,
    Dirty,
    Model,
    Arm,
    Epoch,
    Cost,
    InputTokens,
    OutputTokens,
    TotalTokens,
}

const NAMES: [(Known, &[&str]); 10] = [
    (Known::Sha, &["git_sha", "git_commit", "git_commit_sha", "git_commit_id", "commit", "commit_sha", "commit_hash", "sha", "revision"]),
    (Known::Branch, &["git_branch", "branch"]),
    (Known::Dirty, &["git_dirty"]),
    (Known::Model, &["model", "model_name", "model_id"]),
    (Known::Arm, &["arm"]),
    (Known::Epoch, &["epoch"]),
    (Known::Cost, &["cost", "cost_usd", "total_cost", "total_cost_usd"]),
    (Known::InputTokens, &["input_tokens", "prompt_tokens", "tokens_input", "tokens_prompt"]),
    (Known::OutputTokens, &["output_tokens", "completion_tokens", "tokens_output", "tokens_completion"]),
    (Known::TotalTokens, &["tokens", "total_tokens", "tokens_total"]),
];

/// What the property says, if anything that is known.
pub(super) fn known(name: &str, value: &str) -> Option<Known> {
    let name = name.trim().to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let (known, _) = NAMES.iter().find(|(_, names)| names.contains(&name.as_str()))?;
    let fits = match known {
        Known::Sha => (7..=64).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_hexdigit()),
        Known::Dirty => flag(value).is_some(),
        Known::Epoch => count(value).is_some_and(|epoch| u32::try_from(epoch).is_ok()),
        Known::Cost => amount(value).is_some(),
        Known::InputTokens | Known::OutputTokens | Known::TotalTokens => count(value).is_some(),
        Known::Branch | Known::Model | Known::Arm => !value.trim().is_empty(),
    };
    fits.then_some(*known)
}

/// A yes or no.
pub(super) fn flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// A whole number, with or without separators.
pub(super) fn count(value: &str) -> Option<u64> {
    let plain = value.trim().replace([',', '_'], "");
    plain.strip_suffix(".0").unwrap_or(&plain).parse().ok()
}

/// An amount of money in dollars.
pub(super) fn amount(value: &str) -> Option<f64> {
    let plain = value.trim().trim_start_matches('$').parse::<f64>().ok()?;
    (plain.is_finite() && plain >= 0.0).then_some(plain)
}

/// Puts a count of tokens where it belongs.
pub(super) fn tokens(usage: &mut Usage, known: Known, value: &str) {
    match known {
        Known::InputTokens => usage.input_tokens = count(value),
        Known::OutputTokens => usage.output_tokens = count(value),
        Known::TotalTokens => usage.total_tokens = count(value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_many_spellings() {
        for (name, value, wanted) in [
            ("git_sha", "deadbeef", Some(Known::Sha)),
            ("git.commit", "0123abc", Some(Known::Sha)),
            ("sha", "no sha", None),
            ("Model", "gpt-4o", Some(Known::Model)),
            ("model", " ", None),
            ("total-tokens", "1,234", Some(Known::TotalTokens)),
            ("tokens", "many", None),
            ("cost", "$0.5", Some(Known::Cost)),
            ("cost", "NaN", None),
            ("epoch", "2", Some(Known::Epoch)),
            ("java.version", "21", None),
        ] {
            assert_eq!(known(name, value), wanted, "{name}={value}");
        }
        assert_eq!((count("1,234"), count("7.0"), amount("0.25")), (Some(1234), Some(7), Some(0.25)));
    }
}
