//! The configuration: defaults, then one file over them, held against bounds.
//!
//! Promises: struct = key = doc = default (one declaration in `keys`); every key has bounds and a reason; an unknown key, a wrong type or
//! a number out of bounds is a sentence that names the key and what is allowed; an absent file means the defaults.
//! Does not: hold secrets, read the environment, or watch the file: a running server keeps what it started with.

#[macro_use]
mod shape;

mod check;
pub mod commands;
mod executors;
mod issuers;
pub mod keys;
pub mod lines;
mod outside;
pub mod reference;
mod tables;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

pub use keys::Config;

/// The defaults as a config file with every key explained, for people to start from. Written by a test from `keys`.
pub const DEFAULT_TOML: &str = include_str!("../config/default.toml");

/// Where a project keeps its config, below its root.
const PROJECT_FILE: &str = ".runlore/config.toml";

/// Bytes that a config file may have: a hundred times what all keys take, and far from what hurts to read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why the configuration cannot be used; for a person, on standard error, with exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file that the caller named, or the project's own, cannot be read.
    #[error("the config file {} cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The text is no TOML, or its keys are wrong.
    #[error("{source_name}: {}", complaints.join("\n"))]
    Wrong {
        /// Where the text came from.
        source_name: String,
        /// A sentence each.
        complaints: Vec<String>,
    },
}

impl Config {
    /// The configuration for `project` (its root directory): `named` (`--config FILE`) where given, else the project's own file if there
    /// is one, else the defaults.
    ///
    /// # Errors
    /// [`Error`], where a file is there and cannot be used, or `named` is not there.
    pub fn load(named: Option<&Path>, project: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = named {
            return Self::read(path)?
                .ok_or_else(|| Error::Unreadable { path: path.to_owned(), reason: "there is no such file".to_owned() });
        }
        let own = project.map(|root| root.join(PROJECT_FILE));
        Ok(own.map(|path| Self::read(&path)).transpose()?.flatten().unwrap_or_default())
    }

