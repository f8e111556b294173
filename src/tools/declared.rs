//! Tools that an operator declared, as rows of the registry: what they are is known when the server starts, not when it is built.
//!
//! Promises: who offers, lists, calls or counts a tool does the same for a declared one, through its [`Entry`].
//! Does not: run anything; whoever implements [`Declared`] does.

use std::pin::Pin;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Answer, Decoded, Entry, ToolError};

/// What a call of a declared tool comes to.
pub type Running = Pin<Box<dyn Future<Output = Result<Answer, ToolError>> + Send>>;

/// A call of a declared tool.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Its arguments, as [`Declared::canonical`] gave them.
    pub arguments: Map<String, Value>,
    /// Whether a stranger of a public server asks.
    pub public: bool,
    /// Raised when nobody waits any more: what has begun goes on, what has not does not begin.
    pub left: Option<CancellationToken>,
}

/// A tool that is not of this program.
pub trait Declared: Send + Sync {
    /// Whether strangers of a public server have it.
    fn is_public(&self) -> bool;

    /// The names of its arguments.
    fn argument_names(&self) -> &[String];

    /// The JSON Schema of its arguments; a stranger's where `public`.
    fn input_schema(&self, public: bool) -> Map<String, Value>;

    /// The JSON Schema of its result; none where it answers in text alone.
    fn output_schema(&self) -> Option<Map<String, Value>>;

    /// The arguments in a form that is the same for calls that mean the same.
    ///
    /// # Errors
    /// [`ToolError::Argument`].
    fn canonical(&self, arguments: Map<String, Value>, public: bool) -> Decoded;

    /// Answers, within its own deadline and without a thread of its own.
    fn run(&self, asked: Asked) -> Running;
}

/// The tools of a server: those of this program, then those that its operator declared.
#[derive(Clone, Copy, Default)]
pub struct Registry {
    declared: &'static [Entry],
}

impl Registry {
    /// With `declared` too. They are kept for as long as the process lives: a server makes them once.
    #[must_use]
    pub fn with(declared: Vec<Entry>) -> Self {
        Self { declared: declared.leak() }
    }

    /// All, in the order that `tools/list` has them.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> + Clone {
        super::ENTRIES.iter().chain(self.declared)
    }

    /// The entry that `name` means (decision 84).
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static Entry> {
        let plain = super::plain(name);
        super::find(name).or_else(|| self.declared.iter().find(|entry| entry.name == plain))
    }
}
