//! Two cores for one large file: its digest beside the first look at it, its attempts' reading beside their writing.
//!
//! Promises: the order stays; nothing is read before the store asks, nor after it has ended; what waits is bounded in bytes, but that an attempt
//! goes whole however large it is.
//! Does not: read or write anything itself.

use std::{
    panic::resume_unwind,
    sync::mpsc::{Receiver, SendError, SyncSender, sync_channel},
    thread,
};

use crate::{
    domain::attempt::{Attempt, Check},
    store::{self, Applied},
};

/// An attempt, or what broke its log.
pub(super) type Read = Result<Attempt, String>;

/// A file of fewer bytes is read and written in turns: a thread would cost more than it gives.
pub(super) const WORTH_BYTES: u64 = 1024 * 1024;

/// What goes over at once: less, and the two wait for each other more than they work.
const BATCH_BYTES: usize = 512 * 1024;
const BATCH_ATTEMPTS: usize = 256;
/// Batches that wait, beside the one that is filled and the one that is written.
const WAITING: usize = 2;

/// What `apart` and `here` say, worked out at once.
pub(super) fn both<A: Send, B>(apart: &(dyn Fn() -> A + Sync), here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let working = thread::Builder::new().spawn_scoped(scope, apart);
        let here = here();
        // Where the system gives no thread, one comes after the other.
        let apart = working.map_or_else(|_| apart(), |working| working.join().unwrap_or_else(|fault| resume_unwind(fault)));
        (apart, here)
    })
}

/// Has `write` take `attempts` on a thread of its own, while this one reads them; what `write` says.
pub(super) fn alongside<W>(attempts: &mut dyn Iterator<Item = Read>, write: W) -> store::Result<Applied>
where
    W: FnOnce(&mut dyn Iterator<Item = Read>) -> store::Result<Applied> + Send,
{
    let (ask, asked) = sync_channel(1);
    let (give, given) = sync_channel(WAITING);
    thread::scope(|scope| {
        // What is to be done is handed over once there is a thread: where the system gives none, it is done here.
        let (hand, job) = sync_channel::<(W, Given)>(1);
        let writing = thread::Builder::new().spawn_scoped(scope, move || job.recv().map(|(write, mut given)| write(&mut given)));
        let Ok(writing) = writing else { return write(attempts) };
        let given = Given { ask: Some(ask), given, batch: Vec::new().into_iter() };
        if let Err(SendError((write, _))) = hand.send((write, given)) {
            return write(attempts);
        }
        // Who asks for nothing has ended without a look at the attempts.
        if asked.recv().is_ok() {
            feed(attempts, &give);
        }
        drop(give);
        let written = writing.join().unwrap_or_else(|fault| resume_unwind(fault));
        written.unwrap_or_else(|_| Err(store::Error::Internal("the thread that writes was given nothing to write".to_owned())))
    })
}

/// Hands over attempts, until there are none or nobody takes them.
fn feed(attempts: &mut dyn Iterator<Item = Read>, give: &SyncSender<Vec<Read>>) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for attempt in attempts {
        let broken = attempt.is_err();
        bytes += attempt.as_ref().map_or(0, weight);
        batch.push(attempt);
        if broken || bytes >= BATCH_BYTES || batch.len() >= BATCH_ATTEMPTS {
            bytes = 0;
            if give.send(std::mem::take(&mut batch)).is_err() || broken {
                return;
            }
        }
    }
    // Nobody takes it where the store has ended, and then nobody misses it.
    drop(give.send(batch));
}

/// About how much memory an attempt takes.
fn weight(attempt: &Attempt) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = [&attempt.input, &attempt.target, &attempt.output, &attempt.error].map(text).into_iter().sum::<usize>();
    let check = |check: &Check| size_of::<Check>() + check.name.len() + text(&check.reason) + text(&check.answer) + text(&check.label);
    let chunks = attempt.transcript.chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>();
    size_of::<Attempt>() + texts + attempt.transcript.tail.len() + chunks + attempt.checks.iter().map(check).sum::<usize>()
}

/// The attempts as they come over.
struct Given {
    /// Taken at the first question.
    ask: Option<SyncSender<()>>,
    given: Receiver<Vec<Read>>,
    batch: std::vec::IntoIter<Read>,
}

impl Iterator for Given {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if let Some(ask) = self.ask.take() {
            ask.send(()).ok()?;
        }
        loop {
            if let Some(attempt) = self.batch.next() {
                return Some(attempt);
            }
            self.batch = self.given.recv().ok()?.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn some(count: u32, read: &Cell<u32>) -> impl Iterator<Item = Read> {
        (1..=count).map(|epoch| {
            read.set(epoch);
            Ok(Attempt::unscored("e".to_owned(), "m".to_owned(), String::new(), epoch))
        })
    }

    fn written(attempts: u64) -> store::Result<Applied> {
        Ok(Applied { attempts, ..Applied::default() })
    }

    #[test]
    fn all_come_over_in_order() {
        let read = Cell::new(0);
        let write = |attempts: &mut dyn Iterator<Item = Read>| {
            let epochs: Vec<u32> = attempts.map(|attempt| attempt.unwrap().epoch).collect();
            assert_eq!(epochs, (1..=3000).collect::<Vec<_>>());
            written(epochs.len() as u64)
        };
        assert_eq!(alongside(&mut some(3000, &read), write).unwrap().attempts, 3000);
    }

    #[test]
    fn both_are_worked_out() {
        assert_eq!(both(&|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn nothing_is_read_for_who_does_not_ask() {
        let read = Cell::new(0);
        assert_eq!(alongside(&mut some(9, &read), |_| written(7)).unwrap().attempts, 7);
        assert_eq!(read.get(), 0);
    }

    #[test]
    fn reading_ends_with_writing_and_at_what_is_broken() {
        let read = Cell::new(0);
        let error = alongside(&mut some(1_000_000, &read), |attempts| {
            attempts.next();
            Err(store::Error::Full)
        });
        assert!(matches!(error, Err(store::Error::Full)));
        assert!(read.get() <= BATCH_ATTEMPTS as u32 * (WAITING as u32 + 3), "{}", read.get());
        let read = Cell::new(0);
        let mut broken = some(2, &read).chain([Err("cut".to_owned())]).chain(some(9, &read));
        let seen = alongside(&mut broken, |attempts| written(attempts.filter(Result::is_ok).count() as u64));
        assert_eq!((seen.unwrap().attempts, read.get()), (2, 2));
    }
}
