//! Why a tool gave no result. The text is what the caller reads: what was wrong, with which value, and what would be right.
//!
//! Promises: never a path, SQL or a backtrace; the inner face of an internal failure goes to the log only.
//! Does not: know status codes.

use crate::{
    domain::reference::ReferenceError,
    store::{self, workspace::ActFault},
};

/// A refusal or failure of a tool call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolError {
    /// An argument is wrong; the sentence names it, its value and what is allowed.
    #[error("{0}")]
    Argument(String),
    /// A reference, id or key names nothing (or too much).
    #[error("{0}")]
    NotFound(String),
    /// A run reference names no run, or several.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The answer is too large to send.
    #[error("the answer of {tool} takes {bytes} bytes; at most {max} are sent. Narrow it with {narrows}")]
    TooLarge {
        /// The tool.
        tool: &'static str,
        /// What it takes.
        bytes: usize,
        /// What is allowed.
        max: usize,
        /// The arguments that narrow it.
        narrows: &'static str,
    },
    /// A command of the operator's refused.
    #[error("{said}")]
    Exit {
        /// Its exit code.
        code: i32,
        /// What it said, the exit code last.
        said: String,
    },
    /// A refusal in the words that are left of it.
    #[error("{0}")]
    Said(String),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A fault of ours.
    #[error("an internal error; the log has it")]
    Internal(String),
}

impl From<ActFault> for ToolError {
    fn from(fault: ActFault) -> Self {
        match fault {
            ActFault::NotFound(_) => Self::NotFound(fault.to_string()),
            ActFault::KeyReused => Self::Argument(fault.to_string()),
            _ => Self::Said(fault.to_string()),
        }
    }
}

impl ToolError {
    /// What the log keeps of it.
    #[must_use]
    pub fn inner(&self) -> String {
        match self {
            Self::Internal(inner) | Self::Store(store::Error::Internal(inner)) => inner.clone(),
            other => other.to_string(),
        }
    }

    /// The same, with `note` behind it where it may be the reason: what is not found may not be indexed yet.
    #[must_use]
    pub fn beside(self, note: Option<&str>) -> Self {
        match (&self, note) {
            (Self::NotFound(_) | Self::Reference(_), Some(note)) => Self::NotFound(format!("{self}. {note}")),
            _ => self,
        }
    }

    /// Whether it is a fault of ours rather than of the question.
    #[must_use]
    pub const fn internal(&self) -> bool {
        matches!(self, Self::Internal(_) | Self::Store(_))
    }
}