    /// The configuration in `text`; `source_name` stands before complaints.
    ///
    /// # Errors
    /// [`Error::Wrong`], with every complaint.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, Error> {
        let wrong = |complaints| Error::Wrong { source_name: source_name.to_owned(), complaints };
        let table: toml::Table = toml::from_str(text).map_err(|error| wrong(vec![error.to_string().trim_end().to_owned()]))?;
        let complaints = check::complaints(&table);
        if !complaints.is_empty() {
            return Err(wrong(complaints));
        }
        table.try_into().map_err(|error: toml::de::Error| wrong(vec![error.message().to_owned()]))
    }

    /// What reading one log may cost, as the importers take it.
    #[must_use]
    pub fn import_limits(&self) -> crate::importers::Limits {
        let import = &self.import;
        crate::importers::Limits {
            entries_max: import.entries_max,
            entry_bytes_max: import.entry_bytes_max,
            log_bytes_max: import.log_bytes_max,
            text_bytes_max: import.text_bytes_max,
        }
    }

    /// How much a tool may answer, as the tools take it.
    #[must_use]
    pub const fn tool_limits(&self) -> crate::tools::Limits {
        let limits = &self.limits;
        crate::tools::Limits {
            result_bytes: limits.result_bytes,
            resource_bytes: limits.resource_bytes,
            rows: limits.rows_limit,
            line_bytes: limits.line_bytes,
            tail_line_bytes: limits.tail_line_bytes,
        }
    }

    /// What holds for tools that write, as the tools take it.
    #[must_use]
    pub fn write_rules(&self) -> crate::tools::write::Rules {
        let (org, day) = (&self.org, self.org.max_cost_usd_per_day);
        crate::tools::write::Rules {
            approval_ms: i64::try_from(self.approval.ttl_s * 1000).unwrap_or(i64::MAX),
            queued_max: org.max_queued_runs,
            cost_usd_max: (day > 0).then_some(day as f64),
            connections_on: !self.connections.root.is_empty(),
        }
    }

    /// How much a question in SQL may take, as the store takes it.
    #[must_use]
    pub const fn query_limits(&self) -> crate::store::query::QueryLimits {
        let query = &self.query;
        crate::store::query::QueryLimits {
            deadline_ms: query.deadline_ms,
            result_bytes: query.result_bytes,
            value_bytes: query.value_bytes,
            memory_bytes: query.memory_bytes,
        }
    }

    /// The text of the file at `path`.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn text(path: &Path) -> Result<String, Error> {
        text(path).map_err(|error| Error::Unreadable { path: path.to_owned(), reason: error.to_string() })
    }

    /// `None` where there is no file at `path`.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        match text(path) {
            Ok(text) => Self::parse(&text, &path.display().to_string()).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Unreadable { path: path.to_owned(), reason: error.to_string() }),
        }
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        Config::parse(text, "x.toml").expect_err("this config is wrong").to_string()
    }

    #[test]
    fn the_embedded_file_is_the_defaults() {
        assert_eq!(Config::parse(DEFAULT_TOML, "default.toml").unwrap(), Config::default());
        assert_eq!(Config::parse("", "empty").unwrap(), Config::default());
    }

    #[test]
    fn the_examples_can_be_used() {
        let team = Config::parse(include_str!("../config/example.team.toml"), "example.team.toml").unwrap();
        assert!(!team.tenants.data_dir.is_empty() && team.auth.issuer.len() == 1 && team.metadata(&[]).is_some());
    }

    #[test]
    fn a_file_changes_what_it_names_and_nothing_else() {
        let config = Config::parse("[limits]\nrows_limit = 7\n[redaction]\nat_import = false\n", "x.toml").unwrap();
        assert_eq!((config.limits.rows_limit, config.redaction.at_import), (7, false));
        assert_eq!(config.limits.line_bytes, Config::default().limits.line_bytes);
    }

    #[test]
    fn numbers_out_of_bounds_are_named_with_their_bounds() {
        assert_eq!(complaint("[limits]\nrows_limit = 0"), "x.toml: limits.rows_limit is 0; it must be from 1 to 10000");
        assert_eq!(complaint("[limits]\nrows_limit = -3"), "x.toml: limits.rows_limit is -3; it must be from 1 to 10000");
        assert!(Config::parse("[limits]\nrows_limit = 10000", "").is_ok());
        assert!(complaint("[limits]\nrows_limit = 10001").contains("is 10001"));
    }

    #[test]
    fn wrong_types_and_unknown_names_are_named_too_and_all_at_once() {
        assert_eq!(
            complaint("[limits]\nrows_limit = \"9\""),
            "x.toml: limits.rows_limit is text; it must be a whole number from 1 to 10000"
        );
        assert_eq!(complaint("[redaction]\nat_import = 1"), "x.toml: redaction.at_import is 1; it must be true or false");
        assert_eq!(
            complaint("[redaction]\nat_imports = true"),
            "x.toml: redaction.at_imports is no key; the keys of [redaction] are at_import"
        );
        assert_eq!(
            complaint("[limit]"),
            "x.toml: [limit] is no section; the sections are import, index, store, limits, goals, query, http, auth, tenants, ingest, approval, org, worker, connections, tool_api, admin, otlp, sentry, analytics, redaction, commands; and there is [[command]]"
        );
        assert_eq!(complaint("limits = 3"), "x.toml: limits is 3; it must be a section, [limits]");
        assert_eq!(complaint("[limits]\nrows_limit = 0\nline_bytes = 0").lines().count(), 2);
    }

    #[test]
    fn every_number_is_refused_just_beyond_its_bounds_and_taken_at_them() {
        for row in keys::SECTIONS.iter().flat_map(|section| section.rows) {
            let keys::Shape::Number { min, max, .. } = row.shape else { continue };
            let set = |value: i128| Config::parse(&format!("[{}]\n{} = {value}", row.section, row.key), "");
            assert!(set(i128::from(min)).is_ok() && set(i128::from(max)).is_ok(), "{row:?}");
            assert!(set(i128::from(min) - 1).is_err() && set(i128::from(max) + 1).is_err(), "{row:?}");
        }
    }

    #[test]
    fn broken_toml_says_where() {
        assert!(complaint("[limits]\nrows_limit =").contains("line 2"));
        assert!(complaint("[limits]\nrows_limit = 1\nrows_limit = 2").contains("duplicate"));
    }

    #[test]
    fn files_are_found_in_order_and_a_missing_named_one_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let load = |named: Option<&Path>| Config::load(named, Some(project.path()));
        assert_eq!(load(None).unwrap(), Config::default());
        let own = project.path().join(PROJECT_FILE);
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "[limits]\nrows_limit = 11").unwrap();
        assert_eq!(load(None).unwrap().limits.rows_limit, 11);
        let named = project.path().join("named.toml");
        assert!(load(Some(&named)).unwrap_err().to_string().contains("there is no such file"));
        std::fs::write(&named, "[limits]\nrows_limit = 12").unwrap();
        assert_eq!(load(Some(&named)).unwrap().limits.rows_limit, 12);
        std::fs::write(&own, [0xff, 0xfe]).unwrap();
        assert!(load(None).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_huge_file_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(Config::load(Some(file.path()), None).unwrap_err().to_string().contains("larger than"));
    }

    #[test]
    fn the_defaults_of_each_piece_are_the_configs() {
        assert_eq!(Config::default().import_limits(), crate::importers::Limits::default());
        assert_eq!(Config::default().tool_limits(), crate::tools::Limits::default());
        assert_eq!(Config::default().write_rules(), crate::tools::write::Rules::default());
        assert_eq!(Config::default().query_limits(), crate::store::query::QueryLimits::default());
    }
}
