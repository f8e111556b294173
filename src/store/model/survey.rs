//! The plain model's sums and search: slow and plain.

use std::collections::BTreeMap;

use super::Model;
use crate::{
    domain::{figures::Figures, outcome::Outcome},
    store::{
        AttemptQuery, Result, Store as _,
        survey::{Document, Hit, Survey},
    },
};

impl Survey for Model {
    fn figures(&self, run: &str) -> Result<BTreeMap<String, Figures>> {
        let mut out = BTreeMap::<String, Figures>::new();
        for attempt in self.attempts(run, &AttemptQuery::default())? {
            let ended = matches!(attempt.outcome, Outcome::Pass | Outcome::Fail | Outcome::Unscored);
            let duration_ms = attempt.duration_ms.filter(|_| ended);
            let one = Figures {
                attempts: 1,
                cost_usd: attempt.cost_usd,
                costed: u64::from(attempt.cost_usd.is_some()),
                duration_ms,
                timed: u64::from(duration_ms.is_some()),
                input_tokens: attempt.usage.input_tokens,
                output_tokens: attempt.usage.output_tokens,
                total_tokens: attempt.usage.total_tokens,
                tokened: u64::from(attempt.usage.total_tokens.is_some()),
            };
            let sum = out.entry(attempt.evaluation).or_default();
            *sum = sum.plus(one);
        }
        Ok(out)
    }

    fn ranked(&self, documents: &[Document], words: &[String], limit: usize) -> Result<(Vec<Hit>, u64)> {
        let holds = |document: &Document, word: &String| {
            format!("{} {}", document.title, document.text).to_lowercase().contains(&word.to_lowercase())
        };
        let hits: Vec<Hit> = documents
            .iter()
            .enumerate()
            .filter(|(_, document)| !words.is_empty() && words.iter().all(|word| holds(document, word)))
            .map(|(number, document)| Hit { document: number, score: 1.0, snippet: document.text.chars().take(80).collect() })
            .collect();
        let total = hits.len() as u64;
        Ok((hits.into_iter().take(limit).collect(), total))
    }
}
