//! Builds Word documents by hand: the parts of the archive as texts.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const W: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// An archive with these parts.
pub fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn root_relations() -> String {
    relations(&[("rId1", "officeDocument", "word/document.xml", false)])
}

/// Each is `(id, kind, target, is outside)`.
pub fn relations(relations: &[(&str, &str, &str, bool)]) -> String {
    let each: String = relations
        .iter()
        .map(|(id, kind, target, outside)| {
            let mode = if *outside { r#" TargetMode="External""# } else { "" };
            format!(r#"<Relationship Id="{id}" Type="{OFFICE}/{kind}" Target="{target}"{mode}/>"#)
        })
        .collect();
    format!(
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{each}</Relationships>"#
    )
}

pub fn part(root: &str, content: &str) -> String {
    format!(r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{root} {W}>{content}</w:{root}>"#)
}

/// A document with only this body.
pub fn document(body: &str) -> Vec<u8> {
    archive(&[
        ("_rels/.rels", root_relations().as_bytes()),
        ("word/document.xml", part("document", &format!("<w:body>{body}</w:body>")).as_bytes()),
    ])
}

pub fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

pub fn styled(style: &str, text: &str) -> String {
    format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
}

pub fn item(list: &str, level: usize, text: &str) -> String {
    format!(
        r#"<w:p><w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#
    )
}

pub fn table(rows: &[&[&str]]) -> String {
    let rows: String = rows
        .iter()
        .map(|row| {
            let cells: String = row.iter().map(|cell| format!("<w:tc>{}</w:tc>", paragraph(cell))).collect();
            format!("<w:tr>{cells}</w:tr>")
        })
        .collect();
    format!("<w:tbl>{rows}</w:tbl>")
}
