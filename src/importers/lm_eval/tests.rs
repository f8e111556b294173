//! What lm-eval's own files say, real and generated, and what the importer makes of them.

mod crafted;
mod hostile;

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Cursor, Read, Seek, SeekFrom},
    path::Path,
};

use serde_json::Value;

use crate::{
    domain::{
        attempt::Attempt,
        log::{LogHeader, ReportedMetric},
        outcome::{Counts, Outcome},
        time::Timestamp,
    },
    importers::{
        Input, Limits, Refused,
        beside::{Beside, belongs, task_of},
        open,
        trial::Whole,
    },
    telemetry::redaction::Redactor,
};

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/formats");

/// When the files of a folder were last changed.
const MODIFIED: i64 = 1_700_000_000_000;

/// A directory in memory: the main file and what stands beside it.
#[derive(Default)]
pub(super) struct Folder {
    pub(super) main: String,
    pub(super) results: Vec<u8>,
    pub(super) names: Vec<String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) modified: Option<Timestamp>,
    /// Bytes that were read of the files beside.
    pub(super) read: Cell<u64>,
}

/// A file of a folder, which counts what is read of it.
struct Counted<'a>(Cursor<&'a [u8]>, &'a Cell<u64>);

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(out)?;
        self.1.set(self.1.get() + count as u64);
        Ok(count)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Beside for Folder {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn main(&self) -> &str {
        &self.main
    }

    fn own_modified(&self) -> Option<Timestamp> {
        self.modified
    }

    fn modified(&self, _: &str) -> Option<Timestamp> {
        self.modified
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Input + '_>> {
        let bytes = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Counted(Cursor::new(bytes), &self.read)))
    }
}

impl Whole {
    pub(super) fn values(&self, attempt: usize) -> Vec<Value> {
        self.lines(attempt).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn outcomes(&self) -> Vec<(&str, u32, Outcome)> {
        self.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.epoch, attempt.outcome)).collect()
    }
}

impl Folder {
    /// The files of a real directory that belong to `main`.
    fn of(directory: &Path, main: &str) -> Self {
        let results = std::fs::read(directory.join(main)).unwrap();
        let mut folder = Self { main: main.to_owned(), results, modified: Some(Timestamp::from_millis(MODIFIED)), ..Self::default() };
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if belongs(main, &name) {
                folder.add(&name, std::fs::read(directory.join(&name)).unwrap());
            }
        }
        folder
    }

    pub(super) fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.names.push(name.to_owned());
        self.names.sort();
        self.files.insert(name.to_owned(), bytes.into());
    }

    pub(super) fn import_knowing(&self, limits: &Limits, redactor: &Redactor) -> Result<Whole, Refused> {
        let opened = open(Box::new(Cursor::new(self.results.clone())), self, limits, redactor)?;
        Ok(Whole::read(opened))
    }

    pub(super) fn import(&self) -> Whole {
        self.import_knowing(&Limits::default(), &Redactor::patterns_only()).unwrap()
    }
}

/// What the harness' own reader said of the files of a folder.
fn expected(folder: &str) -> BTreeMap<String, Value> {
    serde_json::from_slice(&std::fs::read(Path::new(FORMATS).join(folder).join("EXPECTED.json")).unwrap()).unwrap()
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() < 1e-9
}

/// The five counts that a metric whose values are all 0 or 1 gives by its mean; without a mean nothing is judged.
fn counts(mean: Option<f64>, docs: u32) -> Counts {
    let Some(mean) = mean else { return Counts { unscored: docs, ..Counts::default() } };
    let passed = (mean * f64::from(docs)).round() as u32;
    Counts { passed, failed: docs - passed, ..Counts::default() }
}

fn check_samples(name: &str, truth: &Value, task: &str, whole: &Whole, decider: &str) {
    let attempts: Vec<&Attempt> = whole.attempts.iter().filter(|attempt| attempt.evaluation == task).collect();
    let docs = truth["distinct_doc_id"].as_u64().unwrap();
    assert_eq!(attempts.len() as u64, docs, "{name}");
    for (filter, rows) in truth["filters"].as_object().unwrap() {
        let of_filter = |attempt: &&&Attempt| attempt.checks.iter().any(|check| check.name.ends_with(&format!(",{filter}")));
        assert_eq!(attempts.iter().filter(of_filter).count() as u64, rows.as_u64().unwrap(), "{name}");
    }
    for (metric, mean) in truth["means"].as_object().unwrap() {
        let values: Vec<f64> = attempts
            .iter()
            .flat_map(|attempt| &attempt.checks)
            .filter(|check| check.name == *metric)
            .map(|check| check.value.unwrap())
            .collect();
        assert!(values.len() as u64 == docs && close(values.iter().sum::<f64>() / docs as f64, mean.as_f64().unwrap()), "{name} {metric}");
    }
    let ours = Counts::of(attempts.iter().map(|attempt| attempt.outcome));
    assert_eq!(ours, counts(truth["means"][decider].as_f64(), docs as u32), "{name}");
}

fn check_metrics(name: &str, truth: &Value, header: &LogHeader) {
    for evaluation in &header.evaluations {
        let ours: Vec<&ReportedMetric> =
            header.metrics.iter().filter(|metric| metric.evaluation.as_deref() == Some(&evaluation.id)).collect();
        let theirs = truth["results"][&evaluation.id].as_object().unwrap();
        let figures = theirs.iter().filter(|(key, _)| !matches!(key.as_str(), "name" | "alias" | "sample_len" | "sample_count"));
        let mut count = 0;
        for (key, value) in figures {
            let stderr = key.contains("_stderr");
            let found = ours.iter().find(|metric| metric.scorer == key.replace("_stderr", "") && (metric.metric == "stderr") == stderr);
            assert_eq!(found.unwrap_or_else(|| panic!("{name}: {key}")).value, value.as_f64(), "{name} {key}");
            count += 1;
        }
        assert_eq!(ours.len(), count, "{name}");
    }
}

