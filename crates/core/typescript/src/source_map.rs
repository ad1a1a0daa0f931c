//! Maps positions in the emitted JavaScript back to the author's source.

/// Maps positions in the emitted JavaScript to the source. Lines and columns start at 1, and
/// columns count UTF-16 units, as in V8.
#[derive(Debug, Clone)]
pub struct SourceMap {
    mapping: Mapping,
}

#[derive(Debug, Clone)]
enum Mapping {
    Identity,
    Segments(Vec<Segment>),
}

/// One mapped position. Sorted by `(line, column)` of the emitted text; all numbers start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub line: u32,
    pub column: u32,
    pub source_line: u32,
    pub source_column: u32,
}

impl SourceMap {
    /// The map of text that was not changed.
    pub fn identity() -> Self {
        Self { mapping: Mapping::Identity }
    }

    pub(crate) fn from_segments(mut segments: Vec<Segment>) -> Self {
        segments.sort_by_key(|segment| (segment.line, segment.column));
        Self { mapping: Mapping::Segments(segments) }
    }

    /// The position in the source for a position in the JavaScript, both counted from 1. `None` if
    /// it has no source position.
    pub fn original(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        let (line, column) = (line.checked_sub(1)?, column.checked_sub(1)?);
        let Mapping::Segments(segments) = &self.mapping else {
            return Some((line.checked_add(1)?, column.checked_add(1)?));
        };
        let after = segments.partition_point(|segment| (segment.line, segment.column) <= (line, column));
        let nearest = segments.get(after.checked_sub(1)?).filter(|segment| segment.line == line)?;
        Some((nearest.source_line.checked_add(1)?, nearest.source_column.checked_add(1)?))
    }
}
