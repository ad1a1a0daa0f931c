//! Which styles make a paragraph a heading or a list item. Word translates the names of styles, so
//! their definitions are needed.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::DocxError;
use super::package::{MainPart, Package};
use super::xml::Tag;

/// The maximum length of a chain of base styles.
const CHAIN: usize = 16;

#[derive(Debug, Default)]
pub struct Styles(HashMap<String, Style>);

#[derive(Debug, Default)]
struct Style {
    based_on: Option<String>,
    heading: Option<u8>,
    list: ListLevel,
}

/// A paragraph's list and level, as far as the style or the paragraph defines them.
#[derive(Debug, Clone, Default)]
pub struct ListLevel {
    pub list: Option<String>,
    pub level: Option<usize>,
}

impl Styles {
    pub fn read<R: Read + Seek>(package: &mut Package<R>, main: &MainPart) -> Result<Self, DocxError> {
        let mut styles = HashMap::new();
        let mut open: Option<(String, Style)> = None;
        let Some(path) = main.related("styles") else { return Ok(Self::default()) };
        package.walk(&path, |tag| {
            match tag {
                Tag::Start(element) if element.local == "style" => {
                    open = element.attribute("styleId").map(|id| (id, Style::default()));
                }
                Tag::End("style") => styles.extend(open.take()),
                Tag::Start(element) => {
                    if let (Some((_, style)), Some(value)) = (&mut open, element.attribute("val")) {
                        match element.local {
                            "name" => style.heading = style.heading.or(heading_name(&value)),
                            "basedOn" => style.based_on = Some(value),
                            "outlineLvl" => style.heading = outline(&value).or(style.heading),
                            "numId" => style.list.list = Some(value),
                            "ilvl" => style.list.level = value.parse().ok(),
                            _ => {}
                        }
                    }
                }
                Tag::End(_) | Tag::Text(_) => {}
            }
            Ok(())
        })?;
        Ok(Self(styles))
    }

    /// The level, from 1 to 6.
    pub fn heading(&self, id: &str) -> Option<u8> {
        if self.0.is_empty() {
            return heading_name(id);
        }
        self.chain(id).find_map(|style| style.heading)
    }

    pub fn list(&self, id: &str) -> ListLevel {
        let list = self.chain(id).find_map(|style| style.list.list.clone());
        ListLevel { list, level: self.chain(id).find_map(|style| style.list.level) }
    }

    fn chain(&self, id: &str) -> impl Iterator<Item = &Style> {
        let first = self.0.get(id);
        std::iter::successors(first, |style| self.0.get(style.based_on.as_deref()?)).take(CHAIN)
    }
}

/// Matches `heading 2`, and its id `Heading2`.
fn heading_name(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    if name == "title" {
        return Some(1);
    }
    let level: u8 = name.strip_prefix("heading")?.trim_start().parse().ok()?;
    (1..=9).contains(&level).then_some(level.min(6))
}

/// `w:outlineLvl` counts from 0; 9 is body text.
pub fn outline(value: &str) -> Option<u8> {
    let level: u8 = value.parse().ok()?;
    (level < 9).then_some((level + 1).min(6))
}
