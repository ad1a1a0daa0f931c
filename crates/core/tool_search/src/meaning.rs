//! How near the records of tools and services are to a question, by the vectors of the store.

use std::collections::HashMap;

use rcrt_breadcrumb::{
    MAX_FOUND, Records, Search, SearchMode, SearchResults, Selector, StoreError,
    schema_names::{A2A_AGENT, MCP_SERVER, TOOL_CODE, TOOL_V1},
};
use uuid::Uuid;

/// The cosines of a question and the nearest records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meaning {
    cosines: HashMap<Uuid, f64>,
    /// Of a record that is not among the nearest: the cosine of the last that is. `None` if all
    /// records that have a vector are known.
    farthest: Option<f64>,
}

impl Meaning {
    /// Up to [`MAX_FOUND`] records of each kind. `None` if the store has no vectors now.
    pub(crate) async fn read(store: &(impl Records + ?Sized), text: &str) -> Option<Self> {
        let read = Self::try_read(store, text).await;
        read.inspect_err(|error| tracing::debug!(%error, "tools are searched by words only")).ok()
    }

    async fn try_read(store: &(impl Records + ?Sized), text: &str) -> Result<Self, StoreError> {
        let search = |schema: &str| Search {
            mode: Some(SearchMode::Vector),
            nn: MAX_FOUND,
            selector: Selector { schema_name: Some(schema.into()), ..Selector::default() },
            ..Search::of(text)
        };
        let nearest = |found: SearchResults| found.items.into_iter().filter_map(|item| Some((item.id, item.score?)));
        // Alone: it makes the vector of the text, which the others find in the store's cache.
        let first = store.search(&search(TOOL_V1)).await?;
        let others = [TOOL_CODE, A2A_AGENT, MCP_SERVER].map(|schema| {
            let search = search(schema);
            async move { store.search(&search).await }
        });
        let others = futures::future::try_join_all(others).await?;
        let mut meaning = Self::default();
        for found in std::iter::once(first).chain(others) {
            meaning.add(nearest(found));
        }
        Ok(meaning)
    }

    /// Adds the nearest records of one kind, nearest first.
    pub fn add(&mut self, nearest: impl IntoIterator<Item = (Uuid, f64)>) {
        let (mut count, mut last) = (0, 0.0);
        for (id, cosine) in nearest {
            self.cosines.insert(id, cosine);
            (count, last) = (count + 1, cosine);
        }
        if count >= MAX_FOUND {
            self.farthest = Some(self.farthest.map_or(last, |farthest| farthest.min(last)));
        }
    }

    pub(crate) fn nearness(&self, id: Uuid) -> Nearness {
        match (self.cosines.get(&id), self.farthest) {
            (Some(cosine), _) => Nearness::Cosine(*cosine),
            (None, Some(farthest)) => Nearness::AtMost(farthest),
            (None, None) => Nearness::Unknown,
        }
    }
}

/// How near the meaning of a record is to a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nearness {
    Cosine(f64),
    /// It is not among the nearest: its cosine is not above this, or it has no vector yet.
    AtMost(f64),
    /// There are no vectors, or the record has none.
    Unknown,
}

impl Nearness {
    pub fn cosine(self) -> Option<f64> {
        match self {
            Self::Cosine(cosine) | Self::AtMost(cosine) => Some(cosine),
            Self::Unknown => None,
        }
    }

    /// Whether it is near enough to be found without a word of the question. Below this, most of
    /// what is found is wrong.
    pub fn is_near(self) -> bool {
        self.cosine().is_some_and(|cosine| cosine >= 0.2)
    }
}
