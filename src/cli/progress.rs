//! A bar that shows how far an import is.
//!
//! Promises: drawn on a terminal's standard error only, and gone when the import ends.
//! Does not: appear where output is piped or logged.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::local::progress::Progress;

/// A bar on standard error; nothing where that is no terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that is not drawn before there is something to read.
    #[must_use]
    pub fn new(terminal: bool) -> Self {
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{bar:24} {bytes}/{total_bytes} {eta} {wide_msg}");
        Self(style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)))
    }
}

impl Progress for Bar {
    fn begin(&self, _files: u64, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn file(&self, path: &str) {
        self.0.set_message(path.to_owned());
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
