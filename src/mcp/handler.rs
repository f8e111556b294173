//! The handler: discovery, lists and calls (DESIGN.md section 3; decisions 14, 45, 49, 85).
//!
//! Promises: `tools/list` is what this caller may call, in registry order; a tool's refusal is a result with `isError`, not a protocol error.
//! Does not: call the client back.

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverResult, Implementation,
        InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
        ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
};

use crate::{
    auth::Caller,
    domain::attempt::shorten,
    gate::{Call, Gate, Refusal, lacks},
    tools::{self, Answer, ENTRIES, Entry},
};

/// The protocol versions that are spoken, the newest last.
pub const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

const INSTRUCTIONS: &str = "Run history of AI evaluations. Begin with compare {\"since\": \"7d\"} for what regressed, failures for why, history for since when; transcript shows an attempt's messages. Run arguments take latest, latest~N, a run id, the beginning of one, or a Git sha.";

/// The MCP handler of one caller and one project.
#[derive(Clone)]
pub struct Handler {
    gate: Gate,
    caller: Caller,
}

impl Handler {
    /// A handler whose calls go through `gate` as `caller`.
    #[must_use]
    pub const fn new(gate: Gate, caller: Caller) -> Self {
        Self { gate, caller }
    }

    fn tools(&self) -> Vec<Tool> {
        ENTRIES.iter().filter(|entry| lacks(&self.caller, entry).is_none()).map(described).collect()
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut identity = Implementation::new("runlore", env!("CARGO_PKG_VERSION"));
        identity.title = Some("runlore run history".to_owned());
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_instructions(INSTRUCTIONS);
        info.server_info = identity;
        // What a client that asks for a version outside the list is answered (decision 85).
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Ok(DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info()).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("unknown cursor: the list of tools has one page", None));
        }
        let list = ListToolsResult::with_all_items(self.tools());
        // Older peers do not know the hints (decision 45).
        let modern = context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        Ok(if modern { list.with_ttl_ms(0).with_cache_scope(CacheScope::Private) } else { list })
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let entry = tools::find(&request.name).ok_or_else(|| unknown_tool(&request.name))?;
        let call = Call::new(entry, request.arguments.unwrap_or_default(), self.caller.clone());
        match self.gate.call(call).await {
            Ok(answer) => answered(&answer).map(Into::into),
            Err(Refusal::Panicked(id)) => Err(ErrorData::internal_error(Refusal::Panicked(id).to_string(), None)),
            Err(refusal) => Ok(CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]).into()),
        }
    }
}

fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown tool \"{}\"; tools/list names those there are", shorten(name, 80)), None)
}

fn answered(answer: &Answer) -> Result<CallToolResult, ErrorData> {
    let structured =
        serde_json::from_str(answer.json.get()).map_err(|_| ErrorData::internal_error("the result could not be written", None))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text.clone())]);
    result.structured_content = Some(structured);
    Ok(result)
}

fn described(entry: &Entry) -> Tool {
    let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(entry.name, entry.doc, Arc::new((entry.input_schema)()))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new((entry.output_schema)()))
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_that_it_only_reads() {
        for tool in ENTRIES.iter().map(described) {
            let hints = tool.annotations.expect("every tool has annotations");
            let said = (hints.read_only_hint, hints.idempotent_hint, hints.destructive_hint, hints.open_world_hint);
            assert_eq!(said, (Some(true), Some(true), Some(false), Some(false)), "{}", tool.name);
        }
    }

    #[test]
    fn the_list_fits_an_agents_budget() {
        let bytes: usize = ENTRIES.iter().map(described).map(|tool| serde_json::to_string(&tool).map_or(0, |text| text.len())).sum();
        assert!(bytes / 4 <= 12_000, "tools/list takes {} tokens", bytes / 4);
    }
}
