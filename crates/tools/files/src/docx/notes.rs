//! Footnotes and endnotes, after the text.

use std::io::{Read, Seek};

use super::body::{Builder, Context};
use super::package::{MainPart, Package};
use super::xml::Tag;
use super::{DocxError, limits};

/// The part, its element, and the prefix of a note's id.
const KINDS: [(&str, &str, &str); 2] = [("footnotes", "footnote", ""), ("endnotes", "endnote", "e")];

pub fn append<R: Read + Seek>(
    package: &mut Package<R>,
    main: &MainPart,
    context: &Context<'_>,
    text: &mut String,
) -> Result<(), DocxError> {
    for (part, name, prefix) in KINDS {
        let Some(path) = main.related(part) else { continue };
        let mut open: Option<(String, Builder<'_>)> = None;
        let mut is_first = true;
        package.walk(&path, |tag| {
            match tag {
                // Separator lines are stored as notes with a type.
                Tag::Start(element) if element.local == name => {
                    let is_line = element.attribute("type").is_some_and(|kind| kind != "normal");
                    let id = element.attribute("id").filter(|_| !is_line);
                    open = id.map(|id| (id, Builder::new(*context)));
                }
                Tag::End(local) if local == name => {
                    if let Some((id, builder)) = open.take() {
                        let note = builder.finish().trim().replace("\n\n", "\n").replace('\n', "\n  ");
                        text.extend([if is_first { "\n" } else { "" }, "[^", prefix, &id, "]: ", &note, "\n"]);
                        is_first = false;
                    }
                    if text.len() > 2 * limits::TEXT {
                        return Err(DocxError::TooMuchText);
                    }
                }
                tag => {
                    if let Some((_, builder)) = &mut open {
                        return builder.take(tag);
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
