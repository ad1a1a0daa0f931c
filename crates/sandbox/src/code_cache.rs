//! The engine's compiled form of a script, so that the next isolate need not compile it again.
//!
//! An engine trusts such bytes. So they are taken only from a process that has run no tool code
//! yet, before it runs any, and they are used only for the script that they were made from: one
//! version of a tool of one tenant.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::protocol::{MAX_CODE_CACHE_BYTES, MIN_CACHED_SCRIPT_BYTES};

#[derive(Debug, Default)]
pub struct CodeCache(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    Made(Bytes),
    /// There is none, or the engine rejected it: do not try again.
    Without,
}

impl CodeCache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is one that the next isolate takes.
    pub fn is_there(&self) -> bool {
        matches!(*self.state(), State::Made(_))
    }

    /// Whether somebody should make one for a text of so many bytes.
    pub(crate) fn is_wanted(&self, script_bytes: usize) -> bool {
        script_bytes >= MIN_CACHED_SCRIPT_BYTES && matches!(*self.state(), State::Unknown)
    }

    pub(crate) fn get(&self) -> Option<Bytes> {
        match &*self.state() {
            State::Made(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Takes the first that is made; no bytes mean that there is none.
    pub(crate) fn put(&self, bytes: Bytes) {
        let mut state = self.state();
        if matches!(*state, State::Unknown) {
            let is_kept = !bytes.is_empty() && bytes.len() <= MAX_CODE_CACHE_BYTES;
            *state = if is_kept { State::Made(bytes) } else { State::Without };
        }
    }

    pub(crate) fn refuse(&self) {
        *self.state() = State::Without;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cache_stays_until_it_is_refused() {
        let cache = CodeCache::default();
        assert!(cache.is_wanted(MIN_CACHED_SCRIPT_BYTES) && !cache.is_wanted(MIN_CACHED_SCRIPT_BYTES - 1));
        cache.put(Bytes::from_static(b"first"));
        cache.put(Bytes::from_static(b"second"));
        assert_eq!(cache.get().as_deref(), Some(&b"first"[..]));
        assert!(!cache.is_wanted(usize::MAX));
        cache.refuse();
        cache.put(Bytes::from_static(b"third"));
        assert!(cache.get().is_none() && !cache.is_wanted(usize::MAX));
    }

    #[test]
    fn nothing_and_too_much_are_not_kept() {
        for bytes in [Bytes::new(), Bytes::from(vec![0; MAX_CODE_CACHE_BYTES + 1])] {
            let cache = CodeCache::default();
            cache.put(bytes);
            assert!(cache.get().is_none() && !cache.is_wanted(usize::MAX));
        }
    }
}
