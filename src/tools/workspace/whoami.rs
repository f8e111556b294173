//! `whoami`: who the server takes the caller for.
//!
//! Promises: says what the caller brought and nothing of anybody else; the scopes are those that its role allows. Never cached.
//! Does not: say how it is known, or show a credential.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Ctx, Tool, ToolError, Toolset, render::Style};

/// The tool.
pub struct Whoami;

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {}

/// Who the caller is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The key or subject id; `anonymous` or `local`.
    principal: String,
    /// The organization, where the server knows organizations.
    organization: Option<String>,
    /// What the caller may do at most.
    role: String,
    /// What for: the scopes that it holds and its role allows.
    scopes: Vec<String>,
    /// The projects that it may see, as the argument `project` takes them.
    projects: Vec<String>,
    /// What else should be known.
    note: Option<String>,
}

impl Tool for Whoami {
    const NAME: &'static str = "whoami";
    const TITLE: &'static str = "Who am I";
    const ABOUT: &'static str = "Who the server takes you for: role, scopes and projects";
    const DOC: &'static str = "Says who the server takes you for: your organization, role, scopes, and the projects that you can name.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[];
    const OF_PROJECT: bool = false;
    const RELEASED: bool = true;
    const NARROWS: &'static str = "nothing";
    const CACHEABLE: bool = false;

    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, _: Input) -> Result<Output, ToolError> {
        Ok(Output {
            principal: ctx.caller.principal().to_owned(),
            organization: ctx.caller.organization().map(ToString::to_string),
            role: ctx.caller.role().to_string(),
            scopes: ctx.caller.scopes().into_iter().map(str::to_owned).collect(),
            projects: ctx.projects.to_vec(),
            note: None,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let organization = output.organization.as_deref().map_or_else(String::new, |slug| format!(" of {slug}"));
        let (scopes, projects) = (output.scopes.join(", "), output.projects.join(", "));
        format!("{}{organization}, {}\nscopes: {scopes}\nprojects: {projects}", output.principal, output.role)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        auth::{Caller, api_key::Digest, directory::tests},
        clock,
        store::Absent,
        tools::find,
    };

    fn said(caller: Caller, projects: &[&str]) -> (Value, String) {
        let ctx = Ctx {
            projects: projects.iter().map(|&project| project.to_owned()).collect(),
            ..Ctx::new(Arc::new(Absent), caller, clock::now())
        };
        let answer = (find("whoami").unwrap().run)(&ctx, serde_json::Map::new()).unwrap();
        (serde_json::from_str(answer.json.get()).unwrap(), answer.text)
    }

    #[test]
    fn a_key_and_the_person_at_this_machine() {
        let digest = Digest::of(tests::secret("b").as_bytes()).unwrap();
        let (json, text) = said(tests::two().caller(&digest, clock::now()).unwrap(), &["main", "open"]);
        assert_eq!(
            json,
            json!({"principal": "k-zeta", "organization": "zeta", "role": "viewer", "scopes": ["eval:read"], "projects": ["main", "open"], "note": null})
        );
        assert_eq!(text, "k-zeta of zeta, viewer\nscopes: eval:read\nprojects: main, open");
        let (json, text) = said(Caller::local(), &["local"]);
        assert_eq!((&json["organization"], &json["role"], json["scopes"].as_array().unwrap().len()), (&json!(null), &json!("owner"), 5));
        assert!(text.starts_with("local, owner\n"));
    }
}
