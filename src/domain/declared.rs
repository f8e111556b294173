//! What a project declares in `runlore.toml` (decision 67): thresholds, families, arm roles, sources.
//!
//! Promises: unknown keys are refused by name, so a typo is never silently ignored.
//! Does not: read the file, or resolve paths.

use serde::{Deserialize, Serialize};

/// The declarations of one project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Declared {
    /// `[[source]]`: where logs are found beside `logs/`.
    pub source: Vec<Source>,
    /// `[[evaluation]]`: thresholds and families.
    pub evaluation: Vec<EvaluationRule>,
    /// `[[arm]]`: names and roles.
    pub arm: Vec<ArmRule>,
    /// `[[goal]]`: declared comparisons (kept for the catalog).
    pub goal: Vec<Goal>,
    /// `[[reference]]`: published or human scores (kept for the catalog).
    pub reference: Vec<Reference>,
}

/// A directory or file of logs, relative to the project root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The path, relative to the project root.
    pub path: String,
    /// What makes a run: `run_id` (the default), `eval_set`, `directory`, or `metadata.<key>` (decision 93).
    #[serde(default)]
    pub run: RunRule,
}

/// The source of what was sent. Nothing looks there, so it never vanishes.
pub const SENT: &str = "push";
/// The same of a scratch run: sent again once it is recorded, it is another thing.
pub const SENT_SCRATCH: &str = "push scratch";
/// What stands between the path and the rule in a source's name.
const RULE: &str = " (run = ";

/// The name of a source in the store. Its rule is part of it: files found under another rule are read anew.
#[must_use]
pub fn source_label(path: &str, rule: &RunRule) -> String {
    let path = path.trim_end_matches('/');
    match rule {
        RunRule::RunId => path.to_owned(),
        rule => format!("{path}{RULE}\"{}\")", String::from(rule.clone())),
    }
}

/// Whether a source of this name is that of `path`, whatever its rule.
#[must_use]
pub fn is_of_path(label: &str, path: &str) -> bool {
    label.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(RULE))
}

/// What makes the logs of a source one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RunRule {
    /// The source's own invocation id.
    #[default]
    RunId,
    /// The eval set (round).
    EvalSet,
    /// The directory that the log stands in.
    Directory,
    /// The value of one metadata key.
    Metadata(String),
    /// One id for everything imported (`--run ID`).
    Fixed(String),
}

impl TryFrom<String> for RunRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "run_id" => Ok(Self::RunId),
            "eval_set" => Ok(Self::EvalSet),
            "directory" => Ok(Self::Directory),
            other => match other.strip_prefix("metadata.").filter(|key| !key.is_empty()) {
                Some(key) => Ok(Self::Metadata(key.to_owned())),
                None => Err(format!("\"{other}\" makes no run; use run_id, eval_set, directory or metadata.<key>")),
            },
        }
    }
}

impl From<RunRule> for String {
    fn from(rule: RunRule) -> Self {
        match rule {
            RunRule::RunId => "run_id".into(),
            RunRule::EvalSet => "eval_set".into(),
            RunRule::Directory => "directory".into(),
            RunRule::Metadata(key) => format!("metadata.{key}"),
            RunRule::Fixed(id) => id,
        }
    }
}

/// A threshold or family for the evaluations whose id is `id` (a trailing `*` matches any ending).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationRule {
    /// The evaluation's id.
    pub id: String,
    /// The rate from which a cell passes, 0 to 1.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// The family.
    #[serde(default)]
    pub family: Option<String>,
}

/// A role, or a shorter name, for the arms whose name is `match` (a trailing `*` matches any ending).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmRule {
    /// The arm's name as derived from the log.
    #[serde(rename = "match")]
    pub matches: String,
    /// The name to use instead.
    #[serde(default)]
    pub name: Option<String>,
    /// `control` or `variant`.
    #[serde(default)]
    pub role: Option<Role>,
}

/// An arm's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What others are held against.
    Control,
    /// What is tried.
    Variant,
}

impl Role {
    /// The role's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Control => "control",
            Role::Variant => "variant",
        }
    }
}

/// A declared comparison: arm beats `versus` on `metric` over `evaluations` by `margin`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Its name.
    pub id: String,
    /// The arm that should win.
    pub arm: String,
    /// The arm it is held against.
    pub versus: String,
    /// A check name, or `pass`.
    #[serde(default = "pass_metric")]
    pub metric: String,
    /// The evaluations' ids; empty means all.
    #[serde(default)]
    pub evaluations: Vec<String>,
    /// By how much.
    #[serde(default)]
    pub margin: f64,
}

fn pass_metric() -> String {
    "pass".to_owned()
}

