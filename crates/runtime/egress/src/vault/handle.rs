//! Handles: the texts that tools see instead of secret values.

use aho_corasick::{AhoCorasick, MatchKind};
use uuid::Uuid;

const PREFIX: &str = "rcrt_secret_";

/// Only letters, digits and `_`, so that it is the same wherever a tool writes it: in a header, a
/// query or JSON.
pub(super) fn new(name: &str) -> String {
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("{PREFIX}{name}_{}", Uuid::new_v4().simple())
}

/// Finds a call's handles.
pub(super) struct Handles {
    exact: AhoCorasick,
    /// For text whose case can change on the way.
    any_case: AhoCorasick,
}

impl Handles {
    /// `None` if there are no handles.
    pub fn new<'h>(handles: impl Iterator<Item = &'h str>) -> Option<Self> {
        let handles: Vec<&str> = handles.collect();
        if handles.is_empty() {
            return None;
        }
        let build = |any_case| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .ascii_case_insensitive(any_case)
                .build(&handles)
                .ok()
        };
        Some(Self { exact: build(false)?, any_case: build(true)? })
    }

    /// The handles in the text, in order: the index of each, and its range.
    pub fn find<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + 't {
        self.exact.find_iter(text).map(|found| (found.pattern().as_usize(), found.range()))
    }

    pub fn first_in_any_case(&self, text: &[u8]) -> Option<usize> {
        self.any_case.find(text).map(|found| found.pattern().as_usize())
    }
}
