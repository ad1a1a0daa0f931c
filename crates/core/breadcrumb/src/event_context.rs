//! The context of a record in an event.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The context of a record in an event. Clones share it: an event has many subscribers, and most
/// read little of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventContext(Arc<Map<String, Value>>);

impl EventContext {
    /// The context itself: a copy, if other subscribers have it too.
    pub fn into_map(self) -> Map<String, Value> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for EventContext {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Map<String, Value>> for EventContext {
    fn from(context: Map<String, Value>) -> Self {
        Self(Arc::new(context))
    }
}

impl From<EventContext> for Map<String, Value> {
    fn from(context: EventContext) -> Self {
        context.into_map()
    }
}

impl PartialEq<Map<String, Value>> for EventContext {
    fn eq(&self, other: &Map<String, Value>) -> bool {
        *self.0 == *other
    }
}

impl Serialize for EventContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}
