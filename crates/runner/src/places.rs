//! The places that calls run in, by what they need: a call that computes has a worker process, one that only waits for
//! others has none. Each kind has its own room, so that a thousand calls that wait keep no worker from its work.
//!
//! What kind a waiting call is of is not known before it is claimed. While one kind is full, the tools of that kind
//! that are known to have calls waiting are left out of the claim; one that was not known is given back, and known from
//! then on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::registry::Registry;
use crate::room::{Ask, Room};

/// The most tools that a claim leaves out.
pub(crate) const MAX_EXCEPT: usize = 1000;

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
}

struct Inner {
    computing: Room,
    waiting: Room,
    /// Tools whose kind was full when a call of theirs came, until a place of that kind is free.
    barred: HashSet<String>,
    /// How many calls to ask for while one kind is full: more with each call that was of the other.
    trust: u32,
}

/// One call's place, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    kind: Kind,
    tool: String,
}

impl Places {
    pub fn new(registry: Arc<Registry>, computing: Room, waiting: Room) -> Arc<Self> {
        let inner = Inner { computing, waiting, barred: HashSet::new(), trust: 1 };
        Arc::new(Self { registry, inner: Mutex::new(inner), freed: Notify::new() })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tool that is not known here is answered at once; it is as if it computed.
    fn kind(&self, tool: &str) -> Kind {
        if self.registry.is_idling(tool) { Kind::Waiting } else { Kind::Computing }
    }

    /// What to claim; `None` when there is no room for anything that may come.
    pub fn ask(&self) -> Option<Ask> {
        // Without such tools, a claim for their calls alone would find none.
        let some_wait = self.registry.has_idling();
        self.inner().ask(some_wait)
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
        is_taken.then(|| Place { places: self.clone(), kind, tool: tool.to_owned() })
    }
}

impl Inner {
    fn room(&mut self, kind: Kind) -> &mut Room {
        match kind {
            Kind::Computing => &mut self.computing,
            Kind::Waiting => &mut self.waiting,
        }
    }

    fn ask(&self, some_wait: bool) -> Option<Ask> {
        let (limit, mut except, full) = match (self.computing.ask(), self.waiting.ask()) {
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
        if let Some(full) = full {
            except.extend(full.running().map(str::to_owned));
            except.extend(self.barred.iter().cloned());
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
            self.barred.insert(tool.to_owned());
            self.trust = 1;
            return false;
        }
        if other_is_full {
            self.trust = (self.trust + 1).min(100);
        }
        true
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
            inner.computing.leave(&self.tool);
            inner.barred.clear();
            self.kind = Kind::Waiting;
            drop(inner);
            self.places.freed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.places.inner();
        inner.room(self.kind).leave(&self.tool);
        inner.barred.clear();
        drop(inner);
        self.places.freed.notify_one();
    }
}
