//! Converts the text of a part to Markdown blocks.

use std::io::{Read, Seek};

use super::numbering::Numbering;
use super::package::Package;
use super::styles::{ListLevel, Styles, outline};
use super::table::Table;
use super::xml::{Element, Tag};
use super::{DocxError, Links, limits};

/// The content of other parts of the document.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    pub styles: &'c Styles,
    pub numbering: &'c Numbering,
    pub links: &'c Links,
}

/// Deleted text, previous versions of properties, fallbacks for older readers, and field codes.
const SKIPPED: &[&str] = &[
    "del",
    "moveFrom",
    "Fallback",
    "instrText",
    "pPrChange",
    "rPrChange",
    "sectPrChange",
    "tblPrChange",
    "trPrChange",
    "tcPrChange",
];

/// The text of a part.
pub fn read<R: Read + Seek>(package: &mut Package<R>, path: &str, context: &Context<'_>) -> Result<String, DocxError> {
    let mut builder = Builder::new(*context);
    if package.walk(path, |tag| builder.take(tag))? {
        Ok(builder.finish())
    } else {
        Err(DocxError::Missing(path.to_owned()))
    }
}

pub struct Builder<'c> {
    context: Context<'c>,
    out: String,
    /// Whether the last block was a list item.
    is_after_item: bool,
    /// The stack of open paragraphs: a text box nests paragraphs.
    paragraphs: Vec<Paragraph>,
    tables: Vec<Table>,
    /// The number of open elements that are skipped.
    skipping: usize,
    in_text: bool,
    in_properties: bool,
    /// Bytes that were added so far.
    taken: usize,
}

#[derive(Default)]
struct Paragraph {
    text: String,
    style: Option<String>,
    heading: Option<u8>,
    list: ListLevel,
    /// The stack of open links: where their text starts, and their targets.
    links: Vec<(usize, Option<String>)>,
}

impl<'c> Builder<'c> {
    pub fn new(context: Context<'c>) -> Self {
        Self {
            context,
            out: String::new(),
            is_after_item: false,
            paragraphs: Vec::new(),
            tables: Vec::new(),
            skipping: 0,
            in_text: false,
            in_properties: false,
            taken: 0,
        }
    }

    pub fn take(&mut self, tag: Tag<'_>) -> Result<(), DocxError> {
        match tag {
            Tag::Start(element) if self.skipping > 0 || SKIPPED.contains(&element.local) => self.skipping += 1,
            Tag::End(_) if self.skipping > 0 => self.skipping -= 1,
            Tag::Text(_) if self.skipping > 0 => {}
            Tag::Start(element) => return self.start(&element),
            Tag::End(local) => return self.end(local),
            Tag::Text(text) if self.in_text => return self.push(&text),
            Tag::Text(_) => {}
        }
        Ok(())
    }

    pub fn finish(mut self) -> String {
        while let Some(paragraph) = self.paragraphs.pop() {
            self.put(paragraph);
        }
        let text = self.out.trim_end();
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    }

