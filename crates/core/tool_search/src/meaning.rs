//! How near the records of tools and services are to a question, by the vectors of the store.

use std::collections::HashMap;

use rcrt_breadcrumb::{
    MAX_FOUND, Records, Search, SearchMode, Selector, StoreError,
    schema_names::{A2A_AGENT, MCP_SERVER, TOOL_CODE, TOOL_V1},
};
use uuid::Uuid;

/// The most tools whose vectors are all read, of an asker that can call few of the known tools.
const MAX_COMPARED: usize = 1_000;
/// Searches at the same time.
const PARALLEL: usize = 4;

/// The cosines of a question and the nearest records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meaning {
    cosines: HashMap<Uuid, f64>,
    /// Of a record that is not among the nearest: the cosine of the last that is. `None` if all
    /// records that have a vector are known.
    farthest: Option<f64>,
}

impl Meaning {
    /// Up to [`MAX_FOUND`] records of each kind; or, if the asker can call few of all tools, the
    /// records of the tools that it can call, which may not be among the nearest. `callable`: these
    /// records. `known`: how many tools there are. `None` if the store has no vectors now.
    pub(crate) async fn read(
        store: &(impl Records + ?Sized),
        text: &str,
        callable: &[Uuid],
        known: usize,
    ) -> Option<Self> {
        let read = Self::try_read(store, &searches(text, callable, known)).await;
        read.inspect_err(|error| tracing::debug!(%error, "tools are searched by words only")).ok()
    }

    async fn try_read(store: &(impl Records + ?Sized), searches: &[Search]) -> Result<Self, StoreError> {
        let mut meaning = Self::default();
        // The first alone: it makes the vector of the text, which the others find in the store's
        // cache.
        let (first, others) = searches.split_at(searches.len().min(1));
        for group in std::iter::once(first).chain(others.chunks(PARALLEL)) {
            let found = futures::future::try_join_all(group.iter().map(|search| store.search(search))).await?;
            for (search, found) in group.iter().zip(found) {
                let nearest = found.items.into_iter().filter_map(|item| Some((item.id, item.score?)));
                if search.ids.is_empty() {
                    meaning.add(nearest);
                } else {
                    meaning.cosines.extend(nearest);
                }
            }
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

/// The searches that find the meaning of a text.
fn searches(text: &str, callable: &[Uuid], known: usize) -> Vec<Search> {
    let by_meaning = Search { mode: Some(SearchMode::Vector), nn: MAX_FOUND, ..Search::of(text) };
    let of_schema = |schema: &str| Search {
        selector: Selector { schema_name: Some(schema.into()), ..Selector::default() },
        ..by_meaning.clone()
    };
    let is_few = known > MAX_FOUND as usize && callable.len() <= MAX_COMPARED.min(known / 2);
    let tools: Vec<Search> = if is_few {
        let of_records = |ids: &[Uuid]| Search { ids: ids.to_vec(), ..by_meaning.clone() };
        callable.chunks(MAX_FOUND as usize).map(of_records).collect()
    } else {
        [TOOL_V1, TOOL_CODE].map(of_schema).into()
    };
    tools.into_iter().chain([A2A_AGENT, MCP_SERVER].map(of_schema)).collect()
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
