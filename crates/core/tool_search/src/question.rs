//! What a caller looks for.

use rcrt_breadcrumb::{MAX_QUESTION, Records, Violations};
use uuid::Uuid;

use crate::meaning::{Meaning, Nearness};

/// The usual share of the meaning in a score. The tests of the store measure that no other share
/// finds more.
pub const MEANING_WEIGHT: f64 = 0.7;
/// What remains of the share of the words if the meaning is not among the nearest, so that a new
/// tool, which has no vector yet, is found by its words.
const NOT_NEAREST: f64 = 0.85;

/// A text to find tools and services for.
#[derive(Debug, Clone)]
pub struct Question {
    text: String,
    meaning: Option<Meaning>,
    meaning_weight: f64,
}

impl Question {
    /// `text`: 1 to [`MAX_QUESTION`] characters. `field`: its name in the input, for the error.
    pub fn new(field: &str, text: &str) -> Result<Self, Violations> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Violations::one(field, "is required: say in a few words what you want to do"));
        }
        if text.chars().count() > MAX_QUESTION {
            return Err(Violations::one(field, format!("must have at most {MAX_QUESTION} characters")));
        }
        Ok(Self { text: text.to_owned(), meaning: None, meaning_weight: MEANING_WEIGHT })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether hints are useful: a text of one or two words, such as "thank you", asks for nothing.
    pub fn is_worth_hints(&self) -> bool {
        self.text.split_whitespace().count() > 2
    }

    /// Also uses the vectors that the store has of tools and services. Without any, the question
    /// counts by its words only. `callable`: the records of the tools that the asker can call, of
    /// `known` tools.
    pub async fn with_meaning(self, store: &(impl Records + ?Sized), callable: &[Uuid], known: usize) -> Self {
        let meaning =
            if self.meaning_weight > 0.0 { Meaning::read(store, &self.text, callable, known).await } else { None };
        Self { meaning, ..self }
    }

    /// Uses these cosines.
    #[must_use]
    pub fn with_cosines(self, meaning: Meaning) -> Self {
        Self { meaning: Some(meaning), ..self }
    }

    /// `weight`: the share of the meaning in a score, from 0 (words only) to 1.
    #[must_use]
    pub fn with_meaning_weight(self, weight: f64) -> Self {
        Self { meaning_weight: weight.clamp(0.0, 1.0), ..self }
    }

    /// How near the meaning of a record is.
    pub(crate) fn nearness(&self, record: Uuid) -> Nearness {
        self.meaning.as_ref().map_or(Nearness::Unknown, |meaning| meaning.nearness(record))
    }

    /// The score of a document: a number from 0 to 1. `share`: how much of the question its words
    /// answer.
    pub(crate) fn score(&self, share: f64, nearness: Nearness) -> f64 {
        let both = |cosine: f64| self.meaning_weight * cosine.clamp(0.0, 1.0) + (1.0 - self.meaning_weight) * share;
        match nearness {
            Nearness::Cosine(cosine) => both(cosine),
            Nearness::AtMost(cosine) => both(cosine).max(NOT_NEAREST * share),
            Nearness::Unknown => share,
        }
    }
}
