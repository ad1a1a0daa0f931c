//! The parameters and the results of a search.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::names::names;
use crate::{BreadcrumbListItem, Selector, Violations};

/// The most characters of [`Search::q`].
pub const MAX_QUESTION: usize = 1000;
/// The most records that one search returns.
pub const MAX_FOUND: u32 = 100;
/// The most numbers in [`Search::qvec`]: the longest vector that the database can store.
pub const MAX_DIMENSIONS: usize = 16_000;

/// How records are compared with the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// By their words.
    Text,
    /// By their meaning: the nearest vectors.
    Vector,
    /// Both: the similarity of the meaning, and the words by their rarity.
    Hybrid,
}

names!(SearchMode, "mode", { Text => "text", Vector => "vector", Hybrid => "hybrid" });

/// A search for the `nn` best matches among the records that match the selector.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Words or a question, 1 to 1000 characters. Without `qvec`, its vector is used.
    pub q: Option<String>,
    /// A vector from the store's own model.
    pub qvec: Option<Vec<f32>>,
    /// `None`: hybrid if it is available, else by words. Without words, by the vector alone.
    pub mode: Option<SearchMode>,
    /// The maximum number of results, 1 to 100.
    pub nn: u32,
    pub selector: Selector,
    /// If not empty, only these records, at most [`MAX_FOUND`], by their vectors alone.
    pub ids: Vec<Uuid>,
    pub include_context: bool,
}

impl Default for Search {
    fn default() -> Self {
        let (selector, ids) = Default::default();
        Self { q: None, qvec: None, mode: None, nn: 10, selector, ids, include_context: false }
    }
}

impl Search {
    /// A search for these words, with defaults for everything else.
    pub fn of(q: impl Into<String>) -> Self {
        Self { q: Some(q.into()), ..Self::default() }
    }

    /// Checks the fields. Does not check `qvec` against the store's model.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Some(q) = &self.q
            && (q.trim().is_empty() || q.chars().count() > MAX_QUESTION || q.contains('\0'))
        {
            found.add("q", format!("must have 1 to {MAX_QUESTION} characters, none of them NUL"));
        }
        if let Some(qvec) = &self.qvec {
            if !(1..=MAX_DIMENSIONS).contains(&qvec.len()) {
                found.add("qvec", format!("has {} numbers; must have 1 to {MAX_DIMENSIONS}", qvec.len()));
            } else if let Some(at) = qvec.iter().position(|number| !number.is_finite()) {
                found.add(format!("qvec[{at}]"), "must be a finite number");
            } else if qvec.iter().all(|number| *number == 0.0) {
                found.add("qvec", "has no direction: every number is 0");
            }
        }
        match (self.mode, &self.q, &self.qvec) {
            (None | Some(SearchMode::Vector), None, None) => {
                found.add("q", format!("is required, unless qvec is given: 1 to {MAX_QUESTION} characters"));
            }
            (Some(SearchMode::Text | SearchMode::Hybrid), None, _) => {
                found.add("q", format!("is required to search by words: 1 to {MAX_QUESTION} characters"));
            }
            (Some(SearchMode::Text), Some(_), Some(_)) => {
                found.add("qvec", "is not used by mode=text; leave it out, or use mode=hybrid");
            }
            _ => {}
        }
        if !(1..=MAX_FOUND).contains(&self.nn) {
            found.add("nn", format!("is {}; must be a number from 1 to {MAX_FOUND}", self.nn));
        }
        if self.ids.len() > MAX_FOUND as usize {
            found.add("id", format!("names {} records; must name at most {MAX_FOUND}", self.ids.len()));
        }
        if !self.ids.is_empty() && self.mode != Some(SearchMode::Vector) {
            found.add("id", "is only used with mode=vector");
        }
        if let Err(more) = self.selector.check() {
            found.0.extend(more.0);
        }
        found.into_result()
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResults {
    /// Best first, each with its score.
    pub items: Vec<BreadcrumbListItem>,
    /// The mode that was used.
    pub mode: SearchMode,
    /// Why the search used words only, although more was requested or is the default.
    pub fallback: Option<String>,
}
