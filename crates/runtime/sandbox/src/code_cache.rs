//! The engine's compiled form of a script, so that the next isolate does not compile it again.
//!
//! The engine trusts these bytes. So they are taken only from a process that has not run tool code
//! yet, and they are used only for the script that they were made from: one version of a tool of
//! one tenant.

use bytes::Bytes;
use parking_lot::Mutex;

use crate::protocol::{MAX_CODE_CACHE_BYTES, MIN_CACHED_SCRIPT_BYTES};

#[derive(Debug, Default)]
pub struct CodeCache(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    Made(Bytes),
    /// The engine made none or rejected it: do not try again.
    Without,
}

impl CodeCache {
    /// Whether a cache is available for the next isolate.
    pub fn is_there(&self) -> bool {
        matches!(*self.0.lock(), State::Made(_))
    }

    /// Whether a cache should be made for a script of this size.
    pub(crate) fn is_wanted(&self, script_bytes: usize) -> bool {
        script_bytes >= MIN_CACHED_SCRIPT_BYTES && matches!(*self.0.lock(), State::Unknown)
    }

    pub(crate) fn get(&self) -> Option<Bytes> {
        match &*self.0.lock() {
            State::Made(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Stores the first cache; empty bytes mean that the engine made none.
    pub(crate) fn put(&self, bytes: Bytes) {
        let mut state = self.0.lock();
        if matches!(*state, State::Unknown) {
            let is_usable = !bytes.is_empty() && bytes.len() <= MAX_CODE_CACHE_BYTES;
            *state = if is_usable { State::Made(bytes) } else { State::Without };
        }
    }

    pub(crate) fn refuse(&self) {
        *self.0.lock() = State::Without;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cache_is_used_until_it_is_refused() {
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
    fn empty_and_too_large_caches_are_not_stored() {
        for bytes in [Bytes::new(), Bytes::from(vec![0; MAX_CODE_CACHE_BYTES + 1])] {
            let cache = CodeCache::default();
            cache.put(bytes);
            assert!(cache.get().is_none() && !cache.is_wanted(usize::MAX));
        }
    }
}
