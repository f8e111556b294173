//! Sources that runs are synced from: what a directory's settings say.
//!
//! Promises: what passes here names a place below the operator's root by its letters; whether a link leads out of it, whoever reads it looks.
//! Does not: look at a disk.

use serde_json::Value;

/// What is said where the operator has declared no root.
pub const OFF: &str = "connections are off on this server: its operator turns them on with connections.root";

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1024;

/// The path of a `directory` connection's settings, below the project's own directory of the root.
///
/// # Errors
/// A sentence for whoever made the settings.
pub fn directory(config: &Value) -> Result<&str, String> {
    let keys = config.as_object().ok_or("argument config: give an object, such as {\"path\": \"logs\"}")?;
    if let Some(key) = keys.keys().find(|key| *key != "path") {
        let key = super::text::clean(&super::attempt::shorten(key, 80));
        return Err(format!("argument config: \"{key}\" is no setting of a directory; the only one is path"));
    }
    let path =
        keys.get("path").and_then(Value::as_str).ok_or("argument config: path is missing; give a directory below the project's own")?;
    let good = |part: &str| !part.is_empty() && part != "..";
    let inside = path.trim_end_matches('/').split('/').all(good);
    if path.len() > PATH_BYTES_MAX || path.chars().any(char::is_control) || !inside {
        return Err(format!(
            "argument config: path must be relative, of at most {PATH_BYTES_MAX} bytes, without .. and control characters, such as \"logs\""
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_stays_below_by_its_letters() {
        for path in ["logs", "a/b", "a/b/", ".", "a.b/..c", "é"] {
            assert_eq!(directory(&json!({"path": path})), Ok(path));
        }
        for path in ["", "/", "/etc", "..", "a/../b", "a//b", "a/..", "a\nb", "a\0", &"x".repeat(2000)] {
            assert!(directory(&json!({"path": path})).unwrap_err().contains("relative"), "{path:?}");
        }
    }

    #[test]
    fn other_settings_are_refused_by_name() {
        assert!(directory(&json!({"path": "a", "root": "/"})).unwrap_err().contains("\"root\""));
        assert!(directory(&json!([])).is_err() && directory(&json!({})).is_err() && directory(&json!({"path": 3})).is_err());
    }
}
