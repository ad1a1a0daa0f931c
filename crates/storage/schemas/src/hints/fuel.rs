//! The cost limits of hints: steps, and bytes of output.

use serde_json::Value;

/// The maximum number of steps for one view.
const STEPS: usize = 50_000;
/// The maximum output of the rules of one view, and of one text, in bytes.
pub(super) const BYTES: usize = 256 * 1024;
pub(super) const TEXT_BYTES: usize = 64 * 1024;

/// The steps and bytes that are left.
#[derive(Debug)]
pub(super) struct HintBudget {
    steps: usize,
    bytes: usize,
}

impl Default for HintBudget {
    fn default() -> Self {
        Self { steps: STEPS, bytes: BYTES }
    }
}

impl HintBudget {
    /// Takes steps. If fewer are left, returns `false` and leaves none.
    pub(super) fn burn(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                true
            }
            None => {
                self.steps = 0;
                false
            }
        }
    }

    /// Takes a step for each 256 bytes of a value's JSON text. Stops measuring where the fuel would
    /// run out.
    pub(super) fn burn_for_copy(&mut self, value: &Value) -> bool {
        let most = self.steps.saturating_mul(256);
        match size_within(value, most) {
            Some(bytes) => self.burn(bytes / 256),
            None => self.burn(usize::MAX),
        }
    }

    /// Takes the bytes of an output value.
    pub(super) fn spend_for(&mut self, value: &Value) -> bool {
        size_within(value, self.bytes).is_some_and(|bytes| self.spend(bytes))
    }

    /// Takes bytes of output. Returns `false` if fewer are left.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                true
            }
            None => false,
        }
    }
}

/// A text of at most [`TEXT_BYTES`], which ends with `…` if it was cut.
#[derive(Debug)]
pub(super) struct BoundedText {
    text: String,
    is_cut: bool,
}

impl BoundedText {
    pub(super) fn new() -> Self {
        Self { text: String::new(), is_cut: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_cut
    }

    pub(super) fn push(&mut self, more: &str) {
        let room = TEXT_BYTES - self.text.len();
        if self.is_cut || more.len() <= room {
            if !self.is_cut {
                self.text.push_str(more);
            }
            return;
        }
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        self.is_cut = true;
    }

    /// Marks the text as cut and accepts no more.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Appends a value: a string without quotes, nothing for null, and JSON for other values.
    pub(super) fn push_value(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.push(text),
            other => {
                // The error only means that the text is full.
                let _ = serde_json::to_writer(Utf8(self), other);
            }
        }
    }

    pub(super) fn finish(mut self) -> String {
        if self.is_cut {
            self.text.push('…');
        }
        self.text
    }
}

/// A writer into the text. serde_json writes only whole characters, piece by piece.
struct Utf8<'t>(&'t mut BoundedText);

impl std::io::Write for Utf8<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.push(&String::from_utf8_lossy(bytes));
        if self.0.is_full() { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The size of a value's JSON text in bytes. `None` if it exceeds `most`.
fn size_within(value: &Value, most: usize) -> Option<usize> {
    let mut counted = BoundedByteCounter { bytes: 0, most };
    serde_json::to_writer(&mut counted, value).ok()?;
    Some(counted.bytes)
}

struct BoundedByteCounter {
    bytes: usize,
    most: usize,
}

impl std::io::Write for BoundedByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        if self.bytes > self.most { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
