//! Whether the items of a list are numbered.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::DocxError;
use super::package::{MainPart, Package};
use super::xml::Tag;

#[derive(Debug, Default)]
pub struct Numbering {
    /// The definition of each list.
    lists: HashMap<String, String>,
    /// The format of each level of a definition.
    formats: HashMap<(String, usize), String>,
}

impl Numbering {
    pub fn read<R: Read + Seek>(package: &mut Package<R>, main: &MainPart) -> Result<Self, DocxError> {
        let mut numbering = Self::default();
        let (mut definition, mut level, mut list) = (None, None, None);
        let Some(path) = main.related("numbering") else { return Ok(numbering) };
        package.walk(&path, |tag| {
            let Tag::Start(element) = tag else { return Ok(()) };
            match element.local {
                "abstractNum" => definition = element.attribute("abstractNumId"),
                "lvl" => level = element.attribute("ilvl").and_then(|level| level.parse::<usize>().ok()),
                "numFmt" => {
                    if let (Some(definition), Some(level), Some(format)) =
                        (&definition, level, element.attribute("val"))
                    {
                        numbering.formats.entry((definition.clone(), level)).or_insert(format);
                    }
                }
                "num" => (definition, list) = (None, element.attribute("numId")),
                "abstractNumId" => {
                    if let (Some(list), Some(of)) = (list.take(), element.attribute("val")) {
                        numbering.lists.insert(list, of);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(numbering)
    }

    /// The marker of an item; `None` if the format has none, or for list 0, which means no list.
    pub fn marker(&self, list: &str, level: usize) -> Option<&'static str> {
        if list == "0" {
            return None;
        }
        let format = self.lists.get(list).and_then(|definition| self.formats.get(&(definition.clone(), level)));
        match format.map(String::as_str) {
            Some("bullet") | None => Some("- "),
            Some("none") => None,
            Some(_) => Some("1. "),
        }
    }
}
