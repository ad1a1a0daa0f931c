//! The outline of a result: its sections, and the chunk in which each starts.

use serde::{Deserialize, Serialize};

/// A heading of a text, or a member of a JSON document, with the sections below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub title: String,
    /// The number of the chunk in which it starts, from 1.
    pub chunk: usize,
    /// Characters from the start of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// The path in a JSON document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
}

/// Turns a flat list of sections with levels into a tree. The parent of a section is the last
/// earlier one with a lower level.
pub(crate) fn nested(flat: Vec<(usize, Section)>) -> Vec<Section> {
    let mut open: Vec<(usize, Section)> = Vec::new();
    let mut roots = Vec::new();
    for (level, section) in flat {
        while open.last().is_some_and(|(last, _)| *last >= level) {
            close(&mut open, &mut roots);
        }
        open.push((level, section));
    }
    while !open.is_empty() {
        close(&mut open, &mut roots);
    }
    roots
}

fn close(open: &mut Vec<(usize, Section)>, roots: &mut Vec<Section>) {
    if let Some((_, section)) = open.pop() {
        match open.last_mut() {
            Some((_, outer)) => outer.sections.push(section),
            None => roots.push(section),
        }
    }
}

pub(crate) fn depth(sections: &[Section]) -> usize {
    sections.iter().map(|section| 1 + depth(&section.sections)).max().unwrap_or(0)
}

/// Drops sections deeper than this many levels.
pub(crate) fn cut_below(sections: &mut [Section], levels: usize) {
    for section in sections {
        if levels <= 1 {
            section.sections.clear();
        } else {
            cut_below(&mut section.sections, levels - 1);
        }
    }
}

/// Depth first, parents before children.
pub(crate) fn flat(sections: &[Section]) -> Vec<&Section> {
    let mut all = Vec::new();
    for section in sections {
        all.push(section);
        all.extend(flat(&section.sections));
    }
    all
}