fn check_header(name: &str, truth: &Value, header: &LogHeader) {
    let groups: Vec<&String> = truth["groups"].as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    let tasks: Vec<&String> = truth["results"].as_object().unwrap().keys().filter(|task| !groups.contains(task)).collect();
    let mut ours: Vec<&String> = header.evaluations.iter().map(|evaluation| &evaluation.id).collect();
    ours.sort();
    assert!(!ours.is_empty());
    let mut tasks = tasks;
    tasks.sort();
    assert_eq!(ours, tasks, "{name}");
    for evaluation in &header.evaluations {
        let version = &truth["versions"][&evaluation.id];
        assert_eq!(evaluation.version, Some(version.as_str().map_or_else(|| version.to_string(), str::to_owned)), "{name}");
        assert_eq!(evaluation.dataset_cases.map(u64::from), truth["n-samples"][&evaluation.id]["original"].as_u64(), "{name}");
    }
    if let Some(date) = truth["date"].as_f64() {
        assert_eq!(header.created_at.millis(), (date * 1000.0).round() as i64, "{name}");
        let took = header.completed_at.unwrap().millis() - header.created_at.millis();
        let theirs: f64 = truth["total_evaluation_time_seconds"].as_str().unwrap().parse().unwrap();
        assert!((took as f64 / 1000.0 - theirs).abs() < 0.01, "{name}");
    } else {
        assert_eq!(header.created_at.millis(), MODIFIED, "{name}");
    }
    assert_eq!(header.git.as_ref().and_then(|git| git.sha.as_deref()), truth["git_hash"].as_str(), "{name}");
    assert_eq!(header.arms[0].factors["model_type"], truth["model"].as_str().unwrap(), "{name}");
}

/// Holds every results file of a folder against the truth; how many results files and files of samples there were.
fn hold(folder: &str, deciders: &[(&str, &str)]) -> (usize, usize) {
    let truth = expected(folder);
    let (mut results, mut samples) = (0, 0);
    for (name, said) in truth.iter().filter(|(_, said)| said.get("results").is_some()) {
        let path = Path::new(FORMATS).join(folder).join(name);
        if !path.exists() {
            continue;
        }
        let (directory, main) = (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap());
        let whole = Folder::of(directory, main).import();
        assert_eq!(whole.broken, None, "{name}");
        check_header(name, said, &whole.header);
        check_metrics(name, said, &whole.header);
        results += 1;
        let stem = name.strip_suffix(main).unwrap();
        for (file, rows) in truth.iter().filter(|(_, said)| said.get("rows").is_some()) {
            let Some(task) = file.strip_prefix(stem).and_then(|file| task_of(main, file)) else { continue };
            let evaluation = whole.header.evaluations.iter().find(|evaluation| evaluation.id == task).unwrap();
            assert_eq!(evaluation.planned.map(u64::from), said["n-samples"][task]["effective"].as_u64(), "{file}");
            let decider = deciders.iter().find(|(name, _)| *name == task).unwrap().1;
            check_samples(file, rows, task, &whole, decider);
            samples += 1;
        }
        let with = whole.header.evaluations.iter().filter(|evaluation| evaluation.planned.is_some()).count();
        assert_eq!(whole.complaints.len(), usize::from(with < whole.header.evaluations.len()), "{name}: {:?}", whole.complaints);
    }
    (results, samples)
}

#[test]
fn generated_files_are_what_the_harness_says() {
    let deciders = [("local_mc", "acc,none"), ("local_gen", "exact_match,strict-match"), ("local_ppl", "none at all")];
    assert_eq!(hold("generated/lm-eval", &deciders), (1, 3));
}

#[test]
fn real_files_are_what_the_harness_says() {
    assert_eq!(hold("real/lm-eval", &[("math_perturbed_full", "exact_match,none")]), (2, 1));
}

#[test]
fn a_real_log_shows_what_was_run() {
    let main = "eee_results_2026-01-21T03-44-18.458309.json";
    let whole = Folder::of(&Path::new(FORMATS).join("real/lm-eval"), main).import();
    let header = &whole.header;
    let model = "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1";
    assert_eq!(header.arms[0].name, model);
    for (name, level) in [
        ("model", model),
        ("package.lm_eval", "0.4.9.2"),
        ("package.transformers", "4.57.6"),
        ("package.torch", "2.9.0+cu128"),
        ("model_arg.trust_remote_code", "true"),
        ("model_sha", "82047f5e5d5245c1b3a4cd75ad98aa441d6487cd"),
        ("gpu", "NVIDIA A100-SXM4-80GB"),
    ] {
        assert_eq!(header.arms[0].factors.get(name).map(String::as_str), Some(level), "{name}");
    }
    assert_eq!(header.evaluations[0].settings["generation.max_gen_toks"], "512");
    let first = &whole.attempts[0];
    assert_eq!((first.case.as_str(), first.target.as_deref()), ("0", Some("3")));
    assert!(first.input.as_deref().unwrap().starts_with("Problem: How many vertical asymptotes"), "{first:?}");
    assert!(first.output.as_deref().unwrap().starts_with(" 1. The graph of $y="));
    let lines = whole.values(0);
    assert_eq!((first.transcript.messages, lines[0]["role"].as_str(), lines[1]["role"].as_str()), (2, Some("user"), Some("assistant")));
    let doc = lines.iter().find(|line| line["event"] == "doc").unwrap();
    assert_eq!(doc["doc_hash"], "7193b975fe3f4bf6159e1031c2f9c6ac8ee72053be21c4cdc5cc87b55924c050");
}
