//! The cost of a pattern, computed from its syntax tree before it is compiled: memory, and time for
//! each byte of a text.

use rcrt_breadcrumb::Violations;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

use crate::graph::{Graph, field};

/// The most bytes of one pattern's text.
const MAX_PATTERN: usize = 4096;
/// The most bytes of all patterns' texts in one schema.
const MAX_TEXT: usize = 64 * 1024;
/// The most `\cX` in one pattern. The translation to Rust's syntax starts again at each.
const MAX_CONTROLS: usize = 16;
/// The approximate limit in bytes of one schema's compiled patterns.
const MAX_COMPILED: u64 = 4 * 1024 * 1024;

/// The cost of a schema's patterns.
pub(crate) struct Patterns {
    /// Approximate bytes of all compiled patterns.
    pub bytes: u64,
    /// For each subschema, the states that each byte of a text can be matched against, by its
    /// `pattern` and its `patternProperties`.
    pub states: Vec<u64>,
}

#[derive(Default, Clone, Copy)]
struct Size {
    bytes: u64,
    states: u64,
}

/// Measures the patterns of a schema, or returns the one that exceeds a limit.
pub(crate) fn measure(graph: &Graph<'_>) -> Result<Patterns, Violations> {
    // A text that occurs several times is compiled once.
    let mut known: std::collections::HashMap<&str, Size> = std::collections::HashMap::new();
    let (mut bytes, mut text) = (0_u64, 0);
    let mut states = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let mut of_node = 0_u64;
        for (keyword, pattern) in patterns(node.schema) {
            let refused = |message: String| Violations::one(field(&format!("{}/{keyword}", node.pointer)), message);
            let size = match known.get(pattern) {
                Some(size) => *size,
                None => {
                    let size = size_of_pattern(pattern).map_err(refused)?;
                    known.insert(pattern, size);
                    text += pattern.len();
                    bytes = bytes.saturating_add(size.bytes);
                    size
                }
            };
            if text > MAX_TEXT || bytes > MAX_COMPILED {
                let message = format!(
                    "exceeds the limit for patterns: the patterns of a schema can have {MAX_TEXT} bytes of text and about \
                     {MAX_COMPILED} bytes when compiled; classes such as \\p{{L}} under a repetition take most"
                );
                return Err(refused(message));
            }
            // Additional properties are matched against the patterns of properties once more.
            let times = if keyword == "pattern" { 1 } else { 2 };
            of_node = of_node.saturating_add(size.states.saturating_mul(times));
        }
        states.push(of_node);
    }
    Ok(Patterns { bytes, states })
}

fn patterns(schema: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    let pattern = schema.get("pattern").and_then(Value::as_str).map(|pattern| ("pattern", pattern));
    let of_properties = schema.get("patternProperties").and_then(Value::as_object);
    let keys = of_properties.into_iter().flat_map(|entries| entries.keys());
    pattern.into_iter().chain(keys.map(|key| ("patternProperties", key.as_str())))
}

/// Zero for an invalid pattern: the compiler reports it.
fn size_of_pattern(pattern: &str) -> Result<Size, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("has a pattern of {} bytes; at most {MAX_PATTERN} are allowed", pattern.len()));
    }
    if pattern.matches("\\c").count() > MAX_CONTROLS {
        return Err(format!("has a pattern with more than {MAX_CONTROLS} control escapes such as \\cA"));
    }
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(Size::default()) };
    Ok(regex_syntax::parse(&translated).map_or_else(|_| Size::default(), |hir| size_of(&hir)))
}

/// The parser bounds the depth of the tree.
fn size_of(hir: &Hir) -> Size {
    let sum = |parts: &[Hir]| {
        parts.iter().map(size_of).fold(Size { bytes: 64, states: 1 }, |sum, part| Size {
            bytes: sum.bytes.saturating_add(part.bytes),
            states: sum.states.saturating_add(part.states),
        })
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Size { bytes: 64, states: 1 },
        HirKind::Literal(literal) => {
            let length = literal.0.len() as u64;
            Size { bytes: 64 * length, states: length }
        }
        HirKind::Class(Class::Unicode(class)) => Size { bytes: 64 + 128 * class.ranges().len() as u64, states: 2 },
        HirKind::Class(Class::Bytes(class)) => Size { bytes: 64 + 16 * class.ranges().len() as u64, states: 1 },
        HirKind::Repetition(repetition) => {
            let one = size_of(&repetition.sub);
            let times = u64::from(repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1));
            Size {
                bytes: one.bytes.saturating_add(64).saturating_mul(times),
                states: one.states.saturating_add(1).saturating_mul(times),
            }
        }
        HirKind::Capture(capture) => {
            let one = size_of(&capture.sub);
            Size { bytes: one.bytes.saturating_add(128), states: one.states.saturating_add(1) }
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}
