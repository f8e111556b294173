//! Answers that are still true are not computed again, and what is asked at the same time is computed once (decisions 1, 2, 82).
//!
//! The key is the project, the store's generation, the tool, the arguments in their canonical form (decoded, defaults written out, names
//! sorted) and all that decides what the caller may see.
//!
//! A hit costs 3,000 instructions here, a miss 15,000: a place is made for those who ask the same meanwhile and taken off again, and an older
//! answer makes room. What is saved by one hit, the reading of the store, pays for twenty of these.
//!
//! What an operator's command answers is kept for strangers of a public server only, by its command line.
//!
//! Promises: bounded in bytes; a refusal is kept for nobody; a leader whose client leaves hands over to a follower; what was refused to the
//! leader in person (its other call is still running) is not the followers' answer.
//! Does not: know that an answer depends on the time of day: within the hour that one is kept, `7d` is the same week.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use moka::{future::Cache as Moka, policy::EvictionPolicy};

use super::{
    Bounds, Call, Refusal, Reply, Served,
    next::{Next, Step},
};
use crate::{
    auth::Visibility,
    tools::{Answer, canonical::canonical},
};

/// Bytes beside its text that an entry takes: the key's parts, two allocations, the cache's own nodes. Rounded up.
const ENTRY_OVERHEAD_BYTES: usize = 512;
/// The cache tidies itself each 64 writes or 300 ms; a burst of large answers would stand above the bound for as long. It is made to after this.
const UNTIDIED_BYTES_MAX: u64 = 1024 * 1024;

/// What makes two calls one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    project: Arc<str>,
    generation: u64,
    tool: &'static str,
    arguments: Box<str>,
    sees: Visibility,
    /// What the answer says of the index: another note is another answer.
    note: Option<Box<str>>,
}

impl Key {
    /// What an operator's command answers is no project's and has no generation: its command line alone says what it is, and it is kept for
    /// strangers only (decision 82).
    fn declared(call: &Call) -> Self {
        Self {
            project: "".into(),
            generation: 0,
            tool: call.entry.name,
            arguments: canonical(&call.arguments).into(),
            sees: call.caller.visibility(),
            note: None,
        }
    }
}

/// Why an answer is not kept; those who waited for it get it all the same.
enum Unkept {
    Passing(Arc<Answer>),
    Refused(Refusal),
}

/// The cache, for the step and for who watches it.
pub struct Cache {
    answers: Option<Moka<Key, Arc<Answer>>>,
    untidied: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    followers: AtomicU64,
}

impl Cache {
    /// As large as `bounds` says; 0 bytes is none, and then nothing is computed once for several either.
    #[must_use]
    pub fn new(bounds: &Bounds) -> Self {
        let answers = (bounds.cache_bytes > 0).then(|| answers(bounds.cache_bytes, bounds.cache_for));
        Self { answers, untidied: 0.into(), hits: 0.into(), misses: 0.into(), followers: 0.into() }
    }

    /// Calls answered from what was kept.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Calls that were computed.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Calls answered with what another call computed meanwhile.
    #[must_use]
    pub fn followers(&self) -> u64 {
        self.followers.load(Relaxed)
    }

    /// Bytes that are kept, overhead included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.answers.as_ref().map_or(0, Moka::weighted_size)
    }

    /// Answers that are kept.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.answers.as_ref().map_or(0, Moka::entry_count)
    }

    fn key(&self, call: &Call) -> Option<Key> {
        if call.entry.declared.is_some() {
            return call.caller.is_public().then(|| Key::declared(call));
        }
        let generation = call.generation.filter(|_| call.entry.cacheable)?;
        let arguments = canonical(&call.arguments).into();
        Some(Key {
            project: call.project.as_ref()?.id.clone(),
            generation,
            tool: call.entry.name,
            arguments,
            sees: call.caller.visibility(),
            note: call.note.as_deref().map(Box::from),
        })
    }

    fn from_cache(counter: &AtomicU64, answer: Arc<Answer>) -> Reply {
        counter.fetch_add(1, Relaxed);
        Ok(Served { answer, cached: true })
    }

    async fn tidy(&self, answers: &Moka<Key, Arc<Answer>>, written: usize) {
        if self.untidied.fetch_add(written as u64, Relaxed) + written as u64 >= UNTIDIED_BYTES_MAX {
            self.untidied.store(0, Relaxed);
            answers.run_pending_tasks().await;
        }
    }

    async fn once<N: Next>(&self, answers: &Moka<Key, Arc<Answer>>, key: &Key, call: Call, mut next: N) -> Reply {
        let request_id = call.request_id.clone();
        let mut call = Some(call);
        loop {
            let mut led = false;
            let computing = async {
                led = true;
                self.misses.fetch_add(1, Relaxed);
                match call.take() {
                    Some(call) => kept(next.call(call).await),
                    // Who led once has returned: below.
                    None => Err(Unkept::Refused(Refusal::Panicked(request_id.clone()))),
                }
            };
            match answers.try_get_with_by_ref(key, computing).await {
                Ok(answer) if led => {
                    self.tidy(answers, weight(key, &answer)).await;
                    return Ok(Served { answer, cached: false });
                }
                Ok(answer) => return Self::from_cache(&self.followers, answer),
                Err(unkept) => match (&*unkept, led) {
                    (Unkept::Passing(answer), true) => return Ok(Served { answer: answer.clone(), cached: false }),
                    (Unkept::Passing(answer), false) => return Self::from_cache(&self.followers, answer.clone()),
                    // One of those who waited leads next.
                    (Unkept::Refused(Refusal::CallerBusy { .. } | Refusal::Left), false) => {}
                    (Unkept::Refused(refusal), _) => return Err(shared(refusal, &request_id)),
                },
            }
        }
    }
}

impl Step for Cache {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        let (Some(answers), Some(key)) = (&self.answers, self.key(&call)) else { return next.call(call).await };
        match answers.get(&key).await {
            Some(answer) => Self::from_cache(&self.hits, answer),
            None => self.once(answers, &key, call, next).await,
        }
    }
}

/// Least recently used goes first: by frequency, answers of an older generation, which nobody can ask for, would keep new ones out.
fn answers(bytes: u64, kept_for: Duration) -> Moka<Key, Arc<Answer>> {
    Moka::builder()
        .max_capacity(bytes)
        .weigher(|key: &Key, answer: &Arc<Answer>| u32::try_from(weight(key, answer)).unwrap_or(u32::MAX))
        .eviction_policy(EvictionPolicy::lru())
        .time_to_live(kept_for)
        .build()
}

fn weight(key: &Key, answer: &Answer) -> usize {
    answer.json.get().len() + answer.text.len() + key.arguments.len() + ENTRY_OVERHEAD_BYTES
}

fn kept(reply: Reply) -> Result<Arc<Answer>, Unkept> {
    match reply {
        Ok(Served { answer, .. }) if answer.lasting => Ok(answer),
        Ok(Served { answer, .. }) => Err(Unkept::Passing(answer)),
        Err(refusal) => Err(Unkept::Refused(refusal)),
    }
}

/// Everyone reads their own request id, never another's; the log has both.
fn shared(refusal: &Refusal, request_id: &str) -> Refusal {
    match refusal {
        Refusal::Panicked(leader) if leader != request_id => {
            tracing::error!(requestId = request_id, leader, "waited for a call whose tool panicked");
            Refusal::Panicked(request_id.to_owned())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
