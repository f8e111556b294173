//! Paths of one machine in names: the directories go, the file stays.
//!
//! Promises: the same suite in two checkouts has one name for the same thing; relative paths and URLs of hosts stay.
//! Does not: look for paths in outputs or reasons.

/// Where a word of a text ends.
const ENDS: [char; 6] = ['"', '\'', ',', '(', ')', '='];

/// `text` with the directories of absolute paths left out: `file:///a/b/c.js` is `file://c.js`, `python:/a/b.py` is `python:b.py`.
pub(super) fn bare(text: &str) -> String {
    // Most texts have none, and every test of a file comes by here.
    if memchr::memchr2(b'/', b'\\', text.as_bytes()).is_none() {
        return text.to_owned();
    }
    let ends = |character: char| character.is_whitespace() || ENDS.contains(&character);
    text.split_inclusive(ends).map(word).collect()
}

fn word(word: &str) -> String {
    let Some(start) = start(word) else { return word.to_owned() };
    let (before, path) = word.split_at_checked(start).unwrap_or((word, ""));
    // The last part: what follows it (a line number, a function, a full stop) stays with it.
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path);
    format!("{before}{name}")
}

/// Where an absolute path begins in a word, if one of at least two parts does.
fn start(word: &str) -> Option<usize> {
    let at = match word.find("://") {
        Some(scheme) if word.get(..scheme)?.ends_with("file") => scheme + 3,
        Some(_) => return None,
        None => word.find(":/").map_or(0, |colon| after_scheme(word, colon)),
    };
    let path = word.get(at..)?;
    let drive = path.as_bytes().get(1) == Some(&b':') && path.starts_with(|first: char| first.is_ascii_alphabetic());
    let absolute = path.starts_with('/') || (drive && matches!(path.as_bytes().get(2), Some(b'/' | b'\\')));
    let parts = path.split(['/', '\\']).filter(|part| !part.is_empty()).count();
    (absolute && parts >= 2).then_some(at)
}

/// Where a path begins that has a colon before its first slash: after the colon, unless that is a drive's.
fn after_scheme(word: &str, colon: usize) -> usize {
    let before = word.get(..colon).unwrap_or_default();
    let last = before.rsplit(':').next().unwrap_or_default();
    if last.len() == 1 { colon - 1 } else { colon + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_absolute_paths_go() {
        for (text, expected) in [
            ("file:///srv/x/provider.js", "file://provider.js"),
            ("file://provider.js", "file://provider.js"),
            ("file://dir/provider.js", "file://dir/provider.js"),
            ("python:/srv/x/y.py:call", "python:y.py:call"),
            ("short: /srv/a/p1.txt: Short: {{q}}", "short: p1.txt: Short: {{q}}"),
            ("C:\\work\\p.txt", "p.txt"),
            ("exec:D:/x/p.sh -x", "exec:p.sh -x"),
            ("https://api.example/v1/chat", "https://api.example/v1/chat"),
            ("openai:gpt-4o/mini", "openai:gpt-4o/mini"),
            ("/help me", "/help me"),
            ("a=file:///x/y.txt, b=2", "a=file://y.txt, b=2"),
            ("", ""),
        ] {
            assert_eq!(bare(text), expected, "{text}");
        }
    }
}
