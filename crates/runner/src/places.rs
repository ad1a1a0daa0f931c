//! The places that calls run in, by what they need: a call that computes has a worker process, one that only waits for
//! others has none. Each kind has its own room, so that a thousand calls that wait keep no worker from its work.
//!
//! What kind a waiting call is of is not known before it is claimed. While one kind is full, the tools of that kind
//! that are known to have calls waiting are left out of the claim; one that was not known is given back, and known from
//! then on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::registry::Registry;
use crate::room::{Ask, Room};

/// The most tools that a claim leaves out.
const MAX_EXCEPT: usize = 1000;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Computing,
    Waiting,
}

pub(crate) struct Places {
    registry: Arc<Registry>,
    inner: Mutex<Inner>,
    /// A place is free that was not.
    pub freed: Notify,
    /// As `freed`, for calls that were claimed already.
    for_claimed: Notify,
}

struct Inner {
    computing: Room,
    waiting: Room,
    /// Tools whose kind was full when a call of theirs came, until a place of that kind is free. A place of the other
    /// kind does not count: calls that end there every moment would have the same ones claimed and given back.
    barred: HashMap<String, Kind>,
    /// How many calls to ask for while one kind is full: more with each call that was of the other.
    trust: u32,
    /// How long the calls that compute have had their places, of late; zero before the first.
    held: Duration,
}

/// One call's place, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    kind: Kind,
    tool: String,
    since: Instant,
}

/// How much of `held` the newest call is.
const NEWEST: u32 = 8;

impl Places {
    pub fn new(registry: Arc<Registry>, computing: Room, waiting: Room) -> Arc<Self> {
        let inner = Inner { computing, waiting, barred: HashMap::new(), trust: 1, held: Duration::ZERO };
        Arc::new(Self { registry, inner: Mutex::new(inner), freed: Notify::new(), for_claimed: Notify::new() })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tool that is not known here is answered at once; it is as if it computed.
    fn kind(&self, tool: &str) -> Kind {
        if self.registry.is_idling(tool) { Kind::Waiting } else { Kind::Computing }
    }

    /// What to claim beside the calls of the tools that are left to others; `None` when there is no room for anything
    /// that may come.
    pub fn ask(&self, left_to_others: Vec<String>) -> Option<Ask> {
        // Without such tools, a claim for their calls alone would find none.
        let some_wait = self.registry.has_idling();
        let mut inner = self.inner();
        // What was not known then may be known now.
        inner.barred.retain(|tool, kind| self.kind(tool) == *kind);
        inner.ask(some_wait, left_to_others)
    }

    /// How many calls have one.
    pub fn taken(&self) -> usize {
        let inner = self.inner();
        inner.computing.taken() + inner.waiting.taken()
    }

    /// A place for a call of this tool, or none: then its kind is full.
    pub fn take(self: &Arc<Self>, tool: &str) -> Option<Place> {
        let kind = self.kind(tool);
        let is_taken = self.inner().take(kind, tool);
        is_taken.then(|| Place { places: self.clone(), kind, tool: tool.to_owned(), since: Instant::now() })
    }

    /// How many calls find a place within this time, beside those that have one, if it goes on as it did of late. `None` where
    /// there is nothing to tell it by, as with calls that wait for others.
    pub fn soon(&self, tool: &str, time: Duration) -> Option<usize> {
        if self.kind(tool) == Kind::Waiting {
            return None;
        }
        let inner = self.inner();
        let each = inner.held.as_micros();
        (each > 0).then(|| (time.as_micros() * inner.computing.max_calls() as u128 / each) as usize)
    }

    /// The first place that is free for it.
    pub async fn wait(self: &Arc<Self>, tool: &str) -> Place {
        loop {
            let freed = self.for_claimed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(place) = self.take(tool) {
                return place;
            }
            freed.await;
        }
    }

    /// A call of this tool was given back.
    pub fn bar(&self, tool: &str) {
        let kind = self.kind(tool);
        self.inner().bar(kind, tool);
    }

    fn free(&self) {
        self.freed.notify_one();
        self.for_claimed.notify_waiters();
    }
}

impl Inner {
    fn room(&mut self, kind: Kind) -> &mut Room {
        match kind {
            Kind::Computing => &mut self.computing,
            Kind::Waiting => &mut self.waiting,
        }
    }

    fn ask(&self, some_wait: bool, left_to_others: Vec<String>) -> Option<Ask> {
        let (limit, asked, full) = match (self.computing.ask(), self.waiting.ask()) {
            (None, None) => return None,
            (None, Some(_)) if !some_wait => return None,
            (Some(one), Some(other)) => {
                let mut except = one.except_tools;
                except.extend(other.except_tools);
                (one.limit.min(other.limit), except, None)
            }
            (Some(ask), None) => (ask.limit.min(self.trust), ask.except_tools, Some(&self.waiting)),
            (None, Some(ask)) => (ask.limit.min(self.trust), ask.except_tools, Some(&self.computing)),
        };
        // First, so that they stay in where there are too many.
        let mut except = left_to_others;
        except.extend(asked);
        if let Some(full) = full {
            except.extend(full.running().map(str::to_owned));
            except.extend(self.barred.keys().cloned());
            except.sort_unstable();
            except.dedup();
            if except.len() > MAX_EXCEPT {
                return None;
            }
        }
        except.truncate(MAX_EXCEPT);
        Some(Ask { limit, except_tools: except })
    }

