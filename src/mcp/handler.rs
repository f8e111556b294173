//! rmcp's face of the methods, for stdio.
//!
//! Promises: every answer is the one that HTTP gives ([`Core`]); both eras, no session; a request that its client cancels ends.
//! Does not: call the client back.

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
        DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    },
    service::RequestContext,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    core::{self, Asker, Core},
    faults::Fault,
    versions,
};
use crate::{auth::Caller, clock, gate::message::Era, telemetry::trace::Parent, tools::Toolsets};

/// rmcp's names of the versions that are spoken; the same list as [`versions::SPOKEN`].
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// The MCP handler of one caller.
#[derive(Clone)]
pub struct Handler {
    core: Core,
    caller: Caller,
}

impl Handler {
    /// A handler that asks `core` as `caller`.
    #[must_use]
    pub const fn new(core: Core, caller: Caller) -> Self {
        Self { core, caller }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        context: &RequestContext<RoleServer>,
    ) -> Result<T, ErrorData> {
        let params = match serde_json::to_value(params) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let asker = Asker {
            caller: self.caller.clone(),
            client: None,
            era: era(context),
            request_id: Arc::from(clock::request_id()),
            toolsets: Toolsets::default(),
            place: None,
            // rmcp takes `_meta` out of the parameters.
            parent: context.meta.get("traceparent").and_then(Value::as_str).and_then(Parent::parse),
        };
        // rmcp sends nothing for a cancelled request, whatever is answered; what the call holds is free when its future is dropped.
        let Some(answer) = context.ct.run_until_cancelled(self.core.answer(method, params, &asker)).await else {
            return Err(error(Fault::internal(&asker.request_id)));
        };
        let answer = answer.map_err(error)?;
        serde_json::from_str(&answer).map_err(|_| error(Fault::internal(&asker.request_id)))
    }
}

fn era(context: &RequestContext<RoleServer>) -> Era {
    let modern = context.protocol_version().is_some_and(|version| version.as_str() >= versions::MODERN);
    if modern { Era::Modern } else { Era::Legacy }
}

fn error(fault: Fault) -> ErrorData {
    let code = i32::try_from(fault.code).unwrap_or(-32603);
    ErrorData::new(ErrorCode(code), fault.message, fault.data)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(core::capabilities()).with_instructions(core::instructions());
        info.server_info = core::identity();
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

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.ask("server/discover", (), &context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.ask("tools/list", request, &context).await
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        self.ask::<CallToolResult>("tools/call", request, &context).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.ask("resources/list", request, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.ask("resources/templates/list", request, &context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.ask::<rmcp::model::ReadResourceResult>("resources/read", request, &context).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.ask("prompts/list", request, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.ask::<rmcp::model::GetPromptResult>("prompts/get", request, &context).await.map(Into::into)
    }

    /// What rmcp has no type for: an unknown method, or one that is spoken with parameters that do not fit its type. Which it is, and what is
    /// wrong with them, the methods say.
    async fn on_custom_request(&self, request: CustomRequest, context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        self.ask(&request.method, request.params, &context).await.map(CustomResult)
    }

    async fn complete(&self, request: CompleteRequestParams, context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        self.ask("completion/complete", request, &context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_faces_speak_the_same_versions() {
        assert_eq!(VERSIONS.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>(), versions::SPOKEN);
    }
}
