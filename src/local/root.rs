//! Finding the project: a directory with `.runlore/` or `.git`, upward from where one stands, or the one that `--project` names.
//!
//! Promises: the root is absolute and free of links; an error names what was looked for and `--project` (decision 89).
//! Does not: open the store.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// runlore's own directory in a project.
pub const DIRECTORY: &str = ".runlore";

/// A project, found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its root directory.
    pub root: PathBuf,
    /// How it was found.
    pub how: How,
}

/// How a project was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// `--project` named it.
    Given,
    /// It has a `.runlore/`.
    Runlore,
    /// It has a `.git`, and no `.runlore/` yet.
    Git,
    /// There was none; it is made where one stands.
    Created,
}

/// Why there is no project; a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotFound(String);

impl Located {
    /// Where the store's file stands, whether or not it is there yet.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join(DIRECTORY).join("history.db")
    }
}

/// The project of `directory`, or the one that `--project` names.
///
/// # Errors
/// [`NotFound`], naming `--project`.
pub fn locate(given: Option<&Path>, directory: &Path) -> Result<Located, NotFound> {
    match given {
        Some(given) => locate_given(given, directory),
        None => upward(directory)?.ok_or_else(|| {
            NotFound(format!(
                "no project found: neither {} nor a directory above it has a .runlore directory or a .git; go into the project, or name it with --project DIR",
                directory.display()
            ))
        }),
    }
}

/// As [`locate`]; where there is no project, the one that `directory` becomes (`import` and `demo` make it).
///
/// # Errors
/// [`NotFound`] where `--project` names no directory.
pub fn locate_or_create(given: Option<&Path>, directory: &Path) -> Result<Located, NotFound> {
    match given {
        Some(given) => locate_given(given, directory),
        None => Ok(upward(directory)?.unwrap_or(Located { root: canonical(directory)?, how: How::Created })),
    }
}

fn locate_given(given: &Path, directory: &Path) -> Result<Located, NotFound> {
    let root = fs::canonicalize(directory.join(given))
        .map_err(|error| NotFound(format!("--project {}: {}; give an existing directory", given.display(), reason(&error))))?;
    if !root.is_dir() {
        return Err(NotFound(format!("--project {} is no directory; give the project's root directory", given.display())));
    }
    // Whoever names `.runlore` itself means the project around it.
    let inside = root.file_name().is_some_and(|name| name == DIRECTORY);
    let root = if inside { root.parent().map_or(root.clone(), Path::to_path_buf) } else { root };
    Ok(Located { root, how: How::Given })
}

fn upward(directory: &Path) -> Result<Option<Located>, NotFound> {
    let start = canonical(directory)?;
    Ok(start.ancestors().find_map(|root| {
        let how = if root.join(DIRECTORY).is_dir() {
            How::Runlore
        } else if root.join(".git").exists() {
            How::Git
        } else {
            return None;
        };
        Some(Located { root: root.to_path_buf(), how })
    }))
}

fn canonical(directory: &Path) -> Result<PathBuf, NotFound> {
    fs::canonicalize(directory).map_err(|error| {
        NotFound(format!(
            "the directory {} cannot be entered: {}; name the project with --project DIR",
            directory.display(),
            reason(&error)
        ))
    })
}

/// What went wrong with a file, in few words and without the system's numbers.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

/// Makes `.runlore/` in `root`, with a `.gitignore` that keeps it out of the repository. What is there stays as it is.
///
/// # Errors
/// The system's, where the directory takes no writes.
pub fn create(root: &Path) -> io::Result<PathBuf> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    match fs::File::create_new(directory.join(".gitignore")) {
        Ok(mut file) => io::Write::write_all(&mut file, b"*\n")?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_root_above_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/.git")).unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        assert_eq!(locate(None, &root.join("a/b/c")), Ok(Located { root: root.join("a"), how: How::Git }));
        create(&root.join("a/b")).unwrap();
        let found = locate(None, &root.join("a/b/c")).unwrap();
        assert_eq!(found, Located { root: root.join("a/b"), how: How::Runlore });
        assert_eq!(found.database(), root.join("a/b/.runlore/history.db"));
        assert_eq!(locate(Some(Path::new("../..")), &root.join("a/b/c")).unwrap().root, root.join("a"));
        assert_eq!(locate(Some(Path::new(".runlore")), &root.join("a/b")).unwrap().root, root.join("a/b"));
    }

    #[test]
    fn errors_name_the_option_and_the_value() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("file"), "").unwrap();
        for given in ["nowhere", "file"] {
            let error = locate(Some(Path::new(given)), outer.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("--project {given}")), "{error}");
        }
        // The temporary directory may itself stand in a project; then there is nothing to miss.
        if let Err(error) = locate(None, outer.path()) {
            assert!(error.to_string().contains("--project DIR"));
            assert_eq!(locate_or_create(None, outer.path()).unwrap().how, How::Created);
        }
    }

    #[test]
    fn the_directory_ignores_itself_and_is_made_once() {
        let root = tempfile::tempdir().unwrap();
        let directory = create(root.path()).unwrap();
        assert_eq!(fs::read_to_string(directory.join(".gitignore")).unwrap(), "*\n");
        fs::write(directory.join(".gitignore"), "mine").unwrap();
        create(root.path()).unwrap();
        assert_eq!(fs::read_to_string(directory.join(".gitignore")).unwrap(), "mine");
    }
}
