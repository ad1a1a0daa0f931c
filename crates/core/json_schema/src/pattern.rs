//! The cost of a pattern, computed from its syntax tree before it is compiled: memory, and time for
//! each byte of a text.

use std::collections::HashMap;
use std::sync::Arc;

use rcrt_breadcrumb::Violations;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

use crate::graph::{Graph, Node, field};
use crate::matching::{CACHES, CompiledPatterns, Pattern};

/// The most bytes of one pattern's text.
const MAX_PATTERN: usize = 4096;
/// The most bytes of all patterns' texts in one schema.
const MAX_TEXT: usize = 64 * 1024;
/// The most `\cX` in one pattern. The translation to Rust's syntax starts again at each.
const MAX_CONTROLS: usize = 16;
/// The approximate limit in bytes of one schema's patterns.
const MAX_COMPILED: u64 = 4 * 1024 * 1024;
/// The approximate limit in bytes of the caches that stay after a check.
const MAX_KEPT: u64 = 16 * 1024 * 1024;
/// The most bytes of the lazy DFA of one expression of `patternProperties`.
pub(crate) const KEPT_DFA_BYTES: usize = 16 * 1024;
const NOT_SUPPORTED: &str = "is not a supported regular expression (linear time: no lookaround, no back references)";

/// The cost of a schema's patterns.
#[derive(Default)]
pub(crate) struct Patterns {
    /// Approximate bytes of all compiled patterns, with the caches that stay after a check.
    pub bytes: u64,
    /// For each subschema, what its `pattern` and its `patternProperties` cost.
    pub matching: Vec<Matching>,
    /// Steps of each check before its first match.
    pub preparation: u64,
}

/// The cost to match a text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Matching {
    /// The states that each byte can be matched against.
    pub states: u64,
    /// Steps before the first byte.
    pub preparation: u64,
}

#[derive(Default, Clone, Copy)]
struct Size {
    bytes: u64,
    states: u64,
    /// States of the automaton over bytes: a character beyond ASCII has several.
    of_bytes: u64,
    groups: u64,
}

impl Size {
    /// Bytes of the caches that the validator keeps for one expression of `patternProperties`: one
    /// for the first thread, and one for each of eight groups of threads. A cache has two lazy
    /// DFAs, positions for each state and group, and for texts of up to 128 bytes a stack of
    /// branches to try.
    fn kept(self) -> u64 {
        let of_state = 32 * (self.groups + 2) + 24 * 128;
        9 * (2 * KEPT_DFA_BYTES as u64).saturating_add(self.of_bytes.saturating_mul(of_state))
    }

    /// Steps to create a cache.
    fn preparation(self) -> u64 {
        128 + self.bytes / 256
    }
}

/// Measures the patterns of a schema, or returns the one that exceeds a limit.
pub(crate) fn measure(graph: &Graph<'_>) -> Result<Patterns, Violations> {
    // A text that occurs several times is compiled once.
    let mut known: HashMap<&str, Size> = HashMap::new();
    let mut found = Patterns::default();
    let (mut kept, mut text) = (0_u64, 0);
    let tracks_names = graph.nodes.iter().any(|node| node.schema.get("unevaluatedProperties").is_some());
    for node in &graph.nodes {
        let mut of_node = Matching::default();
        for (keyword, pattern) in patterns(node.schema) {
            let refused = |message: String| Violations::one(place(node, keyword), message);
            let size = match known.get(pattern) {
                Some(size) => *size,
                None => {
                    let size = size_of_pattern(pattern).map_err(refused)?;
                    known.insert(pattern, size);
                    text += pattern.len();
                    found.bytes = found.bytes.saturating_add(size.bytes);
                    size
                }
            };
            // Additional properties are matched against the patterns of properties once more.
            let times = if keyword == "pattern" { 1 } else { 2 };
            of_node.states = of_node.states.saturating_add(size.states.saturating_mul(times));
            if keyword == "pattern" {
                of_node.preparation = size.preparation();
            } else if tracks_names || !are_literal(node) {
                kept = kept.saturating_add(size.kept());
            }
            if text > MAX_TEXT || found.bytes > MAX_COMPILED || kept > MAX_KEPT {
                let message = format!(
                    "exceeds the limit for patterns: the patterns of a schema can have {MAX_TEXT} bytes of text and about \
                     {MAX_COMPILED} bytes when compiled, and those of patternProperties about {MAX_KEPT} bytes of \
                     caches; classes such as \\p{{L}} under a repetition take most"
                );
                return Err(refused(message));
            }
        }
        found.matching.push(of_node);
    }
    found.bytes = found.bytes.saturating_add(kept);
    if known.len() <= CACHES {
        // Each cache is created once for a check.
        found.preparation = found.matching.iter_mut().map(|one| std::mem::take(&mut one.preparation)).sum();
    }
    Ok(found)
}

