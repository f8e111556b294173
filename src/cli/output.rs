//! Where text goes: stdout for answers, stderr for complaints and progress.
//!
//! Promises: colour and fitted widths only on a terminal, `NO_COLOR` honoured; nothing that steers a terminal reaches one but our own colours
//! and line breaks; a closed pipe ends quietly; an answer that cannot be written is a complaint and exit code 1, whatever verb it was.
//! Does not: decide what is said.

use std::io::{self, IsTerminal as _, Write as _};

use crate::tools::render::{Style, clean_lines, hidden};

/// Columns under which a table is not fitted: nobody could read it, and a terminal without a size says 0.
const COLUMNS_MIN: u16 = 40;

/// Standard output and error.
pub struct Output {
    style: Style,
    terminal: bool,
    /// Why an answer was not written. Kept rather than returned, so that no verb can forget it: [`Output::end`] tells.
    fault: Option<io::Error>,
}

impl Output {
    /// The process' own.
    #[must_use]
    pub fn standard() -> Self {
        let terminal = io::stdout().is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let width = terminal.then(|| comfy_table::Table::new().width()).flatten().filter(|width| *width >= COLUMNS_MIN);
        Self { style: Style { width, colour }, terminal, fault: None }
    }

    /// How text is to look on stdout.
    #[must_use]
    pub const fn style(&self) -> Style {
        self.style
    }

    /// Whether a person watches stderr.
    #[must_use]
    pub fn watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Writes an answer in words.
    pub fn say(&mut self, text: &str) {
        self.write(&guarded(text, self.style.colour));
    }

    /// Writes an answer as JSON: byte for byte what an agent gets, but on a terminal what would steer it is escaped.
    pub fn json(&mut self, json: &str) {
        if self.terminal { self.write(&escaped_json(json)) } else { self.write(json) }
    }

    fn write(&mut self, text: &str) {
        if self.fault.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.fault = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes())).and_then(|()| out.flush()).err();
    }

    /// Keeps why something else could not be written.
    pub fn failed(&mut self, error: io::Error) {
        self.fault.get_or_insert(error);
    }

    /// Writes a complaint.
    pub fn complain(&mut self, text: &str) {
        // Where even this cannot be written, there is nobody left to tell.
        let _ = writeln!(io::stderr().lock(), "{}", clean_lines(text.trim_end()));
    }

    /// The exit code of a verb that ended with `code`: 1 where its answer could not be written. Whoever closed the pipe has read enough.
    pub fn end(&mut self, code: u8) -> u8 {
        match self.fault.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.complain(&format!("runlore: the answer cannot be written: {error}"));
                1
            }
            _ => code,
        }
    }
}

/// `text` without what steers a terminal, but for our line breaks and, where there may be any, our colours.
fn guarded(text: &str, colour: bool) -> String {
    if !colour {
        return clean_lines(text).into_owned();
    }
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().map(clean_lines).unwrap_or_default().into_owned();
    for part in parts {
        out.push_str(if is_colour(part) { "\u{1b}" } else { "\\u{1b}" });
        out.push_str(&clean_lines(part));
    }
    out
}

/// Whether what follows an escape character is the rest of a colour or weight: `[`, digits and `;`, `m`.
fn is_colour(rest: &str) -> bool {
    let code = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    code.is_some_and(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
}

/// The same JSON with its hidden characters, which stand in strings only, as `\u` escapes.
fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if hidden(character) && !matches!(character, '\n' | '\t' | '\r') {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_and_line_breaks_pass() {
        assert_eq!(guarded("a\nb\u{1b}[31mc\u{1b}[0m", true), "a\nb\u{1b}[31mc\u{1b}[0m");
        assert_eq!(guarded("\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}", true), "\\u{1b}[2J\\u{1b}]0;t\\u{7}\\u{1b}");
        assert_eq!(guarded("\u{1b}[31mc", false), "\\u{1b}[31mc");
        assert_eq!(guarded("\u{202e}", true), "\\u{202e}");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"a\u{9b}": "\u{202e}x\u{e0041}é\u{7f}\n\u{1b}"});
        let shown = escaped_json(&value.to_string());
        assert!(!shown.chars().any(hidden), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).ok(), Some(value));
    }

    #[test]
    fn a_closed_pipe_is_quiet_and_nothing_else_is() {
        let mut output = Output::standard();
        output.failed(io::ErrorKind::BrokenPipe.into());
        assert_eq!(output.end(3), 3);
        output.failed(io::ErrorKind::StorageFull.into());
        assert_eq!(output.end(0), 1);
    }
}
