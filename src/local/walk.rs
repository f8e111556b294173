//! The files below a directory.
//!
//! Promises: in order of their paths, whatever the disk's order is; bounded in depth and number, and where a bound or the disk cut it
//! short it says so and names what was not looked into. No file is opened, and none but a link's target is asked for more than its kind.
//! Does not: follow links to directories (no cycles, nothing outside by accident), enter hidden directories, or judge by names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::root::reason;
use crate::config::keys::Index;

/// How far a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Directories inside each other, the top being 0.
    pub depth_max: usize,
    /// Entries looked at: files, directories, and what is neither.
    pub files_max: usize,
}

impl Bounds {
    /// As the operator says (`[index] walk_*`).
    #[must_use]
    pub const fn of(index: &Index) -> Self {
        Self { depth_max: index.walk_depth_max, files_max: index.walk_files_max }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth_max: 32, files_max: 200_000 }
    }
}

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// Regular files, and links to such.
    pub files: Vec<PathBuf>,
    /// What is neither a file nor a directory.
    pub odd: Vec<PathBuf>,
    /// What could not be looked into whole, and why: of what is below, nothing can be said to be gone.
    pub unread: Vec<(PathBuf, String)>,
}

/// The files below `top`.
#[must_use]
pub fn walk(top: &Path, bounds: Bounds) -> Walked {
    let mut walked = Walked::default();
    let mut left = bounds.files_max;
    let mut open = vec![(top.to_path_buf(), 0)];
    while let Some((directory, depth)) = open.pop() {
        if depth > bounds.depth_max {
            walked
                .unread
                .push((directory, format!("directories are nested deeper than {} levels here; this one was not read", bounds.depth_max)));
            continue;
        }
        if let Err(why) = list(&directory, depth, &mut left, &mut walked, &mut open) {
            walked.unread.push((directory, why));
        }
        if left == 0 {
            walked.unread.push((top.to_path_buf(), format!("there are more than {} files; the rest was not looked at", bounds.files_max)));
            break;
        }
    }
    walked.files.sort_unstable();
    walked.odd.sort_unstable();
    walked
}

fn list(directory: &Path, depth: usize, left: &mut usize, walked: &mut Walked, open: &mut Vec<(PathBuf, usize)>) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("the directory cannot be read: {}", reason(&error)))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("the directory cannot be read to its end: {}", reason(&error)))?;
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        // Hidden: repositories, our own store, and what editors and copying programs write before they rename it.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => open.push((path, depth + 1)),
            Ok(kind) if kind.is_file() => walked.files.push(path),
            Ok(kind) if kind.is_symlink() => link(path, walked),
            Ok(_) => walked.odd.push(path),
            // Gone since it was listed.
            Err(_) => {}
        }
    }
    Ok(())
}

fn link(path: PathBuf, walked: &mut Walked) {
    match fs::metadata(&path) {
        Ok(target) if target.is_file() => walked.files.push(path),
        Ok(target) if target.is_dir() => {}
        // A link into nothing too: whoever waits for its target finds it here.
        _ => walked.odd.push(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(top: &Path, paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(top).unwrap().display().to_string()).collect()
    }

    #[test]
    fn files_in_order_without_hidden_ones_links_to_directories_and_oddities() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for directory in ["b/c", ".git", ".runlore", "a"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for file in ["z", "b/c/1", "b/2", "a/3", ".git/x", ".runlore/x", ".z.eval.tmp"] {
            fs::write(at(file), "").unwrap();
        }
        for (target, link) in [("z", "to-file"), ("b", "to-directory"), ("nothing", "to-nothing"), (".", "b/loop")] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        let walked = walk(top.path(), Bounds::default());
        assert_eq!(names(top.path(), &walked.files), ["a/3", "b/2", "b/c/1", "to-file", "z"]);
        assert_eq!((names(top.path(), &walked.odd), walked.unread.len()), (vec!["to-nothing".to_owned()], 0));
    }

    #[test]
    fn bounds_are_kept_and_said() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b/c")).unwrap();
        for number in 0..10 {
            fs::write(top.path().join(format!("a/{number}")), "").unwrap();
        }
        fs::write(top.path().join("a/b/c/deep"), "").unwrap();
        let few = walk(top.path(), Bounds { files_max: 5, ..Bounds::default() });
        assert!(few.files.len() <= 5 && few.unread[0].1.contains("more than 5"), "{few:?}");
        let flat = walk(top.path(), Bounds { depth_max: 1, ..Bounds::default() });
        assert_eq!((flat.files.len(), flat.unread[0].1.contains("deeper than 1")), (10, true));
        let nowhere = walk(&top.path().join("nowhere"), Bounds::default());
        assert_eq!(nowhere.unread[0].1, "the directory cannot be read: no such file or directory");
    }
}
