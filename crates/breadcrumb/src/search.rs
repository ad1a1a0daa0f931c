//! The parameters and the results of a search.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{BreadcrumbListItem, Selector, Violations};

/// The most characters of [`Search::q`].
pub const MAX_QUESTION: usize = 1000;
/// The most records that one search gives.
pub const MAX_FOUND: u32 = 100;
/// The most numbers of [`Search::qvec`]: what the database can keep of a vector.
pub const MAX_DIMENSIONS: usize = 16_000;

/// How records are compared with what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// By their words.
    Text,
    /// By what they mean: the nearest vectors.
    Vector,
    /// Both, joined by reciprocal rank fusion.
    Hybrid,
}

impl SearchMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Vector => "vector",
            Self::Hybrid => "hybrid",
        }
    }
}

impl fmt::Display for SearchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SearchMode {
    type Err = Violations;

    fn from_str(text: &str) -> Result<Self, Violations> {
        [Self::Text, Self::Vector, Self::Hybrid]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| Violations::one("mode", "must be text, vector or hybrid"))
    }
}

/// The `nn` best matches, best first, among the records that the selector admits.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Words or a question, 1 to 1000 characters. What is nearest to it is looked for where there is no `qvec`.
    pub q: Option<String>,
    /// A vector of the store's own model.
    pub qvec: Option<Vec<f32>>,
    /// `None`: hybrid where it can be had, else by words; by the vector alone where there are no words.
    pub mode: Option<SearchMode>,
    /// How many at most, 1 to 100.
    pub nn: u32,
    pub selector: Selector,
    pub include_context: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self { q: None, qvec: None, mode: None, nn: 10, selector: Selector::default(), include_context: false }
    }
}

impl Search {
    /// A search for these words, with everything else as it is where nothing is said.
    pub fn of(q: impl Into<String>) -> Self {
        Self { q: Some(q.into()), ..Self::default() }
    }

    /// What is wrong with it, by the names of its fields. What the store's model says about it is not looked at.
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
                found.add("q", format!("is required (1 to {MAX_QUESTION} characters), or qvec is"));
            }
            (Some(SearchMode::Text | SearchMode::Hybrid), None, _) => {
                found.add("q", format!("is required to search by words: 1 to {MAX_QUESTION} characters"));
            }
            (Some(SearchMode::Text), Some(_), Some(_)) => {
                found.add("qvec", "is of no use to mode=text; leave it out, or ask for mode=hybrid");
            }
            _ => {}
        }
        if !(1..=MAX_FOUND).contains(&self.nn) {
            found.add("nn", format!("is {}; must be a number from 1 to {MAX_FOUND}", self.nn));
        }
        if let Err(more) = self.selector.check() {
            found.0.extend(more.0);
        }
        found.into_result()
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Best first, each with its score.
    pub items: Vec<BreadcrumbListItem>,
    /// How it was searched.
    pub mode: SearchMode,
    /// Why it was searched by words only, where more was asked for or is the default.
    pub fallback: Option<String>,
}
