//! A span per call to an OpenTelemetry receiver, by OTLP over HTTP.
//!
//! Promises: a provider of its own, never the process's global one, so that nobody else's spans leave with ours; a span has the tool, the
//! names of its arguments, how it ended, the request id and the principal, and never a value or an address. A caller's `traceparent` makes it
//! a child of the caller's span, and is recorded only where the caller records. Spans that end at the same time go together.
//! Does not: hold up a call: it stands behind a [`super::queued::Queued`]; or send again what a receiver did not take.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context as Polling, Poll, Waker},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::{
    Array, Context, KeyValue, StringValue, Value,
    trace::{
        Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter as _, SpanProcessor},
};
use prometheus::IntCounter;

use super::{
    hook::{CallEvent, Hook, Outcome},
    outside::Outside,
    trace::Parent,
};

/// Where the receiver takes spans, below its base.
const PATH: &str = "/v1/traces";

/// Where spans go.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The receiver's base, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// The name of the service in its traces.
    pub service: String,
    /// Headers of each request, such as a key of the receiver's.
    pub headers: HashMap<String, String>,
}

/// The hook.
pub struct Otlp {
    exporter: SpanExporter,
    tracer: SdkTracer,
    ended: Ended,
    failed: IntCounter,
    /// The tracer works as long as its provider does.
    _provider: SdkTracerProvider,
}

impl Otlp {
    /// The word for this hook in metrics.
    pub const NAME: &'static str = "otlp";

    /// The hook of `settings`; `failed` counts the spans that a receiver did not take.
    ///
    /// # Errors
    /// A sentence, where the endpoint is none.
    pub fn new(settings: Settings, outside: Outside, failed: IntCounter) -> Result<Self, String> {
        let version = env!("CARGO_PKG_VERSION");
        let resource = Resource::builder_empty()
            .with_attributes([KeyValue::new("service.name", settings.service), KeyValue::new("service.version", version)])
            .build();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{PATH}", settings.endpoint.trim_end_matches('/')))
            .with_timeout(outside.within())
            .with_headers(settings.headers)
            // To wait and send again would hold up all that comes after.
            .with_retry_policy(RetryPolicy::disabled())
            .with_http_client(Carrier(outside))
            .build();
        let mut exporter = exporter.map_err(|error| error.to_string())?;
        exporter.set_resource(&resource);
        let ended = Ended::default();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_span_processor(ended.clone()).build();
        Ok(Self { exporter, tracer: provider.tracer("runlore"), ended, failed, _provider: provider })
    }

    fn attributes(event: &CallEvent) -> Vec<KeyValue> {
        let names: Vec<StringValue> = event.arguments.iter().map(|name| StringValue::from(*name)).collect();
        let mut all = vec![
            KeyValue::new("mcp.method.name", "tools/call"),
            KeyValue::new("gen_ai.tool.name", event.tool),
            KeyValue::new("runlore.arguments", Value::Array(Array::String(names))),
            KeyValue::new("runlore.outcome", event.outcome.word()),
            KeyValue::new("runlore.request_id", event.request_id.clone()),
            KeyValue::new("runlore.principal", event.principal.clone()),
        ];
        all.extend(event.organization.clone().map(|organization| KeyValue::new("runlore.organization", organization)));
        all
    }
}

impl Hook for Otlp {
    fn request(&self, event: &CallEvent) {
        let end = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(event.at.millis()).unwrap_or(0));
        let start = end.checked_sub(event.duration).unwrap_or(end);
        let above = event.parent.map_or_else(Context::new, above);
        let span = self.tracer.span_builder(format!("tools/call {}", event.tool));
        let span = span.with_kind(SpanKind::Server).with_start_time(start).with_attributes(Self::attributes(event));
        let mut span = self.tracer.build_with_context(span, &above);
        if matches!(event.outcome, Outcome::Error | Outcome::Timeout) {
            span.set_status(Status::error(event.outcome.word()));
        }
        span.end_with_timestamp(end);
    }

    fn settle(&self) {
        let batch = self.ended.take();
        let count = batch.len() as u64;
        if count > 0 && !ready(self.exporter.export(batch)) {
            self.failed.inc_by(count);
        }
    }
}

/// The caller's span as the one above ours.
fn above(parent: Parent) -> Context {
    let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from_bytes(parent.trace_id), SpanId::from_bytes(parent.span_id));
    Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, Default::default()))
}

/// Whether an export succeeded. Our client answers before it returns, so there is nothing to wait for.
fn ready(export: impl Future<Output = OTelSdkResult>) -> bool {
    matches!(pin!(export).poll(&mut Polling::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

/// Spans that have ended and are still to go out.
#[derive(Debug, Clone, Default)]
struct Ended(Arc<Mutex<Vec<SpanData>>>);

impl Ended {
    fn take(&self) -> Vec<SpanData> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SpanProcessor for Ended {
    fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Our own client, as the exporter takes it.
#[derive(Debug)]
struct Carrier(Outside);

#[async_trait]
impl HttpClient for Carrier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Vec<(&str, &str)> = headers.collect();
        let answer = self.0.post(&request.uri().to_string(), &headers, request.body())?;
        Ok(Response::new(answer.into()))
    }
}
