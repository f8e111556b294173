//! What runs at once: one heavy call per caller, half of them for one organization, N in all; eight light ones per caller (`--concurrent`;
//! decision 34).
//!
//! Promises: a caller's own second heavy call is refused at once, and so is a ninth light one; a slot is waited for 30 s, in the order of
//! arrival, among those of one's own organization first: however many callers it has, it does not stand before the others; what a call holds is given back when it ends, however it ends: answered, refused, panicked, late or left by its client.
//! What would go on without its client does not begin without it.
//! Does not: hold anything for stdio and the command line, or hold a slot for an in-process tool whose call was given up (decision 19);
//! its caller's mark stays until the thread that computes it has ended, so that leaving early is no way to have more running.

use std::{
    collections::{HashMap, hash_map::Entry as Place},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{
    Bounds, Call, CallerKey, Refusal, Reply,
    next::{Next, Step},
    shared::Shared,
};
use crate::tools::Weight;

/// What is running, for this step and for who watches it.
pub struct Slots {
    slots: Semaphore,
    count: usize,
    light_max: usize,
    wait: Duration,
    running: Mutex<HashMap<CallerKey, Marks>>,
    /// The places of each organization that has a heavy call running or waiting.
    shares: Shared<Arc<str>, Semaphore>,
    share: usize,
}

/// A place for a heavy call: of its organization's, and of all.
struct Taking<'a> {
    _share: Option<OwnedSemaphorePermit>,
    _slot: SemaphorePermit<'a>,
}

/// What one caller has running.
#[derive(Default)]
struct Marks {
    heavy: usize,
    light: usize,
}

impl Slots {
    /// As many as `bounds` says.
    #[must_use]
    pub fn new(bounds: &Bounds) -> Self {
        Self {
            slots: Semaphore::new(bounds.concurrent),
            count: bounds.concurrent,
            light_max: bounds.light_per_caller,
            wait: bounds.slot_wait,
            running: Mutex::default(),
            shares: Shared::default(),
            share: bounds.concurrent_each,
        }
    }

    /// Slots that are taken.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.count.saturating_sub(self.slots.available_permits())
    }

    /// Callers that have something running.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.lock().len()
    }

    fn mark(self: &Arc<Self>, call: &Call) -> Result<Mark, Refusal> {
        let (caller, weight) = (call.counted_as(), call.entry.weight);
        let max = if weight == Weight::Heavy { 1 } else { self.light_max };
        let mut running = self.lock();
        let count = running.entry(caller.clone()).or_default().of(weight);
        if *count >= max {
            return Err(Refusal::CallerBusy { tool: call.entry.name, max, heavy: weight == Weight::Heavy });
        }
        *count += 1;
        Ok(Mark(Arc::new(Taken { slots: self.clone(), caller, weight })))
    }

    async fn slot(&self, call: &Call) -> Result<Option<Taking<'_>>, Refusal> {
        if call.entry.weight == Weight::Light {
            return Ok(None);
        }
        let share = call.caller.organization().map(|organization| self.shares.of(organization.clone(), || Semaphore::new(self.share)));
        let taking = async {
            let share = match share {
                Some(share) => share.acquire_owned().await.ok(),
                None => None,
            };
            self.slots.acquire().await.ok().map(|slot| Taking { _share: share, _slot: slot })
        };
        let gone = async {
            match &call.left {
                Some(left) => left.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let taken = tokio::select! {
            biased;
            () = gone => return Err(Refusal::Left),
            taken = tokio::time::timeout(self.wait, taking) => taken,
        };
        match taken {
            Ok(Some(taking)) => Ok(Some(taking)),
            _ => Err(Refusal::Busy { slots: self.count, waited_s: self.wait.as_secs() }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerKey, Marks>> {
        // Counts are whole at every moment, so a panic elsewhere does not spoil them.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    const fn of(&mut self, weight: Weight) -> &mut usize {
        match weight {
            Weight::Heavy => &mut self.heavy,
            Weight::Light => &mut self.light,
        }
    }
}

/// A caller's mark, taken off when the last who holds it lets go.
#[derive(Clone)]
pub struct Mark(#[expect(dead_code, reason = "held, not read")] Arc<Taken>);

struct Taken {
    slots: Arc<Slots>,
    caller: CallerKey,
    weight: Weight,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut running = self.slots.lock();
        let Place::Occupied(mut place) = running.entry(self.caller.clone()) else { return };
        let count = place.get_mut().of(self.weight);
        *count = count.saturating_sub(1);
        // Only who has something running is remembered: the table cannot grow beyond what is in flight.
        if place.get().heavy == 0 && place.get().light == 0 {
            place.remove();
        }
    }
}

impl Step for Slots {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        if !call.counted {
            return next.call(call).await;
        }
        // Waiting counts as running: a caller cannot fill the queue alone.
        let mark = self.mark(&call)?;
        call.mark = Some(mark.clone());
        let _slot = self.slot(&call).await?;
        let reply = next.call(call).await;
        drop(mark);
        reply
    }
}
