//! A socket that tells the ledger when bytes move, and comes back when the protocol is done with it.
//!
//! Promises: every byte that moves and every write that cannot is known to the watchdog; the socket is handed back on drop.
//! Does not: change a byte.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
};

use super::ledger::Ledger;

/// The socket, lent to the protocol.
pub(super) struct Socket {
    /// Always there until dropped.
    stream: Option<TcpStream>,
    home: Option<oneshot::Sender<TcpStream>>,
    ledger: Arc<Ledger>,
}

impl Socket {
    /// Lends `stream`; what is returned second gets it back.
    pub(super) fn lend(stream: TcpStream, ledger: Arc<Ledger>) -> (Self, oneshot::Receiver<TcpStream>) {
        let (home, back) = oneshot::channel();
        (Self { stream: Some(stream), home: Some(home), ledger }, back)
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(_)) => self.ledger.went(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.ledger.blocked(),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let (Some(stream), Some(home)) = (self.stream.take(), self.home.take()) {
            // Nobody waits for it where the connection was dropped whole.
            let _ = home.send(stream);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.ledger.came();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write_vectored(context, slices);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}
