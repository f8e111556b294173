//! What runlore says about itself, and what it must never say.
//!
//! Promises: stdout is never written to (it may be a protocol stream); secrets are replaced before text leaves or is kept.
//! Does not: know the configuration: `serve::hooks` hands each hook what it needs.

pub mod analytics;
pub mod hook;
pub mod metrics;
pub mod otlp;
pub mod outside;
pub mod queued;
pub mod redaction;
pub mod sentry;
pub mod stderr;
pub mod trace;

use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Starts the log: JSON lines on stderr, `RUNLORE_LOG` as its filter, warnings by default. rmcp stays at warnings: it formats every message.
pub fn start() {
    let asked = EnvFilter::builder()
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .with_env_var("RUNLORE_LOG")
        .from_env_lossy();
    let filter = "rmcp=warn".parse().map_or_else(|_| EnvFilter::new("warn"), |quiet| asked.add_directive(quiet));
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(stderr::Line::default);
    // A second start (tests) keeps the first.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}

/// Queues one JSON line for stderr.
pub fn line(value: &impl serde::Serialize) {
    let Ok(mut text) = serde_json::to_string(value) else { return };
    text.push('\n');
    stderr::send(text.into_bytes());
}
