//! `connections_catalog`: the kinds of sources that there are, and what each asks for.
//!
//! Promises: the same for everybody who may ask; what stands here is what a connection can be made with.
//! Does not: make one.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::connecting;
use crate::tools::{Ctx, Tool, ToolError, Toolset, render::Style};

/// The tool.
pub enum ConnectionsCatalog {}

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {}

/// The result of `connections_catalog`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// By name.
    pub kinds: Vec<Kind>,
    /// What else should be known.
    pub note: Option<String>,
}

/// A kind of source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// The word for it.
    pub kind: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The JSON Schema of its settings.
    pub config_schema: Map<String, Value>,
}

impl Tool for ConnectionsCatalog {
    const NAME: &'static str = "connections_catalog";
    const VERB: &'static str = "connections-catalog";
    const TITLE: &'static str = "Kinds of connections";
    const ABOUT: &'static str = "The kinds of sources there are, and the settings of each";
    const DOC: &'static str = "Lists the kinds of sources that runs can be synced from, with the JSON Schema of each kind's settings.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["resources:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "nothing";
    type Input = Input;
    type Output = Output;

    fn call(_: &Ctx, _: Input) -> Result<Output, ToolError> {
        let one = |kind: connecting::Kind| Kind { kind: kind.word(), about: kind.about(), config_schema: kind.schema() };
        Ok(Output { kinds: connecting::Kind::ALL.map(one).into(), note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let mut lines = Vec::new();
        for kind in &output.kinds {
            lines.push(format!("{}: {}", kind.kind, kind.about));
            let settings = kind.config_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let about = |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            lines.extend(settings.map(|(name, schema)| format!("  {name}: {}", about(schema))));
        }
        lines.extend(output.note.clone());
        lines.join("\n")
    }
}
