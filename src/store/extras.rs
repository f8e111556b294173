//! What few readers want of an attempt or run: the run record's fields beyond what every answer needs.
//!
//! Promises: what several logs of a run say is put together by one pure rule, so that every adapter says the same.
//! Does not: read anything.

use std::collections::BTreeMap;

use crate::domain::{
    extras::{Answer, ContextUse, Pair, SkillFile, SkillRead},
    log::{LogHeader, ReportedMetric},
};

/// The rest of an attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptRest {
    /// The source's id of the try.
    pub uuid: Option<String>,
    /// Time without waiting and retries.
    pub working_ms: Option<u64>,
    /// The case's input, shortened.
    pub input: Option<String>,
    /// The case's target, shortened.
    pub target: Option<String>,
    /// The group of its case, by the run's newest log that names one.
    pub group: Option<String>,
    /// The final output, shortened.
    pub output: Option<String>,
    /// Questions about it alone.
    pub answers: Vec<Answer>,
    /// What it read of its skills.
    pub skill_reads: Vec<SkillRead>,
    /// How much context it used.
    pub context: Option<ContextUse>,
}

impl AttemptRest {
    /// Takes the texts out (decision 35).
    pub fn hide_text(&mut self) {
        (self.input, self.target, self.output) = (None, None, None);
        self.answers.iter_mut().for_each(|answer| answer.answer = None);
    }
}

/// What the logs of a run say besides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunExtras {
    /// Whether somebody marked one of its logs as invalid.
    pub invalidated: bool,
    /// Why it failed: that of its newest log that failed whole.
    pub error: Option<String>,
    /// Where a report of it stands: the newest log's word.
    pub report_path: Option<String>,
    /// Labels, in order.
    pub tags: Vec<String>,
    /// Name/value pairs; of two logs the newer one's value stands.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the tools reported, each with its evaluation; of two logs the newer one's word on a figure stands.
    pub metrics: Vec<ReportedMetric>,
    /// Files of its skills, by skill and file.
    pub skill_files: Vec<SkillFile>,
    /// Questions asked of two attempts, which are named by their keys.
    pub pairs: Vec<Pair>,
}

impl RunExtras {
    /// What `headers` (oldest first) say together; skill files and pairs are for the caller to add.
    #[must_use]
    pub fn together(headers: Vec<LogHeader>) -> Self {
        let mut out = Self::default();
        let mut metrics = BTreeMap::new();
        for header in headers {
            out.invalidated |= header.invalidated;
            out.error = header.error.or(out.error);
            out.report_path = header.report_path.or(out.report_path);
            out.tags.extend(header.tags);
            out.metadata.extend(header.metadata);
            let only = if header.evaluations.len() == 1 { header.evaluations.first().map(|info| info.id.clone()) } else { None };
            for metric in header.metrics {
                let metric = ReportedMetric { evaluation: metric.evaluation.or_else(|| only.clone()), ..metric };
                let figure =
                    (metric.evaluation.clone(), metric.scorer.clone(), metric.name.clone(), metric.reducer.clone(), metric.metric.clone());
                metrics.insert(figure, metric);
            }
        }
        out.tags.sort_unstable();
        out.tags.dedup();
        out.metrics = metrics.into_values().collect();
        out
    }

    /// Adds a skill's file; a later word on the same file stands.
    pub fn add_skill_file(&mut self, file: SkillFile) {
        let place = |held: &SkillFile| (held.skill.as_str(), held.file.as_str()).cmp(&(&file.skill, &file.file));
        match self.skill_files.binary_search_by(place) {
            Ok(at) => self.skill_files.splice(at..=at, [file]).for_each(drop),
            Err(at) => self.skill_files.insert(at, file),
        }
    }

    /// The same for whom texts are hidden from (decision 35): names and numbers stay.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { error: None, report_path: None, metadata: BTreeMap::new(), ..self }
    }
}
