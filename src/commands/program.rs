//! Where a program is that a declaration or a person names.
//!
//! Promises: a name with a slash is a path; any other is looked for on the PATH of the environment that it would run in.
//! Does not: run it.

use std::{
    ffi::OsString,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Where programs are looked for where the environment does not say.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Bytes of a script's first line.
const SHEBANG_BYTES_MAX: u64 = 512;

/// Whether there is a file at `path` that may be run.
#[must_use]
pub fn runs(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The path of `program`, run in `directory` with `environment`.
#[must_use]
pub fn found(program: &str, directory: &Path, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program)).filter(|path| runs(path));
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map_or_else(|| OsString::from(USUAL_PATH), |(_, value)| value.clone());
    std::env::split_paths(&path).map(|place| place.join(program)).find(|path| runs(path))
}

/// The Python that the script at `path` names in its first line.
#[must_use]
pub fn python_of(path: &Path) -> Option<String> {
    let mut head = String::new();
    std::fs::File::open(path).ok()?.take(SHEBANG_BYTES_MAX).read_to_string(&mut head).ok()?;
    let words = head.strip_prefix("#!")?.lines().next()?.split_whitespace();
    words.map(str::to_owned).find(|word| word.rsplit('/').next().is_some_and(|name| name.starts_with("python")))
}
