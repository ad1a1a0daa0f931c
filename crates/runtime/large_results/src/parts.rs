//! A result in chunks: its text or document, split, with an outline.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use text_splitter::Characters;

use super::headings::{Heading, headings};
use super::json::{self, Begin, Mark, Piece};
use super::json_path::{JsonPathStep, written};
use super::json_text;
use super::outline::{Section, flat, nested};
use super::text;
use crate::excerpt::{at_most, one_line};

/// The maximum length of a chunk's description in the table, in characters.
const MAX_ABOUT: usize = 160;

pub(crate) struct Split {
    pub parts: Vec<SplitChunk>,
    pub outline: Vec<Section>,
    pub layout: Layout,
    /// Of the whole text, or of the whole document as compact JSON.
    pub characters: usize,
}

pub(crate) struct SplitChunk {
    /// A string for a text, else a JSON document.
    pub value: Value,
    pub characters: usize,
    /// A short description of its content.
    pub about: String,
}

/// How the chunks form the whole. It is stored with the index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Layout {
    /// Consecutive texts; where each starts, in characters.
    Text { starts: Vec<usize>, characters: usize },
    /// Documents, each of which continues where the previous one ended.
    Json { begins: Vec<Begin> },
}

impl Layout {
    /// The number of texts or documents.
    pub fn parts(&self) -> usize {
        match self {
            Self::Text { starts, .. } => starts.len(),
            Self::Json { begins } => begins.len(),
        }
    }
}

/// Splits a result into chunks of at most `most` characters.
pub(crate) fn split(result: &Value, most: usize) -> Split {
    match result {
        Value::String(text) => {
            let document = json_text::document(text);
            document.and_then(|document| split_document(&document, most)).unwrap_or_else(|| split_text(text, most))
        }
        document => split_document(document, most).unwrap_or_else(|| split_text(&document.to_string(), most)),
    }
}

/// `None` if it has no structure to split along.
fn split_document(document: &Value, most: usize) -> Option<Split> {
    let (pieces, marks) = json::split(document, most).ok()?;
    (!pieces.is_empty()).then(|| split_json(document, pieces, &marks))
}

fn split_text(whole: &str, most: usize) -> Split {
    of_pieces(whole, &text::split(whole, most, &Characters))
}

/// Splits a page by its sections.
pub(crate) fn split_page(whole: &str, most: usize) -> Split {
    of_pieces(whole, &text::sections(whole, most, &Characters))
}

fn of_pieces(whole: &str, pieces: &[&str]) -> Split {
    let headings = headings(whole);
    let mut bounds = Vec::with_capacity(pieces.len());
    let (mut byte, mut character) = (0, 0);
    for piece in pieces {
        let characters = piece.chars().count();
        bounds.push(Bound { byte, start: character, characters });
        byte += piece.len();
        character += characters;
    }
    let (outline, chunk_descriptions) =
        if headings.is_empty() { untitled(pieces, &bounds) } else { titled(whole, &headings, pieces, &bounds) };
    let parts = pieces.iter().zip(&bounds).zip(chunk_descriptions).map(|((piece, bound), about)| SplitChunk {
        value: (*piece).into(),
        characters: bound.characters,
        about,
    });
    Split {
        parts: parts.collect(),
        outline,
        layout: Layout::Text { starts: bounds.iter().map(|bound| bound.start).collect(), characters: character },
        characters: character,
    }
}

struct Bound {
    byte: usize,
    start: usize,
    characters: usize,
}

/// A text without headings: each chunk is described by its first line.
fn untitled(pieces: &[&str], bounds: &[Bound]) -> (Vec<Section>, Vec<String>) {
    let chunk_descriptions: Vec<String> = pieces.iter().map(|piece| first_line(piece)).collect();
    let section = |(index, (title, bound)): (usize, (&String, &Bound))| Section {
        title: title.clone(),
        chunk: index + 1,
        start: Some(bound.start),
        path: None,
        sections: Vec::new(),
    };
    (chunk_descriptions.iter().zip(bounds).enumerate().map(section).collect(), chunk_descriptions)
}

