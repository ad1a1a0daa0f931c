//! Places in a JSON value as dotted fields: `items[0].name`, `headers["content-type"]`.

use std::fmt::Write as _;

/// A place, built from the root down.
#[derive(Debug, Default, Clone)]
pub(crate) struct Path {
    text: String,
}

/// Longer paths are cut, because a key can be megabytes long.
const LONGEST: usize = 300;

impl Path {
    pub(crate) fn new(root: &str) -> Self {
        Self { text: root.to_owned() }
    }

    pub(crate) fn push_index(&mut self, index: usize) {
        if self.text.len() < LONGEST {
            let _ = write!(self.text, "[{index}]");
        }
    }

    pub(crate) fn push(&mut self, name: &str) {
        if self.text.len() >= LONGEST {
            return;
        }
        let plain = !name.is_empty()
            && name.len() <= LONGEST
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
        if plain {
            if !self.text.is_empty() {
                self.text.push('.');
            }
            self.text.push_str(name);
        } else {
            let name: String = name.chars().take(LONGEST).collect();
            let _ = write!(self.text, "[{name:?}]");
        }
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}
