//! The floor: bare axum that parses the body and gives the same bytes each time.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use axum::{Router, body::Bytes, http::header, response::IntoResponse, routing::post};
use serde_json::{Value, json};

async fn mcp(bytes: Bytes, body: &'static str) -> axum::response::Response {
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(message) if message.get("method").is_some() => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        _ => axum::http::StatusCode::BAD_REQUEST.into_response(),
    }
}

fn main() -> std::io::Result<()> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "4 runs"}], "structuredContent": peers::answer()}});
    let body: &'static str = Box::leak(body.to_string().into_boxed_str());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let app = Router::new().route("/mcp", post(move |bytes: Bytes| mcp(bytes, body)));
        axum::serve(peers::listener().await, app).with_graceful_shutdown(peers::terminated()).await
    })
}
