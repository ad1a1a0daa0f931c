//! Word documents as Markdown.

use rcrt_test_tenant::golden;
use serde_json::json;

use crate::fixture::Fixture;
use crate::word_documents::{archive, document, item, paragraph, part, relations, root_relations, styled, table};

/// A letter from Word's German edition: the English names of the styles are only in `styles.xml`.
fn letter() -> Vec<u8> {
    let styles = part(
        "styles",
        r#"<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
        <w:style w:styleId="berschrift2"><w:name w:val="heading 2"/><w:basedOn w:val="berschrift1"/></w:style>
        <w:style w:styleId="Meine"><w:name w:val="Meine"/><w:basedOn w:val="berschrift2"/></w:style>
        <w:style w:styleId="Kreis"><w:name w:val="Kreis"/><w:basedOn w:val="Kreis"/></w:style>
        <w:style w:styleId="Punkte"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>"#,
    );
    let numbering = part(
        "numbering",
        r#"<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
        <w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
        <w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>"#,
    );
    let footnotes = part(
        "footnotes",
        &format!(
            r#"<w:footnote w:type="separator" w:id="-1">{}</w:footnote><w:footnote w:id="2">{}</w:footnote>"#,
            paragraph("----"),
            paragraph("Without tax.")
        ),
    );
    let body = [
        styled("berschrift1", "Offer &amp; terms"),
        r#"<w:p><w:r><w:t xml:space="preserve">We offer </w:t></w:r><w:del><w:r><w:delText>9</w:delText></w:r></w:del><w:ins><w:r><w:t>10</w:t></w:r></w:ins><w:r><w:t> m&#xB2;</w:t></w:r><w:r><w:footnoteReference w:id="2"/><w:tab/><w:t>end</w:t><w:br/><w:t>next line</w:t></w:r></w:p>"#.into(),
        r#"<w:p><w:hyperlink r:id="rId9"><w:r><w:t>our page</w:t></w:r></w:hyperlink><w:r><w:fldChar/><w:instrText>PAGE 1</w:instrText><w:t>, and more</w:t></w:r></w:p>"#.into(),
        styled("berschrift2", "Parts"),
        item("1", 0, "one"),
        item("1", 1, "one and a half"),
        styled("Punkte", "by its style"),
        item("2", 0, "counted"),
        item("0", 0, "no item"),
        styled("Meine", "Prices"),
        styled("Kreis", "A style that is based on itself"),
        table(&[&["Part", "Price | EUR"], &["Fixture", "100"], &["", ""], &["Chair"]]),
        format!("<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"2\"/></w:tcPr>{}</w:tc></w:tr><w:tr><w:tc>{}{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", paragraph("wide"), paragraph("two"), paragraph("lines"), table(&[&["in", "ner"], &["ta", "ble"]])),
        r#"<w:p><w:r><w:drawing><wp:docPr xmlns:wp="x" id="1" name="Picture" descr="A desk"/></w:drawing></w:r></w:p>"#.into(),
        format!(r#"<w:p><w:r><mc:AlternateContent xmlns:mc="m"><mc:Choice><w:txbxContent>{}</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>{}</w:txbxContent></mc:Fallback></mc:AlternateContent><w:t>around the box</w:t></w:r></w:p>"#, paragraph("in a box"), paragraph("in a box")),
        "<w:p/><w:sectPr/>".into(),
    ];
    let document = part("document", &format!("<w:body>{}</w:body>", body.concat()));
    let main = relations(&[
        ("rId1", "styles", "styles.xml", false),
        ("rId2", "numbering", "/word/numbering.xml", false),
        ("rId3", "footnotes", "../word/footnotes.xml", false),
        ("rId9", "hyperlink", "https://example.com/?a=1&amp;b=2", true),
    ]);
    let root = relations(&[("rId1", "officeDocument", "/word/document2.xml", false)]);
    archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", root.as_bytes()),
        ("word/document2.xml", document.as_bytes()),
        ("word/_rels/document2.xml.rels", main.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/numbering.xml", numbering.as_bytes()),
        ("word/footnotes.xml", footnotes.as_bytes()),
        ("word/media/image1.png", b"\x89PNG"),
    ])
}

#[tokio::test]
async fn document_is_converted_to_markdown() {
    let fixture = Fixture::new().await;
    fixture.put("letter.docx", letter());
    let (output, metadata) = fixture.call("read_file", json!({ "path": "letter.docx" })).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "letter.md", output.as_str().unwrap());
    assert_eq!(metadata["file"]["type"], "application/vnd.openxmlformats-officedocument.wordprocessingml.document");
    let part = fixture.read(json!({ "path": "letter.docx", "start_line": 1, "max_lines": 1 })).await.unwrap();
    assert_eq!(part, "# Offer & terms\n[line 1; the file continues at start_line 2]");
}

#[tokio::test]
async fn minimal_document_is_read() {
    let fixture = Fixture::new().await;
    fixture.put("a.docx", document(&format!("{}{}", styled("Heading2", "Title"), paragraph("text"))));
    assert_eq!(fixture.read_all("a.docx").await.unwrap(), "## Title\n\ntext\n");
    fixture.put("empty.docx", document(""));
    assert_eq!(fixture.read_all("empty.docx").await.unwrap(), "");
    // Another prefix for the same namespace.
    let other = part("document", &format!("<w:body>{}</w:body>", paragraph("text"))).replace("w:", "ns0:");
    let parts = [("_rels/.rels", root_relations()), ("word/document.xml", other)];
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    fixture.put("b.docx", archive(&parts));
    assert_eq!(fixture.read_all("b.docx").await.unwrap(), "text\n");
}
