//! Lines to stderr, by a thread of their own.
//!
//! Promises: whoever starts us and never reads our stderr cannot stop a call: lines that do not fit into the queue are dropped and counted; a
//! line is written whole; [`finish`] waits for what is queued, for a bounded time. When lines come fast they are written together, since
//! waking the thread and writing cost as much as a call that is answered from the cache.
//! Does not: decide what is said.

use std::{
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

/// Lines that wait while stderr is not read: a pipe holds some 300 more.
const QUEUE: usize = 1024;
/// What is written at once at most: a pipe takes so much whole (PIPE_BUF), whoever else writes to it.
const TOGETHER_BYTES: usize = 4096;
/// How long the thread lets lines gather when several had come at once: nobody sees it, and nobody has to wake the thread meanwhile.
const GATHER: Duration = Duration::from_millis(2);

enum Message {
    Line(Vec<u8>),
    Finish(SyncSender<()>),
}

static WRITER: OnceLock<Option<SyncSender<Message>>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

fn writer() -> Option<&'static SyncSender<Message>> {
    let start = || {
        let (sender, lines) = sync_channel(QUEUE);
        let spawned = thread::Builder::new().name("runlore-stderr".to_owned()).spawn(move || write(&lines));
        spawned.ok().map(|_| sender)
    };
    WRITER.get_or_init(start).as_ref()
}

fn write(messages: &Receiver<Message>) {
    while let Ok(first) = messages.recv() {
        let mut together = Together::default();
        together.take(first);
        let mut more = 0;
        while let Ok(message) = messages.try_recv() {
            together.take(message);
            more += 1;
        }
        together.write();
        if more > 0 {
            thread::sleep(GATHER);
        }
    }
}

/// Lines that are written at once.
#[derive(Default)]
struct Together(Vec<u8>);

impl Together {
    fn take(&mut self, message: Message) {
        match message {
            Message::Line(line) => {
                if self.0.len() + line.len() > TOGETHER_BYTES {
                    self.write();
                }
                self.0.extend_from_slice(&line);
            }
            Message::Finish(done) => {
                self.write();
                let _ = done.try_send(());
            }
        }
    }

    fn write(&mut self) {
        if !self.0.is_empty() {
            // A stderr that is gone loses its lines, not the calls.
            drop(io::stderr().lock().write_all(&self.0));
            self.0.clear();
        }
    }
}

/// Queues one line, its line feed included.
pub fn send(line: Vec<u8>) {
    let sent = writer().is_some_and(|writer| writer.try_send(Message::Line(line)).is_ok());
    if !sent {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lines that were dropped because nobody read stderr.
#[must_use]
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Waits until what is queued now is written, at most `patience`.
pub fn finish(patience: Duration) {
    let Some(writer) = WRITER.get().and_then(Option::as_ref) else { return };
    let (done, written) = sync_channel(1);
    // A full queue is not read by anybody: there is nothing to wait for.
    if writer.try_send(Message::Finish(done)).is_ok() {
        let _ = written.recv_timeout(patience);
    }
}

/// A line that is being written piece by piece, as the log's own writer does; queued when dropped.
#[derive(Debug, Default)]
pub struct Line(Vec<u8>);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            send(std::mem::take(&mut self.0));
        }
    }
}
