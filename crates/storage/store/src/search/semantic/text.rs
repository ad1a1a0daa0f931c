//! Which text of a record is embedded, and whether the record can be embedded at all.

use rcrt_breadcrumb::Sensitivity;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::rows::search_text;

/// More than any local model reads. Later text does not change what a record is about.
const MAX_TEXT: usize = 8 * 1024;

/// Title, description, the first strings of the context, and the tags.
pub(super) fn text(
    title: &str,
    description: Option<&str>,
    tags: &[String],
    context: Option<&Map<String, Value>>,
) -> String {
    let mut text = title.to_owned();
    let mut add = |part: &str| {
        if !part.trim().is_empty() {
            text.push('\n');
            text.push_str(part.trim());
        }
    };
    add(description.unwrap_or_default());
    if let Some(context) = context {
        add(&search_text::strings(context));
    }
    // Last, because tags name the kind of a record, and many records are of one kind.
    add(&tags.join(" "));
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}

pub(super) fn checksum(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

/// Whether a text of this sensitivity can be sent to an embedder.
pub(super) fn may_embed(sensitivity: Sensitivity, is_local: bool) -> bool {
    match sensitivity {
        Sensitivity::Low => true,
        Sensitivity::Pii => is_local,
        Sensitivity::Secret => false,
    }
}
