//! The keyword `pattern`.
//!
//! A regular expression needs a cache for its searches. The validator's own expressions keep one
//! for each thread that ever searched. Here each thread has a few caches for all expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jsonschema::{Keyword, ValidationError};
use regex_automata::Input;
use regex_automata::meta::{Cache, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use serde_json::Value;

use crate::message::shorten;

/// The most bytes of one compiled pattern.
pub(crate) const PATTERN_BYTES: usize = 1024 * 1024;
/// The most bytes of a cache for a lazy DFA.
const DFA_BYTES: usize = 128 * 1024;
/// The caches of one thread.
pub(crate) const CACHES: usize = 8;

static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CACHED: RefCell<Vec<(u64, Cache)>> = const { RefCell::new(Vec::new()) };
}

/// The compiled patterns of one schema, by their text.
pub(crate) type CompiledPatterns = HashMap<String, Arc<Pattern>>;

#[derive(Debug)]
pub(crate) struct Pattern {
    id: u64,
    regex: Regex,
    message: String,
}

impl Pattern {
    /// `translated`: the pattern in Rust's syntax. `None` if it is not supported, or too large.
    pub(crate) fn compile(pattern: &str, translated: &str) -> Option<Self> {
        // Positions of groups are not needed. The backtracker keeps a stack of any size.
        let config = Regex::config()
            .nfa_size_limit(Some(PATTERN_BYTES))
            .hybrid_cache_capacity(DFA_BYTES)
            .which_captures(WhichCaptures::Implicit)
            .backtrack(false)
            .onepass(false);
        let regex = Regex::builder().configure(config).build(translated).ok()?;
        let message = format!("must match the pattern {}", shorten(pattern));
        Some(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), regex, message })
    }

    fn is_match(&self, text: &str) -> bool {
        let search = |caches: &mut Vec<(u64, Cache)>| {
            let known = caches.iter().position(|(id, _)| *id == self.id);
            let place = known.unwrap_or_else(|| {
                if caches.len() >= CACHES {
                    caches.remove(0);
                }
                caches.push((self.id, self.regex.create_cache()));
                caches.len() - 1
            });
            let (_, cache) = caches.get_mut(place)?;
            // The library panics on some patterns.
            let input = Input::new(text).earliest(true);
            let searched = catch_unwind(AssertUnwindSafe(|| self.regex.search_half_with(cache, &input).is_some()));
            if searched.is_err() {
                caches.remove(place);
            }
            searched.ok()
        };
        CACHED.with_borrow_mut(search).unwrap_or(false)
    }
}

/// The keyword in one subschema.
pub(crate) struct Matches(pub Arc<Pattern>);

impl<'i> Keyword<'i> for Matches {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom(self.0.message.clone())) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.0.is_match(text))
    }
}
