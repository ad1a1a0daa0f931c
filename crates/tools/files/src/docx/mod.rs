//! Word documents (ECMA-376, WordprocessingML) as Markdown: headings, lists, tables, links, notes.
//!
//! A document is untrusted: the unpacked size, the depth of elements and the length of the text are
//! limited. A document type definition, which could expand entities, is refused.

mod body;
mod notes;
mod numbering;
mod package;
mod styles;
mod table;
mod xml;

use std::collections::HashMap;
use std::io::{Read, Seek};

use package::{MainPart, Package};

/// The media type.
pub const TYPE: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Limits for a document.
mod limits {
    /// Bytes of the file; most of them are usually pictures.
    pub const FILE: u64 = 128 * 1024 * 1024;
    /// Bytes of the archive's directory.
    pub const DIRECTORY: u64 = 8 * 1024 * 1024;
    /// Bytes that are unpacked, for all parts together.
    pub const UNPACKED: u64 = 64 * 1024 * 1024;
    /// Bytes of the resulting text.
    pub const TEXT: usize = 16 * 1024 * 1024;
    /// Nesting depth of elements. Word's own documents have a few dozen.
    pub const DEPTH: usize = 256;
    /// Characters of a link's address.
    pub const ADDRESS: usize = 2000;
}

#[derive(Debug, thiserror::Error)]
pub enum DocxError {
    #[error("the file has {0} bytes; at most {limit} are allowed", limit = limits::FILE)]
    FileTooLarge(u64),
    #[error("it is not a Word archive: {0}")]
    Archive(#[from] zip::result::ZipError),
    #[error("its part {0} is missing")]
    Missing(String),
    #[error("its part {part} is broken: {error}")]
    Xml { part: String, error: String },
    #[error("its part {0} has a document type definition, which Word never writes")]
    Dtd(String),
    #[error("its elements are nested more than {limit} deep", limit = limits::DEPTH)]
    TooDeep,
    #[error("unpacked it has more than {limit} bytes", limit = limits::UNPACKED)]
    TooLarge,
    #[error("its text has more than {limit} bytes", limit = limits::TEXT)]
    TooMuchText,
    #[error("it cannot be read: {0}")]
    Io(std::io::Error),
}

/// The document's text. `bytes` is the size of the file.
pub fn markdown<R: Read + Seek>(file: R, bytes: u64) -> Result<String, DocxError> {
    let mut package = Package::open(file, bytes)?;
    let main = package.main_part()?;
    let styles = styles::Styles::read(&mut package, &main)?;
    let numbering = numbering::Numbering::read(&mut package, &main)?;
    let links = Links::of(&main);
    let context = body::Context { styles: &styles, numbering: &numbering, links: &links };
    let mut text = body::read(&mut package, &main.path, &context)?;
    notes::append(&mut package, &main, &context, &mut text)?;
    Ok(text)
}

/// The targets of links.
#[derive(Debug, Default)]
struct Links(HashMap<String, String>);

impl Links {
    fn of(main: &MainPart) -> Self {
        let links = main.relations.iter().filter(|relation| {
            relation.kind == "hyperlink" && relation.is_external && relation.target.chars().count() <= limits::ADDRESS
        });
        Self(links.map(|relation| (relation.id.clone(), relation.target.clone())).collect())
    }

    fn address(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}
