//! Small Inspect logs made by hand, for histories that a test can work out in its head.

use serde_json::{Value, json};

/// One log of one task.
pub struct Log {
    pub run: String,
    pub task: String,
    pub created: String,
    pub model: String,
    pub samples: Vec<Value>,
    pub status: &'static str,
    pub epochs: u32,
}

impl Log {
    pub fn new(run: &str, task: &str, created: &str) -> Self {
        Self {
            run: run.into(),
            task: task.into(),
            created: created.into(),
            model: "mockllm/model".into(),
            samples: Vec::new(),
            status: "success",
            epochs: 1,
        }
    }

    /// A sample with a letter as its score: `C` passes, `I` fails.
    pub fn sample(mut self, id: impl Into<Value>, epoch: u32, letter: &str) -> Self {
        let id: Value = id.into();
        self.epochs = self.epochs.max(epoch);
        self.samples.push(json!({
            "id": id, "epoch": epoch, "input": format!("question {id}"), "target": "yes",
            "messages": [{"role": "user", "content": format!("question {id}")}, {"role": "assistant", "content": format!("answer {letter}")}],
            "output": {"model": "mockllm/model", "choices": [], "completion": format!("answer {letter}")},
            "scores": {"match": {"value": letter, "answer": letter, "explanation": format!("said {letter}")}},
            "metadata": {}, "store": {}, "events": [], "model_usage": {"mockllm/model": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}, "attachments": {},
        }));
        self
    }

    /// A sample that broke.
    pub fn errored(mut self, id: impl Into<Value>, message: &str) -> Self {
        self.samples.push(json!({"id": id.into(), "epoch": 1, "input": "q", "target": "yes", "messages": [], "output": {"model": "m", "choices": []}, "scores": {},
            "metadata": {}, "store": {}, "events": [], "model_usage": {}, "attachments": {}, "error": {"message": message, "traceback": "", "traceback_ansi": ""}}));
        self
    }

    pub fn all(mut self, cases: u32, letter: &str) -> Self {
        for case in 1..=cases {
            self = self.sample(case, 1, letter);
        }
        self
    }

    pub fn model(mut self, model: &str) -> Self {
        self.model = model.into();
        self
    }

    pub fn status(mut self, status: &'static str) -> Self {
        self.status = status;
        self
    }

    pub fn text(&self) -> String {
        let ids: Vec<&Value> = self.samples.iter().filter(|sample| sample["epoch"] == 1).map(|sample| &sample["id"]).collect();
        json!({
            "version": 2, "status": self.status,
            "eval": {"eval_id": format!("{}-{}-{}", self.run, self.task, self.created), "run_id": self.run, "created": self.created, "task": self.task, "task_id": format!("{}-{}-{}", self.run, self.task, self.model), "task_version": 0,
                "dataset": {"name": self.task, "samples": ids.len(), "sample_ids": ids}, "model": self.model, "model_args": {}, "task_args": {}, "config": {"epochs": self.epochs}, "packages": {"inspect_ai": "0.3.285"},
                "revision": null, "scorers": [{"name": "match", "options": {}, "metrics": [], "metadata": {}}]},
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": {"total_samples": self.samples.len(), "completed_samples": self.samples.len(), "scores": [{"name": "match", "scorer": "match", "params": {}, "metrics": {}}]},
            "stats": {"started_at": self.created, "completed_at": self.created, "model_usage": {}},
            "samples": self.samples,
        })
        .to_string()
    }

    /// The same, in a file of this name, where two logs differ in their model alone.
    pub fn put_as(&self, project: &super::harness::Project, name: &str) {
        project.write(&format!("logs/{name}.json"), self.text().replace("\"eval_id\":\"", &format!("\"eval_id\":\"{name}-")));
    }

    /// Writes the log under the project's `logs/`.
    pub fn put(&self, project: &super::harness::Project) {
        // As much as a file's name can hold.
        let plain = |text: &str| {
            text.chars().take(60).map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect::<String>()
        };
        let name = format!("logs/{}_{}_{}.json", plain(&self.created), plain(&self.task), plain(&self.run));
        project.write(&name, self.text());
    }
}