/// Compiles the values of `pattern`, which were measured before.
pub(crate) fn compile(graph: &Graph<'_>) -> Result<CompiledPatterns, Violations> {
    let mut compiled = CompiledPatterns::new();
    for node in &graph.nodes {
        let Some(pattern) = node.schema.get("pattern").and_then(Value::as_str) else { continue };
        if !compiled.contains_key(pattern) {
            let translated = jsonschema_regex::to_rust_regex(pattern).ok();
            let one = translated.and_then(|translated| Pattern::compile(pattern, &translated));
            let one = one.ok_or_else(|| Violations::one(place(node, "pattern"), NOT_SUPPORTED))?;
            compiled.insert(pattern.to_owned(), Arc::new(one));
        }
    }
    Ok(compiled)
}

fn place(node: &Node<'_>, keyword: &str) -> String {
    field(&format!("{}/{keyword}", node.pointer))
}

/// Whether the validator compares all names of `patternProperties` without expressions.
fn are_literal(node: &Node<'_>) -> bool {
    patterns(node.schema)
        .filter(|(keyword, _)| *keyword == "patternProperties")
        .all(|(_, pattern)| jsonschema_regex::analyze_pattern(pattern).is_some())
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

fn leaf(bytes: u64, states: u64) -> Size {
    Size { bytes, states, of_bytes: states, groups: 0 }
}

/// The parser bounds the depth of the tree.
fn size_of(hir: &Hir) -> Size {
    let sum = |parts: &[Hir]| {
        parts.iter().map(size_of).fold(leaf(64, 1), |sum, part| Size {
            bytes: sum.bytes.saturating_add(part.bytes),
            states: sum.states.saturating_add(part.states),
            of_bytes: sum.of_bytes.saturating_add(part.of_bytes),
            groups: sum.groups + part.groups,
        })
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => leaf(64, 1),
        HirKind::Literal(literal) => {
            let length = literal.0.len() as u64;
            leaf(64 * length, length)
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().len() as u64;
            let of_bytes = if class.is_ascii() { 1 } else { 2 * ranges };
            Size { of_bytes, ..leaf(64 + 128 * ranges, 2) }
        }
        HirKind::Class(Class::Bytes(class)) => leaf(64 + 16 * class.ranges().len() as u64, 1),
        HirKind::Repetition(repetition) => {
            let one = size_of(&repetition.sub);
            let times = u64::from(repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1));
            Size {
                bytes: one.bytes.saturating_add(64).saturating_mul(times),
                states: one.states.saturating_add(1).saturating_mul(times),
                of_bytes: one.of_bytes.saturating_add(1).saturating_mul(times),
                groups: one.groups,
            }
        }
        HirKind::Capture(capture) => {
            let one = size_of(&capture.sub);
            Size {
                bytes: one.bytes.saturating_add(128),
                states: one.states.saturating_add(1),
                of_bytes: one.of_bytes.saturating_add(2),
                groups: one.groups + 1,
            }
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}
