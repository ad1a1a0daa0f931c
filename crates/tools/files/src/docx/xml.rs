//! Reads a part's XML in one pass, with limits.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{DocxError, limits};

/// An item of the pass.
pub enum Tag<'e> {
    Start(Element<'e>),
    /// The local name. Each start has an end; an empty element has one too.
    End(&'e str),
    Text(Cow<'e, str>),
}

pub struct Element<'e> {
    /// The name without its prefix.
    pub local: &'e str,
    start: &'e BytesStart<'e>,
}

impl Element<'_> {
    /// The attribute with this local name, whatever its prefix.
    pub fn attribute(&self, local: &str) -> Option<String> {
        // Without the check for duplicate names: its cost is quadratic in their number.
        let mut attributes = self.start.attributes();
        let found = attributes.with_checks(false).flatten().find(|one| after_prefix(one.key.as_ref()) == local)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(Cow::into_owned)
    }
}

pub struct Walk<'p> {
    /// The part's name, for messages.
    pub part: &'p str,
}

impl Walk<'_> {
    pub fn through<R: BufRead>(
        &self,
        reader: R,
        mut each: impl FnMut(Tag<'_>) -> Result<(), DocxError>,
    ) -> Result<(), DocxError> {
        let mut reader = Reader::from_reader(reader);
        let mut buffer = Vec::new();
        let mut depth = 0_usize;
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer).map_err(|error| self.broken(&error))? {
                Event::Start(start) => {
                    depth += 1;
                    if depth > limits::DEPTH {
                        return Err(DocxError::TooDeep);
                    }
                    each(Tag::Start(element(&start)))?;
                }
                Event::Empty(start) => {
                    let element = element(&start);
                    let local = element.local;
                    each(Tag::Start(element))?;
                    each(Tag::End(local))?;
                }
                Event::End(end) => {
                    depth = depth.saturating_sub(1);
                    each(Tag::End(after_prefix(end.name().as_ref())))?;
                }
                Event::Text(text) => each(Tag::Text(text.xml10_content()))?,
                Event::CData(text) => each(Tag::Text(text.xml10_content()))?,
                Event::GeneralRef(reference) => {
                    let c = match reference.resolve_char_ref().map_err(|error| self.broken(&error))? {
                        Some(c) => c,
                        None => self.predefined(&reference.xml10_content())?,
                    };
                    each(Tag::Text(c.to_string().into()))?;
                }
                Event::DocType(_) => return Err(DocxError::Dtd(self.part.to_owned())),
                Event::Eof => return if depth == 0 { Ok(()) } else { Err(self.ends_early()) },
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    fn predefined(&self, name: &str) -> Result<char, DocxError> {
        match name {
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "amp" => Ok('&'),
            "apos" => Ok('\''),
            "quot" => Ok('"'),
            _ => Err(DocxError::Xml { part: self.part.to_owned(), error: "it has an undefined entity".into() }),
        }
    }

    fn broken(&self, error: &quick_xml::Error) -> DocxError {
        match error {
            quick_xml::Error::Io(error) if error.kind() == std::io::ErrorKind::FileTooLarge => DocxError::TooLarge,
            quick_xml::Error::Io(error) => DocxError::Io(std::io::Error::new(error.kind(), error.to_string())),
            // The library's message can quote the part at length.
            other => DocxError::Xml {
                part: self.part.to_owned(),
                error: other.to_string().chars().filter(|c| !c.is_control()).take(200).collect(),
            },
        }
    }

    fn ends_early(&self) -> DocxError {
        DocxError::Xml { part: self.part.to_owned(), error: "it is truncated".into() }
    }
}

fn element<'e>(start: &'e BytesStart<'e>) -> Element<'e> {
    Element { local: start.local_name().into_inner(), start }
}

fn after_prefix(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}
