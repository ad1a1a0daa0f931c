//! Splits a JSON document along its structure. Each chunk is a document with a part of the whole
//! one and everything that encloses it: objects continue with their next members, arrays with their
//! next elements, long texts with their next characters. A member or element stays whole if it fits
//! into a chunk.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json_path::JsonPathStep;
use super::json_size::{Escaped, escaped_chars, json_chars};
use super::text;

/// Where a piece starts in the whole document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    pub path: Vec<JsonPathStep>,
    /// For a split text, how many of its characters are in earlier pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub value: Value,
    /// The size as compact JSON.
    pub characters: usize,
    pub begin: Begin,
    /// The path of its last member or element.
    pub end: Vec<JsonPathStep>,
}

/// A path that the outline lists, and the number of the piece in which it starts, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub begin: Begin,
    pub chunk: usize,
}

/// The document has keys too long, or is nested too deep, to fit into a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsplittable;

/// How deep the outline lists members, and how many.
const MARKED_DEPTH: usize = 4;
const MOST_MARKS: usize = 1_000;

/// Pieces of at most `most` characters, and the entries of an outline.
pub(crate) fn split(document: &Value, most: usize) -> Result<(Vec<Piece>, Vec<Mark>), Unsplittable> {
    let mut splitter = Splitter { most, pieces: Vec::new(), current: None, marks: Vec::new(), marked: HashSet::new() };
    splitter.fill(document, &mut Vec::new())?;
    splitter.flush();
    Ok((splitter.pieces, splitter.marks))
}

struct Splitter {
    most: usize,
    pieces: Vec<Piece>,
    /// The piece that is currently filled.
    current: Option<Piece>,
    marks: Vec<Mark>,
    marked: HashSet<Vec<JsonPathStep>>,
}

impl Splitter {
    /// Adds the parts of a value that is too large for one piece.
    fn fill(&mut self, value: &Value, path: &mut Vec<JsonPathStep>) -> Result<(), Unsplittable> {
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.child(JsonPathStep::Index(index), item, path)),
            Value::Object(members) => {
                members.iter().try_for_each(|(key, member)| self.child(JsonPathStep::Key(key.clone()), member, path))
            }
            Value::String(text) => self.text(text, path),
            _ => Err(Unsplittable),
        }
    }

    fn child(&mut self, step: JsonPathStep, value: &Value, path: &mut Vec<JsonPathStep>) -> Result<(), Unsplittable> {
        let size = step_chars(&step) + json_chars(value);
        if alone(path) + size <= self.most {
            if self.size_with(path, size) > self.most {
                self.flush();
            }
            self.add(path, step, value.clone(), size, None)
        } else {
            path.push(step);
            self.fill(value, path)?;
            path.pop();
            Ok(())
        }
    }

    fn text(&mut self, text: &str, path: &[JsonPathStep]) -> Result<(), Unsplittable> {
        let (step, container) = path.split_last().ok_or(Unsplittable)?;
        let around = step_chars(step) + 2;
        let least = self.most / 4;
        let room = self.most.saturating_sub(alone(container) + around);
        if room < least {
            return Err(Unsplittable);
        }
        let mut rest = text;
        let mut before = 0;
        let left = self.most.saturating_sub(self.size_with(container, around));
        if self.current.is_some() && left >= least {
            let piece = text::first(rest, left, &Escaped);
            self.add(container, step.clone(), piece.into(), around + escaped_chars(piece), Some(0))?;
            before = piece.chars().count();
            rest = &rest[piece.len()..];
        }
        for piece in text::split(rest, room, &Escaped) {
            self.flush();
            self.add(container, step.clone(), piece.into(), around + escaped_chars(piece), Some(before))?;
            before += piece.chars().count();
        }
        Ok(())
    }

    /// The size of the current piece with another child of this size in the container at `path`.
    fn size_with(&self, path: &[JsonPathStep], child: usize) -> usize {
        match &self.current {
            None => alone(path) + child,
            Some(open) => {
                let new = path.iter().skip(common(&open.end, path)).map(|step| step_chars(step) + 2);
                open.characters + 1 + new.sum::<usize>() + child
            }
        }
    }

    fn add(
        &mut self,
        container: &[JsonPathStep],
        step: JsonPathStep,
        value: Value,
        size: usize,
        characters: Option<usize>,
    ) -> Result<(), Unsplittable> {
        let size = self.size_with(container, size);
        let mut path = container.to_vec();
        path.push(step);
        self.mark(&path, characters);
        let open = self.current.get_or_insert_with(|| {
            let begin = Begin { path: path.clone(), characters };
            Piece { value: empty(&path[0]), characters: 0, begin, end: Vec::new() }
        });
        insert(&mut open.value, &path, common(&open.end, container), value)?;
        open.characters = size;
        open.end = path;
        Ok(())
    }

    /// Records the entries of the outline: members near the root, and where pieces start.
    fn mark(&mut self, path: &[JsonPathStep], characters: Option<usize>) {
        let chunk = self.pieces.len() + 1;
        let keys = path.iter().take(MARKED_DEPTH).take_while(|step| matches!(step, JsonPathStep::Key(_))).count();
        for depth in 1..=keys {
            self.mark_once(&path[..depth], None, chunk);
        }
        if self.current.is_none() {
            match path.iter().position(|step| matches!(step, JsonPathStep::Index(_))) {
                Some(index) => self.mark_once(&path[..=index], None, chunk),
                None => self.mark_once(path, characters.filter(|before| *before > 0), chunk),
            }
        }
    }

    fn mark_once(&mut self, path: &[JsonPathStep], characters: Option<usize>, chunk: usize) {
        if self.marks.len() < MOST_MARKS && (characters.is_some() || self.marked.insert(path.to_vec())) {
            self.marks.push(Mark { begin: Begin { path: path.to_vec(), characters }, chunk });
        }
    }

    fn flush(&mut self) {
        self.pieces.extend(self.current.take());
    }
}