    fn start(&mut self, element: &Element<'_>) -> Result<(), DocxError> {
        let value = || element.attribute("val").unwrap_or_default();
        match element.local {
            "p" => self.paragraphs.push(Paragraph::default()),
            "pPr" => self.in_properties = true,
            "t" => self.in_text = true,
            "tbl" => self.tables.push(Table::default()),
            "tr" => self.in_table(Table::row),
            "tc" => self.in_table(Table::begin_cell),
            "gridSpan" => {
                let columns = value().parse().unwrap_or(1);
                self.in_table(|table| table.span(columns));
            }
            "pStyle" => self.in_paragraph(|paragraph| paragraph.style = Some(value())),
            "outlineLvl" => self.in_paragraph(|paragraph| paragraph.heading = outline(&value())),
            "numId" => self.in_paragraph(|paragraph| paragraph.list.list = Some(value())),
            "ilvl" => self.in_paragraph(|paragraph| paragraph.list.level = value().parse().ok()),
            "hyperlink" => {
                let id = element.attribute("id").unwrap_or_default();
                let address = self.context.links.address(&id).map(str::to_owned);
                self.in_paragraph(|paragraph| paragraph.links.push((paragraph.text.len(), address)));
            }
            "tab" if !self.in_properties => return self.push("\t"),
            "br" | "cr" => return self.push("\n"),
            "noBreakHyphen" => return self.push("-"),
            "footnoteReference" => return self.push(&format!("[^{}]", element.attribute("id").unwrap_or_default())),
            "endnoteReference" => return self.push(&format!("[^e{}]", element.attribute("id").unwrap_or_default())),
            "docPr" => {
                if let Some(text) = element.attribute("descr").filter(|text| !text.trim().is_empty()) {
                    return self.push(&format!("[image: {}]", text.trim()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, local: &str) -> Result<(), DocxError> {
        match local {
            "p" => {
                if let Some(paragraph) = self.paragraphs.pop() {
                    self.put(paragraph);
                }
            }
            "pPr" => self.in_properties = false,
            "t" => self.in_text = false,
            "tc" => self.in_table(Table::end_cell),
            "tbl" => {
                if let Some(table) = self.tables.pop() {
                    let is_inner = self.tables.last_mut().is_some_and(|table| table.cell().is_some());
                    self.block(&if is_inner { table.lines() } else { table.markdown() }, false);
                }
            }
            "hyperlink" => {
                let open = self.paragraphs.last_mut().and_then(|paragraph| paragraph.links.pop());
                if let Some((from, Some(address))) = open {
                    self.count(address.len())?;
                    self.in_paragraph(|paragraph| paragraph.link(from, &address));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = self.tables.last_mut() {
            change(table);
        }
    }

    fn in_paragraph(&mut self, change: impl FnOnce(&mut Paragraph)) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            change(paragraph);
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), DocxError> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > limits::TEXT { Err(DocxError::TooMuchText) } else { Ok(()) }
    }

    fn push(&mut self, text: &str) -> Result<(), DocxError> {
        self.count(text.len())?;
        self.in_paragraph(|paragraph| paragraph.text.push_str(text));
        Ok(())
    }

    fn put(&mut self, paragraph: Paragraph) {
        let text = paragraph.text.trim();
        if text.is_empty() {
            return;
        }
        let Context { styles, numbering, .. } = self.context;
        let style = paragraph.style.as_deref().unwrap_or_default();
        if let Some(level) = paragraph.heading.or_else(|| styles.heading(style)) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.block(&format!("{} {text}", "#".repeat(usize::from(level))), false);
            return;
        }
        let of_style = styles.list(style);
        let level = paragraph.list.level.or(of_style.level).unwrap_or(0).min(8);
        let list = paragraph.list.list.or(of_style.list);
        match list.and_then(|list| numbering.marker(&list, level)) {
            Some(marker) => {
                let indent = "  ".repeat(level);
                let text = text.replace('\n', &format!("\n{indent}{}", " ".repeat(marker.len())));
                self.block(&format!("{indent}{marker}{text}"), true);
            }
            None => self.block(text, false),
        }
    }

    /// Appends a block to the open cell, else to the text. A blank line precedes it, except between
    /// two list items.
    fn block(&mut self, text: &str, is_item: bool) {
        if text.is_empty() {
            return;
        }
        if let Some(cell) = self.tables.last_mut().and_then(Table::cell) {
            if !cell.is_empty() {
                cell.push('\n');
            }
            cell.push_str(text);
            return;
        }
        if !self.out.is_empty() {
            self.out.push_str(if is_item && self.is_after_item { "\n" } else { "\n\n" });
        }
        self.out.push_str(text);
        self.is_after_item = is_item;
    }
}

impl Paragraph {
    fn link(&mut self, from: usize, address: &str) {
        let text = self.text.split_off(from.min(self.text.len()));
        if text.trim().is_empty() || text == address {
            self.text.push_str(&text);
        } else {
            self.text.extend(["[", &text, "](", address, ")"]);
        }
    }
}
