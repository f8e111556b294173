//! MCP over standard input and output: one developer, one project.
//!
//! Promises: ends with 0 when stdin closes, on SIGINT and on SIGTERM; nothing but protocol on stdout.
//! Does not: hold a lock, so two of them can serve one project at once.

use rmcp::{ServiceExt, service::QuitReason};
use tokio::signal::unix::{SignalKind, signal};

use super::{handler::Handler, lines::Lines};

/// Why serving ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A signal handler could not be installed.
    #[error("signals cannot be watched: {0}")]
    Signals(std::io::Error),
    /// The session could not be kept up.
    #[error("the MCP session broke: {0}")]
    Session(String),
}

/// Serves until stdin closes or a signal comes.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(handler: Handler) -> Result<(), ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    tokio::select! {
        ended = session(handler) => ended,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

async fn session(handler: Handler) -> Result<(), ServeError> {
    let running = match handler.serve(Lines::new(tokio::io::BufReader::new(tokio::io::stdin()), tokio::io::stdout())).await {
        Ok(running) => running,
        // A client that closes before it says anything has simply gone.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Session(error.to_string())),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Session(error.to_string())),
        Ok(_) => Ok(()),
    }
}
