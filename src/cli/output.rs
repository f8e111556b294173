//! Where text goes: stdout for answers, stderr for complaints and progress.
//!
//! Promises: colour and fitted widths only on a terminal, `NO_COLOR` honoured; a closed pipe ends quietly.
//! Does not: decide what is said.

use std::io::{IsTerminal as _, Write as _};

use crate::tools::render::Style;

/// Standard output and error.
pub struct Output {
    style: Style,
}

impl Output {
    /// The process' own.
    #[must_use]
    pub fn standard() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let width = terminal.then(|| comfy_table::Table::new().width()).flatten();
        Self { style: Style { width, colour } }
    }

    /// How text is to look on stdout.
    #[must_use]
    pub const fn style(&self) -> Style {
        self.style
    }

    /// Whether a person watches stderr.
    #[must_use]
    pub fn watched(&self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// Writes an answer. Whoever closed the pipe has read enough.
    pub fn say(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out
            .write_all(text.as_bytes())
            .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
            .and_then(|()| out.flush());
    }

    /// Writes a complaint.
    pub fn complain(&mut self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{}", text.trim_end());
    }
}