/// What a step adds to its child: a key and a colon.
fn step_chars(step: &JsonPathStep) -> usize {
    match step {
        JsonPathStep::Key(key) => escaped_chars(key) + 3,
        JsonPathStep::Index(_) => 0,
    }
}

/// The size of a piece that has only the containers on this path.
fn alone(path: &[JsonPathStep]) -> usize {
    2 + path.iter().map(|step| step_chars(step) + 2).sum::<usize>()
}

fn common(one: &[JsonPathStep], other: &[JsonPathStep]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// An empty container for the step.
fn empty(step: &JsonPathStep) -> Value {
    match step {
        JsonPathStep::Index(_) => Value::Array(Vec::new()),
        JsonPathStep::Key(_) => Value::Object(Map::new()),
    }
}

/// Inserts the value at `path`. The containers of the first `open` steps exist, as the last
/// children of their parents.
fn insert(root: &mut Value, path: &[JsonPathStep], open: usize, value: Value) -> Result<(), Unsplittable> {
    let mut node = root;
    let mut value = Some(value);
    for (depth, step) in path.iter().enumerate() {
        if depth >= open {
            let child = match path.get(depth + 1) {
                Some(next) => empty(next),
                None => value.take().ok_or(Unsplittable)?,
            };
            match (&mut *node, step) {
                (Value::Array(items), JsonPathStep::Index(_)) => items.push(child),
                (Value::Object(members), JsonPathStep::Key(key)) => {
                    members.insert(key.clone(), child);
                }
                _ => return Err(Unsplittable),
            }
        }
        node = match (node, step) {
            (Value::Array(items), JsonPathStep::Index(_)) => items.last_mut().ok_or(Unsplittable)?,
            (Value::Object(members), JsonPathStep::Key(key)) => members.get_mut(key).ok_or(Unsplittable)?,
            _ => return Err(Unsplittable),
        };
    }
    Ok(())
}

/// Reassembles the document. `None` if the pieces do not form one.
pub(crate) fn join(pieces: impl IntoIterator<Item = (Begin, Value)>) -> Option<Value> {
    let mut pieces = pieces.into_iter();
    let (_, mut whole) = pieces.next()?;
    for (begin, piece) in pieces {
        merge(&mut whole, piece, &begin.path, begin.characters.is_some())?;
    }
    Some(whole)
}

/// `along` is the path to where the piece starts. The containers on it can exist already.
fn merge(into: &mut Value, piece: Value, along: &[JsonPathStep], inside_text: bool) -> Option<()> {
    let goes_on = along.len() > 1 || inside_text;
    match (into, piece) {
        (Value::Object(there), Value::Object(more)) => {
            for (index, (key, value)) in more.into_iter().enumerate() {
                match there.get_mut(&key) {
                    Some(begun) if index == 0 && goes_on => merge(begun, value, along.get(1..)?, inside_text)?,
                    _ => {
                        there.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(there), Value::Array(more)) => {
            let Some(JsonPathStep::Index(first)) = along.first() else { return None };
            for (index, value) in more.into_iter().enumerate() {
                match there.get_mut(*first) {
                    Some(begun) if index == 0 && goes_on => merge(begun, value, along.get(1..)?, inside_text)?,
                    _ => there.push(value),
                }
            }
        }
        (Value::String(there), Value::String(more)) => there.push_str(&more),
        _ => return None,
    }
    Some(())
}

/// Each scalar and each empty container of a piece, with its path in the whole document. Without a
/// beginning, the piece is the whole document.
pub fn leaves(begin: Option<&Begin>, piece: &Value, see: &mut impl FnMut(&[JsonPathStep], &Value)) {
    let mut leaf = |path: &[JsonPathStep], value: &Value| {
        let inner = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        if inner == 0 {
            see(path, value);
        }
    };
    walk(piece, &mut Vec::new(), begin.map(|begin| begin.path.as_slice()), &mut leaf);
}

/// Each value of a document, with its path.
pub fn leaves_and_containers(document: &Value, see: &mut impl FnMut(&[JsonPathStep], &Value)) {
    walk(document, &mut Vec::new(), None, see);
}

fn walk(
    value: &Value,
    path: &mut Vec<JsonPathStep>,
    along: Option<&[JsonPathStep]>,
    see: &mut impl FnMut(&[JsonPathStep], &Value),
) {
    see(path, value);
    // The containers around the start of a piece begin at its first index; all other arrays begin
    // at 0.
    let further = |index: usize| along.filter(|_| index == 0).and_then(|along| along.get(1..));
    match value {
        Value::Array(items) => {
            let before = match along.and_then(<[JsonPathStep]>::first) {
                Some(JsonPathStep::Index(index)) => *index,
                _ => 0,
            };
            for (index, item) in items.iter().enumerate() {
                path.push(JsonPathStep::Index(before + index));
                walk(item, path, further(index), see);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (index, (key, member)) in members.iter().enumerate() {
                path.push(JsonPathStep::Key(key.clone()));
                walk(member, path, further(index), see);
                path.pop();
            }
        }
        _ => {}
    }
}
