//! Fuel: counted steps that bound a computation, independent of time.

use serde_json::Value;

/// Bytes of text per step.
const TEXT: usize = 16;

/// The steps that are left. One step takes some tens of nanoseconds: one value or path segment
/// examined, or 16 bytes of text read. Inserting a value into a set takes about 100 ns.
#[derive(Debug)]
pub struct Fuel(u64);

/// The fuel is used up before the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("exceeds its step limit")]
pub struct OutOfFuel;

impl Fuel {
    /// For work on an async thread: far less than a millisecond.
    pub fn for_async() -> Self {
        Self(20_000)
    }

    /// For work on a blocking thread: a fraction of a second.
    pub fn for_blocking() -> Self {
        Self(10_000_000)
    }

    pub fn steps(steps: u64) -> Self {
        Self(steps)
    }

    pub fn left(&self) -> u64 {
        self.0
    }

    pub fn burn(&mut self, steps: usize) -> Result<(), OutOfFuel> {
        if let Some(left) = self.0.checked_sub(steps as u64) {
            self.0 = left;
            return Ok(());
        }
        self.0 = 0;
        Err(OutOfFuel)
    }

    pub fn burn_for_text(&mut self, text: &str) -> Result<(), OutOfFuel> {
        self.burn(1 + text.len() / TEXT)
    }

    /// Pays for a complete look at a value.
    pub fn burn_for(&mut self, value: &Value) -> Result<(), OutOfFuel> {
        match value {
            Value::String(text) => self.burn_for_text(text),
            Value::Array(items) => {
                self.burn(1)?;
                items.iter().try_for_each(|item| self.burn_for(item))
            }
            Value::Object(entries) => {
                self.burn(1)?;
                entries.iter().try_for_each(|(key, value)| {
                    self.burn_for_text(key)?;
                    self.burn_for(value)
                })
            }
            _ => self.burn(1),
        }
    }
}
