//! The archive: parts by name, unpacked with limits.

use std::cell::Cell;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;

use super::xml::{Tag, Walk};
use super::{DocxError, limits};

pub struct Package<R> {
    archive: ZipArchive<Bounded<R>>,
    /// Bytes that can still be unpacked.
    left: u64,
}

/// The part that holds the document's text.
pub struct MainPart {
    pub path: String,
    /// Its relations: id, kind (the last segment of its URI), target, and whether the target is
    /// external.
    pub relations: Vec<Relation>,
}

pub struct Relation {
    pub id: String,
    pub kind: String,
    pub target: String,
    pub is_external: bool,
}

impl MainPart {
    /// The path of the part with this relation to the document.
    pub fn related(&self, kind: &str) -> Option<String> {
        let relation = self.relations.iter().find(|relation| relation.kind == kind && !relation.is_external)?;
        Some(resolve(&self.path, &relation.target))
    }
}

/// A target is relative to the folder of the part that names it.
fn resolve(from: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

impl<R: Read + Seek> Package<R> {
    pub fn open(file: R, bytes: u64) -> Result<Self, DocxError> {
        if bytes > limits::FILE {
            return Err(DocxError::FileTooLarge(bytes));
        }
        let budget = Rc::new(Cell::new(limits::DIRECTORY));
        let archive = ZipArchive::new(Bounded { inner: file, budget: budget.clone() })?;
        // From here on only unpacked bytes count. Each byte of the file is read at most once.
        budget.set(u64::MAX);
        Ok(Self { archive, left: limits::UNPACKED })
    }

    pub fn main_part(&mut self) -> Result<MainPart, DocxError> {
        let root = self.relations("_rels/.rels")?.ok_or_else(|| DocxError::Missing("_rels/.rels".into()))?;
        let main = root.into_iter().find(|relation| relation.kind == "officeDocument");
        let path = main.map(|relation| resolve("", &relation.target));
        let path = path.ok_or_else(|| DocxError::Missing("officeDocument".into()))?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let relations = self.relations(&format!("{folder}_rels/{name}.rels"))?.unwrap_or_default();
        Ok(MainPart { path, relations })
    }

    fn relations(&mut self, path: &str) -> Result<Option<Vec<Relation>>, DocxError> {
        let mut relations = Vec::new();
        let is_there = self.walk(path, |tag| {
            if let Tag::Start(element) = tag
                && element.local == "Relationship"
            {
                let text = |name: &str| element.attribute(name).unwrap_or_default();
                relations.push(Relation {
                    id: text("Id"),
                    kind: text("Type").rsplit('/').next().unwrap_or_default().to_owned(),
                    target: text("Target"),
                    is_external: text("TargetMode") == "External",
                });
            }
            Ok(())
        })?;
        Ok(is_there.then_some(relations))
    }

    /// Reads a part; `false` if it does not exist.
    pub fn walk(&mut self, path: &str, each: impl FnMut(Tag<'_>) -> Result<(), DocxError>) -> Result<bool, DocxError> {
        let Some(index) = self.archive.index_for_name(path) else { return Ok(false) };
        let part = self.archive.by_index(index)?;
        let left = Rc::new(Cell::new(self.left));
        let reader = BufReader::new(Bounded { inner: part, budget: left.clone() });
        let walked = Walk { part: path }.through(reader, each);
        self.left = left.get();
        walked.map(|()| true)
    }
}

/// A reader that fails after this many bytes.
struct Bounded<R> {
    inner: R,
    budget: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let budget = self.budget.get();
        if budget == 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large"));
        }
        let most = usize::try_from(budget).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.budget.set(budget.saturating_sub(read as u64));
        Ok(read)
    }
}

impl<R: Seek> Seek for Bounded<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
