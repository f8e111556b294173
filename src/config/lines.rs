//! Every fault of a config file at once, each with the line that it stands in.
//!
//! Promises: where the text is no TOML every place that is none is told; else every key that is wrong; what is right is a [`Config`] all
//! the same, so that whoever needs more of it can go on looking for faults.
//! Does not: read files, or say anything that [`Config::parse`] does not say.

use std::collections::BTreeMap;

use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue},
};

use super::{Config, check};

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// A sentence that begins with the key.
    pub text: String,
}

/// Where each key of a file stands.
pub struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The lines of `text`'s keys, and what of it is no TOML.
    #[must_use]
    pub fn of(text: &str) -> (Self, Vec<Fault>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut lines = BTreeMap::new();
        let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        walk(table.get_ref(), "", &line, &mut lines);
        let faults = errors.iter().map(|error| Fault {
            line: error.span().map_or(1, |span| line(span.start)),
            text: error.message().trim_end().replace('\n', "; "),
        });
        (Self(lines), faults.collect())
    }

    /// The line of the key that `sentence` begins with; of the table that it is missing in, where it is not there.
    #[must_use]
    pub fn of_sentence(&self, sentence: &str) -> usize {
        let mut path = key_of(sentence);
        loop {
            if let Some(line) = self.0.get(path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(at) => path = path.get(..at).unwrap_or_default(),
                None => return 1,
            }
        }
    }
}

/// The key that a complaint begins with, such as `limits.rows_limit` or `auth.issuer[2].audiences`.
fn key_of(sentence: &str) -> &str {
    let word = sentence.split(' ').next().unwrap_or_default().trim_end_matches(':');
    word.strip_prefix('[').map_or(word, |section| section.trim_end_matches(']'))
}

fn walk(table: &DeTable<'_>, above: &str, line: &impl Fn(usize) -> usize, into: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let path = if above.is_empty() { key.get_ref().to_string() } else { format!("{above}.{}", key.get_ref()) };
        into.insert(path.clone(), line(key.span().start));
        inner(value, &path, line, into);
    }
}

fn inner(value: &Spanned<DeValue<'_>>, path: &str, line: &impl Fn(usize) -> usize, into: &mut BTreeMap<String, usize>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, path, line, into),
        DeValue::Array(all) => {
            for (index, one) in all.iter().enumerate() {
                let path = format!("{path}[{index}]");
                into.insert(path.clone(), line(one.span().start));
                inner(one, &path, line, into);
            }
        }
        _ => {}
    }
}

impl Config {
    /// What is wrong with `text`, by line; the configuration of what is right; and where its keys stand.
    #[must_use]
    pub fn faults(text: &str) -> (Vec<Fault>, Self, Lines) {
        let (lines, broken) = Lines::of(text);
        if !broken.is_empty() {
            return (broken, Self::default(), lines);
        }
        let mut table: Table = toml::from_str(text).unwrap_or_default();
        let complaints = check::complaints(&table);
        complaints.iter().for_each(|sentence| without(&mut table, key_of(sentence)));
        let faults = complaints.into_iter().map(|text| Fault { line: lines.of_sentence(&text), text }).collect();
        (faults, table.try_into().unwrap_or_default(), lines)
    }
}

/// Takes out the key at `path`: of a list of tables all of it.
fn without(table: &mut Table, path: &str) {
    let (section, key) = path.split_once('.').unwrap_or((path, ""));
    let key = key.split(['.', '[']).next().unwrap_or_default();
    match table.get_mut(section) {
        Some(Value::Table(keys)) if !key.is_empty() => {
            keys.remove(key);
        }
        _ => {
            table.remove(section);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(usize, String)> {
        Config::faults(text).0.into_iter().map(|fault| (fault.line, fault.text)).collect()
    }

    #[test]
    fn each_fault_has_its_line() {
        let text =
            "# mine\n[limits]\nrows_limit = 0\n\n[limit]\n[auth]\n[[auth.issuer]]\nissuer = \"a\"\n\n[[auth.issuer]]\naudiences = \"a\"\n";
        let told = told(text);
        let of = |begin: &str| told.iter().filter(|(_, text)| text.starts_with(begin)).map(|(line, _)| *line).collect::<Vec<_>>();
        assert_eq!(of("limits.rows_limit is 0"), [3], "{told:?}");
        assert_eq!(of("[limit] is no section"), [5]);
        assert_eq!(of("auth.issuer[1].audiences is text"), [11]);
        assert_eq!(of("auth.issuer[0].jwks_url is empty"), [7], "what is missing is missing in its table");
    }

    #[test]
    fn what_is_right_is_a_configuration_all_the_same() {
        let (faults, config, lines) = Config::faults("[limits]\nrows_limit = 0\nline_bytes = 2048\n[http]\nport = 5000\nhosts = 1\n");
        assert_eq!((faults.len(), config.http.port, config.limits.line_bytes), (2, 5000, 2048));
        assert_eq!(config.limits.rows_limit, Config::default().limits.rows_limit);
        assert_eq!((lines.of_sentence("http.port: it is taken"), lines.of_sentence("tenants.data_dir is empty")), (5, 1));
    }

    #[test]
    fn what_is_no_toml_is_told_by_line_too() {
        let told = told("[limits\nrows_limit = 1\nx = = 2\n[http]\nport = \n");
        assert!(told.len() >= 3 && told.iter().map(|(line, _)| *line).collect::<Vec<_>>().starts_with(&[1]), "{told:?}");
        assert!(told.iter().any(|(line, _)| *line == 5), "{told:?}");
        assert!(told.iter().all(|(_, text)| !text.is_empty()));
    }
}