    fn take(&mut self, kind: Kind, tool: &str) -> bool {
        let other_is_full = match kind {
            Kind::Computing => self.waiting.is_full(),
            Kind::Waiting => self.computing.is_full(),
        };
        if !self.room(kind).take(tool) {
            return false;
        }
        if other_is_full {
            self.trust = (self.trust + 1).min(100);
        }
        true
    }

    fn bar(&mut self, kind: Kind, tool: &str) {
        self.barred.insert(tool.to_owned(), kind);
        self.trust = 1;
    }

    fn leave(&mut self, kind: Kind, tool: &str) {
        self.room(kind).leave(tool);
        self.barred.retain(|_, of| *of != kind);
    }
}

impl Place {
    /// Now that the tool is known: whoever only waits gives a worker's place back, where there is one of the other kind.
    pub fn settle(&mut self) {
        if self.kind == Kind::Waiting || self.places.kind(&self.tool) == Kind::Computing {
            return;
        }
        let mut inner = self.places.inner();
        if inner.waiting.take(&self.tool) {
            inner.leave(Kind::Computing, &self.tool);
            self.kind = Kind::Waiting;
            drop(inner);
            self.places.free();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.places.inner();
        inner.leave(self.kind, &self.tool);
        if self.kind == Kind::Computing {
            // Never nothing, which would mean that none was seen.
            let newest = self.since.elapsed().max(Duration::from_micros(NEWEST.into()));
            let before = if inner.held.is_zero() { newest } else { inner.held };
            inner.held = (before * (NEWEST - 1) + newest) / NEWEST;
        }
        drop(inner);
        self.places.free();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind_of(tool: u8) -> (Kind, String) {
        if tool.is_multiple_of(2) {
            (Kind::Computing, format!("computes{tool}"))
        } else {
            (Kind::Waiting, format!("waits{tool}"))
        }
    }

    proptest! {
        /// While its kind is full, a tool that had to be given back is not asked for again, whatever comes and goes in
        /// the places of the other kind; and then it is.
        #[test]
        fn what_was_given_back_is_asked_for_again_when_a_place_of_its_kind_is_free(
            max in 1_usize..5,
            steps in proptest::collection::vec((0_u8..8, any::<bool>()), 1..200),
        ) {
            let (computing, waiting) = (Room::new(max, max), Room::new(max, max));
            let mut inner = Inner { computing, waiting, barred: HashMap::new(), trust: 1, held: Duration::ZERO };
            let mut running: Vec<(Kind, String)> = Vec::new();
            let mut given_back: Vec<(Kind, String)> = Vec::new();
            for (tool, begins) in steps {
                let (kind, tool) = kind_of(tool);
                if begins {
                    let taken = inner.take(kind, &tool);
                    if taken {
                        running.push((kind, tool));
                    } else {
                        inner.bar(kind, &tool);
                        given_back.push((kind, tool));
                    }
                } else if let Some(at) = running.iter().position(|one| *one == (kind, tool.clone())) {
                    running.remove(at);
                    inner.leave(kind, &tool);
                    given_back.retain(|(of, _)| *of != kind);
                }
                let left = vec!["another's".to_owned()];
                if let Some(ask) = inner.ask(true, left.clone()) {
                    prop_assert!(ask.except_tools.contains(&left[0]));
                    for kind in [Kind::Computing, Kind::Waiting] {
                        if inner.room(kind).is_full() {
                            prop_assert!(given_back.iter().all(|(of, tool)| *of != kind || ask.except_tools.contains(tool)));
                        }
                    }
                }
                prop_assert!(inner.barred.iter().all(|(tool, kind)| given_back.contains(&(*kind, tool.clone()))));
            }
        }
    }

    #[test]
    fn a_list_that_would_have_to_be_cut_is_not_asked_while_a_kind_is_full() {
        let mut inner = Inner {
            computing: Room::new(1, 1),
            waiting: Room::new(1, 1),
            barred: HashMap::new(),
            trust: 1,
            held: Duration::ZERO,
        };
        let left: Vec<String> = (0..MAX_EXCEPT).map(|number| format!("left{number}")).collect();
        assert!(inner.ask(true, left.clone()).is_some_and(|ask| ask.except_tools == left));
        assert!(inner.take(Kind::Computing, "computes"));
        assert_eq!(inner.ask(true, left.clone()), None);
        inner.leave(Kind::Computing, "computes");
        assert!(inner.ask(true, left).is_some());
    }
}