/// A published or human score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The evaluation's id.
    pub evaluation: String,
    /// A check name, or `pass`.
    #[serde(default = "pass_metric")]
    pub metric: String,
    /// The score.
    pub value: f64,
    /// `published` or `human`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Where it stands.
    #[serde(default)]
    pub source: Option<String>,
    /// Over how many.
    #[serde(default)]
    pub n: Option<u32>,
}

/// Whether `pattern` (exact, or with a trailing `*`) names `id`.
#[must_use]
pub fn matches(pattern: &str, id: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == id, |prefix| id.starts_with(prefix))
}

impl Declared {
    /// The declared threshold of an evaluation: the first rule that names it and has one.
    #[must_use]
    pub fn threshold(&self, evaluation: &str) -> Option<f64> {
        self.evaluation.iter().filter(|rule| matches(&rule.id, evaluation)).find_map(|rule| rule.threshold)
    }

    /// The declared family of an evaluation.
    #[must_use]
    pub fn family(&self, evaluation: &str) -> Option<&str> {
        self.evaluation.iter().filter(|rule| matches(&rule.id, evaluation)).find_map(|rule| rule.family.as_deref())
    }

    /// The declared name of an arm, else `derived` itself.
    #[must_use]
    pub fn arm_name<'a>(&'a self, derived: &'a str) -> &'a str {
        self.arm.iter().filter(|rule| matches(&rule.matches, derived)).find_map(|rule| rule.name.as_deref()).unwrap_or(derived)
    }

    /// The declared role of an arm, by its derived or declared name.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<Role> {
        self.arm.iter().filter(|rule| matches(&rule.matches, name) || rule.name.as_deref() == Some(name)).find_map(|rule| rule.role)
    }

    /// What is wrong with the declarations, if anything, as a sentence.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let wrong = self.evaluation.iter().find(|rule| rule.threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold)));
        let wrong = wrong.map(|rule| format!("[[evaluation]] id = \"{}\": threshold must be from 0 to 1", rule.id));
        wrong.or_else(|| self.arm.iter().find_map(arm_fault))
    }
}

/// A name stands in keys, in every answer and on terminals, and must be one that can be typed again.
fn arm_fault(rule: &ArmRule) -> Option<String> {
    let name = rule.name.as_deref()?;
    let wrong = if name.trim().is_empty() {
        "name is empty; give a name, or leave it out to keep the arm's own".to_owned()
    } else {
        let control = name.chars().find(|character| character.is_control())?;
        format!("name = \"{}\" holds the control character {control:?}", name.escape_debug())
    };
    Some(format!("[[arm]] match = \"{}\": {wrong}", rule.matches.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_rule_with_a_value_holds() {
        let declared: Declared = toml::from_str("[[evaluation]]\nid = \"math*\"\nfamily = \"math\"\n[[evaluation]]\nid = \"math_hard\"\nthreshold = 0.5\n[[arm]]\nmatch = \"openai/*\"\nname = \"base\"\nrole = \"control\"").unwrap();
        assert_eq!((declared.threshold("math_hard"), declared.family("math_hard")), (Some(0.5), Some("math")));
        assert_eq!((declared.threshold("other"), declared.arm_name("openai/x"), declared.arm_name("y")), (None, "base", "y"));
        assert_eq!((declared.role("base"), declared.role("openai/x")), (Some(Role::Control), Some(Role::Control)));
    }

    #[test]
    fn typos_and_impossible_values_are_refused_by_name() {
        assert!(toml::from_str::<Declared>("[[evaluation]]\nid = \"a\"\ntreshold = 1").unwrap_err().to_string().contains("treshold"));
        assert!(toml::from_str::<Declared>("[[source]]\npath = \"x\"\nrun = \"sha\"").unwrap_err().to_string().contains("eval_set"));
        let declared: Declared = toml::from_str("[[evaluation]]\nid = \"a\"\nthreshold = 80").unwrap();
        assert!(declared.fault().unwrap().contains("from 0 to 1"));
        for (name, part) in
            [("", "name is empty"), (" \\t", "name is empty"), ("a\\u001b[2J", "control character '\\u{1b}'"), ("a\\nb", "control")]
        {
            let declared: Declared = toml::from_str(&format!("[[arm]]\nmatch = \"m*\"\nname = \"{name}\"")).unwrap();
            let fault = declared.fault().unwrap();
            assert!(fault.starts_with("[[arm]] match = \"m*\": ") && fault.contains(part), "{fault}");
        }
        assert_eq!(toml::from_str::<Declared>("[[arm]]\nmatch = \"m\"\nname = \"é b\"\n[[arm]]\nmatch = \"n\"").unwrap().fault(), None);
    }
}
