//! What the Rust peers share: where they listen, when they end, and the answer that they all give.
//!
//! Promises: the same 1.5 KB of structured content from every peer.
//! Does not: measure.

use serde_json::{Value, json};

/// The first argument is the port.
pub async fn listener() -> tokio::net::TcpListener {
    let port = std::env::args().nth(1).and_then(|text| text.parse::<u16>().ok()).unwrap_or(4986);
    match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => {
            // Who started it waits for this word.
            eprintln!("listening");
            listener
        }
        Err(error) => {
            eprintln!("port {port}: {error}");
            std::process::exit(2)
        }
    }
}

/// Resolves on SIGTERM, so that valgrind gets to write its sums.
pub async fn terminated() {
    if let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        signal.recv().await;
    }
}

/// The tool's result, about 1.5 KB of JSON.
pub fn answer() -> Value {
    let runs: Vec<Value> = (0..4)
        .map(|n| {
            json!({"runId": format!("bench-run-{n:04}"), "kind": "recorded", "status": "completed", "createdAt": "2026-11-28T08:22:54Z",
            "startedAt": "2026-11-28T08:22:54Z", "completedAt": "2026-11-28T08:25:11Z", "durationMs": 137_000, "git": null, "round": null,
            "evaluations": ["refund_policy"], "arms": ["mockllm/model"],
            "counts": {"passed": 8, "failed": 2, "infra": 0, "unscored": 0, "missing": 0}, "rate": 0.8})
        })
        .collect();
    json!({"runs": runs, "returned": 4, "total": 4, "complete": true, "nextCursor": null})
}