fn titled(whole: &str, headings: &[Heading], pieces: &[&str], bounds: &[Bound]) -> (Vec<Section>, Vec<String>) {
    let mut sections = Vec::new();
    let mut inside: Vec<Vec<&Heading>> = vec![Vec::new(); pieces.len()];
    for heading in headings {
        let chunk = bounds.partition_point(|bound| bound.byte <= heading.at);
        let Some(bound) = chunk.checked_sub(1).and_then(|index| bounds.get(index)) else { continue };
        let start = bound.start + whole[bound.byte..heading.at].chars().count();
        inside[chunk - 1].push(heading);
        let title = heading.title.clone();
        sections.push((heading.level, Section { title, chunk, start: Some(start), path: None, sections: Vec::new() }));
    }
    let about = |(piece, headings): (&&str, &Vec<&Heading>)| {
        let begins_with_heading = headings.first().is_some_and(|heading| heading.at <= offset(whole, piece));
        let beginning = if begins_with_heading { None } else { Some(at_most(&first_line(piece), 60)) };
        titles(beginning.as_deref(), headings)
    };
    let chunk_descriptions = pieces.iter().zip(&inside).map(about).collect();
    (nested(sections), chunk_descriptions)
}

/// The titles of as many levels as fit, at least the highest level.
fn titles(beginning: Option<&str>, headings: &[&Heading]) -> String {
    let of_levels = |deepest: usize| {
        let titles = headings.iter().filter(|heading| heading.level <= deepest).map(|heading| heading.title.as_str());
        beginning.into_iter().chain(titles).collect::<Vec<_>>().join(" · ")
    };
    let highest = headings.iter().map(|heading| heading.level).min().unwrap_or(1);
    let fitting = (highest..=6).rev().map(of_levels).find(|about| about.chars().count() <= MAX_ABOUT);
    fitting.unwrap_or_else(|| at_most(&of_levels(highest), MAX_ABOUT))
}

/// Where a piece starts in the text that it was cut from, without leading white space.
fn offset(whole: &str, piece: &str) -> usize {
    piece.as_ptr() as usize - whole.as_ptr() as usize + (piece.len() - piece.trim_start().len())
}

fn first_line(piece: &str) -> String {
    let line = piece.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_default();
    at_most(&line, 100)
}

fn split_json(document: &Value, pieces: Vec<Piece>, marks: &[Mark]) -> Split {
    let section = |mark: &Mark| {
        let path = &mark.begin.path;
        let section = Section {
            title: title(document, &mark.begin),
            chunk: mark.chunk,
            start: None,
            path: Some(written(path)),
            sections: Vec::new(),
        };
        // The rest of a split text is one level below the text.
        (path.len() + usize::from(mark.begin.characters.is_some()), section)
    };
    let outline = nested(marks.iter().map(section).collect());
    let chunk_descriptions = chunk_descriptions(&pieces, &outline);
    let begins: Vec<Begin> = pieces.iter().map(|piece| piece.begin.clone()).collect();
    let parts = pieces.into_iter().zip(chunk_descriptions).map(|(piece, about)| SplitChunk {
        value: piece.value,
        characters: piece.characters,
        about,
    });
    Split {
        parts: parts.collect(),
        outline,
        layout: Layout::Json { begins },
        characters: super::json_size::json_chars(document),
    }
}

/// Describes each chunk: where it starts and ends, and what else starts in it.
fn chunk_descriptions(pieces: &[Piece], outline: &[Section]) -> Vec<String> {
    let all = flat(outline);
    let about = |(index, piece): (usize, &Piece)| {
        let (from, to) = (written(&piece.begin.path), written(&piece.end));
        let mut about = from.clone();
        if let Some(before @ 1..) = piece.begin.characters {
            about = format!("{from} from character {before}");
        }
        if from != to {
            about = format!("{about} to {to}");
        }
        for section in all.iter().filter(|section| section.chunk == index + 1) {
            if section.path.as_ref().is_some_and(|path| *path != from && *path != to) {
                about.push_str(" · ");
                about.push_str(&section.title);
            }
        }
        at_most(&one_line(&about), MAX_ABOUT)
    };
    pieces.iter().enumerate().map(about).collect()
}

/// For example `items: 250 elements`.
fn title(document: &Value, begin: &Begin) -> String {
    let name = match begin.path.last() {
        Some(JsonPathStep::Key(key)) => at_most(&one_line(key), 60),
        Some(JsonPathStep::Index(index)) => format!("[{index}]"),
        None => "$".into(),
    };
    if let Some(before) = begin.characters {
        return format!("{name}, from character {before}");
    }
    let value = begin.path.iter().try_fold(document, |value, step| match step {
        JsonPathStep::Key(key) => value.get(key),
        JsonPathStep::Index(index) => value.get(index),
    });
    match value {
        Some(Value::Array(items)) => format!("{name}: {} elements", items.len()),
        Some(Value::Object(members)) => format!("{name}: {} members", members.len()),
        Some(Value::String(text)) => format!("{name}: text, {} characters", text.chars().count()),
        Some(other) => format!("{name}: {other}"),
        None => name,
    }
}
