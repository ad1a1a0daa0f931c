//! The event that caused a call, as its tool sees it.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// JSON text, because it is only passed on. Copies share it.
#[derive(Debug, Clone)]
pub struct TriggerEvent(Arc<RawValue>);

impl TriggerEvent {
    /// Fails only if the event's own `Serialize` does.
    pub fn new(event: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self(to_raw_value(event)?.into()))
    }
}

impl PartialEq for TriggerEvent {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Serialize for TriggerEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
