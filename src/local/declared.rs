//! Reading `runlore.toml` (decision 67).
//!
//! Promises: a missing file declares nothing; an error names the line, the column and the key, and no absolute path.
//! Does not: look whether the declared sources can be read: that can change at any time, so each look at them says it.

use std::{collections::BTreeSet, fs, io, path::Path};

use super::root::reason;
use crate::domain::declared::Declared;

/// The file's name in the project root.
pub const FILE: &str = "runlore.toml";

/// Nobody writes a longer one by hand; a longer one is another file by mistake.
const BYTES_MAX: u64 = 1024 * 1024;

/// What is wrong with `runlore.toml`; a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(String);

/// What the project at `root` declares.
///
/// # Errors
/// [`Fault`].
pub fn read(root: &Path) -> Result<Declared, Fault> {
    let path = root.join(FILE);
    let unreadable = |error: io::Error| Fault(format!("{FILE} cannot be read: {}", reason(&error)));
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Declared::default()),
        Err(error) => return Err(unreadable(error)),
        Ok(found) if !found.is_file() => return Err(Fault(format!("{FILE} is no regular file"))),
        Ok(found) if found.len() > BYTES_MAX => {
            return Err(Fault(format!("{FILE} has {} bytes; at most {BYTES_MAX} are read", found.len())));
        }
        Ok(_) => {}
    }
    let bytes = fs::read(&path).map_err(unreadable)?;
    let text =
        String::from_utf8(bytes).map_err(|error| Fault(format!("{FILE} is not UTF-8 after byte {}", error.utf8_error().valid_up_to())))?;
    parse(&text)
}

/// The declarations in `text`.
///
/// # Errors
/// [`Fault`].
pub fn parse(text: &str) -> Result<Declared, Fault> {
    let declared: Declared = toml::from_str(text).map_err(|error| {
        let place = error.span().map_or(String::new(), |span| place(text, span.start));
        let key = error
            .span()
            .and_then(|span| text.get(span))
            .map(str::trim)
            .filter(|key| !key.is_empty() && !key.contains('\n') && key.len() <= 80);
        let near = key.map_or(String::new(), |key| format!(" (at `{key}`)"));
        Fault(format!("{FILE}{place}: {}{near}", error.message().replace('\n', ", ")))
    })?;
    match declared.fault().or_else(|| source_fault(&declared)) {
        Some(fault) => Err(Fault(format!("{FILE}: {fault}"))),
        None => Ok(declared),
    }
}

/// Paths are relative to the root, absolute, or lead out of it with `..`: logs often stand beside a repository.
fn source_fault(declared: &Declared) -> Option<String> {
    let mut seen = BTreeSet::new();
    for source in &declared.source {
        let path = source.path.trim_end_matches('/');
        if source.path.is_empty() || source.path.contains('\0') {
            return Some("[[source]] path is empty; give a directory or a file, relative to the project root".to_owned());
        }
        if !seen.insert(path) {
            return Some(format!("[[source]] path = \"{path}\" stands twice; a source has one rule for its runs"));
        }
    }
    None
}

/// `, line 3, column 5` of the byte at `at`.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!(", line {line}, column {column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_declares_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path()), Ok(Declared::default()));
        fs::write(root.path().join(FILE), "[[source]]\npath = \"../x\"\nrun = \"directory\"").unwrap();
        assert_eq!(read(root.path()).unwrap().source.len(), 1);
        fs::remove_file(root.path().join(FILE)).unwrap();
        fs::create_dir(root.path().join(FILE)).unwrap();
        assert_eq!(read(root.path()).unwrap_err().to_string(), "runlore.toml is no regular file");
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, parts) in [
            ("[[evaluation]]\nid = \"é\"\n treshold = 1", &["line 3, column 2", "treshold", "threshold"][..]),
            ("[[source]]\npath = \"x\"\nrun = \"sha\"", &["line 3", "sha", "eval_set"]),
            ("[[source]]\nrun = \"directory\"", &["line 1", "path"]),
            ("[[source]\n", &["line 1"]),
            ("[[evaluation]]\nid = \"a\"\nthreshold = 80", &["id = \"a\"", "from 0 to 1"]),
            ("[[source]]\npath = \"x\"\n[[source]]\npath = \"x/\"", &["\"x\" stands twice"]),
            ("[[source]]\npath = \"\"", &["path is empty"]),
            ("x = 1", &["line 1, column 1", "`x`"]),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("runlore.toml") && parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
