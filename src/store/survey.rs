//! Reads that look over much at once: what a run's attempts took, and which of many documents hold some words.
//!
//! Promises: as the rest of the port: one state, this project only, and of texts only what the handle may read.
//! Does not: keep documents: whoever searches hands them in.

use std::collections::BTreeMap;

use super::Result;
use crate::domain::figures::Figures;

/// A document that can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it is called.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// A document that holds the words.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its place among those that were handed in.
    pub document: usize,
    /// How well it fits: the greater the better, and above 0.
    pub score: f64,
    /// Where it holds them, the words in `**`.
    pub snippet: String,
}

/// These reads.
pub trait Survey {
    /// What the attempts of one run took, by evaluation; empty where there is no such run.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn figures(&self, run: &str) -> Result<BTreeMap<String, Figures>>;

    /// The documents that hold every one of `words` (or one that begins so), the best first, at most `limit`, and how many there are. Where none
    /// holds them all, those that hold any. A title counts more than a text.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn ranked(&self, documents: &[Document], words: &[String], limit: usize) -> Result<(Vec<Hit>, u64)>;
}
