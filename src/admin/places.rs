//! Who holds a connection of the private listener.
//!
//! Promises: at most so many; where all are taken, the oldest that has not asked for anything leaves for the newcomer, so that silence keeps no
//! prober out. Who is being answered stays.
//! Does not: know sockets; a connection holds its [`Place`] for as long as it lasts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use tokio_util::sync::CancellationToken;

/// The places, those who came first in front.
pub struct Places {
    most: usize,
    taken: Vec<Arc<Held>>,
}

#[derive(Default)]
struct Held {
    asked: AtomicBool,
    leave: CancellationToken,
}

/// One connection's place; free again when the last clone is dropped.
#[derive(Clone)]
pub struct Place(Arc<Held>);

impl Places {
    /// This many.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, taken: Vec::new() }
    }

    /// A place for a newcomer; none where everyone is being answered.
    pub fn take(&mut self) -> Option<Place> {
        self.taken.retain(|held| Arc::strong_count(held) > 1);
        if self.taken.len() >= self.most {
            let silent = self.taken.iter().position(|held| !held.asked.load(Relaxed))?;
            self.taken.remove(silent).leave.cancel();
        }
        let held = Arc::<Held>::default();
        self.taken.push(held.clone());
        Some(Place(held))
    }
}

impl Place {
    /// From now on it is being answered.
    pub fn ask(&self) {
        self.0.asked.store(true, Relaxed);
    }

    /// Ends when it is to leave.
    pub async fn left(&self) {
        self.0.leave.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(place: &Place) -> bool {
        place.0.leave.is_cancelled()
    }

    #[test]
    fn the_oldest_that_is_silent_leaves_and_who_is_answered_stays() {
        let mut places = Places::new(3);
        let first: Vec<Place> = (0..3).map(|_| places.take().unwrap()).collect();
        first[0].ask();
        let newcomer = places.take().unwrap();
        assert_eq!(first.iter().map(leaves).collect::<Vec<_>>(), [false, true, false]);
        first[2].ask();
        newcomer.ask();
        assert!(places.take().is_none(), "everyone is being answered");
        drop(newcomer);
        assert!(places.take().is_some() && places.taken.len() == 3, "a place is free with its connection");
    }
}
