//! The type of a page: the server's `Content-Type`, checked against the bytes.

/// How a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    Json,
    Text,
    /// Not text: images, archives, programs, PDF.
    Binary,
}

/// Subtypes of `application/` that are text.
const TEXTS: &[&str] = &[
    "ecmascript",
    "graphql",
    "javascript",
    "json-seq",
    "jsonl",
    "rtf",
    "sql",
    "toml",
    "typescript",
    "x-httpd-php",
    "x-javascript",
    "x-latex",
    "x-ndjson",
    "x-sh",
    "x-subrip",
    "x-tex",
    "x-www-form-urlencoded",
    "x-yaml",
    "xml-dtd",
    "yaml",
];

/// A parsed `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType {
    /// `text/html`, in lower case; empty if the header is missing or invalid.
    pub essence: String,
    pub charset: Option<String>,
}

impl MediaType {
    pub fn read(header: Option<&str>) -> Self {
        let mut parts = header.unwrap_or_default().split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c);
        let is_type = essence.len() <= 127
            && essence.split_once('/').is_some_and(|(kind, sub)| {
                !kind.is_empty() && !sub.is_empty() && kind.chars().chain(sub.chars()).all(is_token)
            });
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']).trim();
            (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_owned())
        });
        Self { essence: if is_type { essence } else { String::new() }, charset }
    }

    /// The kind by the header; `None` if it is unknown (`application/octet-stream` says nothing).
    fn claimed(&self) -> Option<Kind> {
        let (kind, sub) = self.essence.split_once('/')?;
        Some(match (kind, sub) {
            ("text", "html") | ("application", "xhtml+xml") => Kind::Html,
            (_, "json") | ("text", "x-json") => Kind::Json,
            (_, sub) if sub.ends_with("+json") => Kind::Json,
            ("application", "octet-stream" | "binary" | "unknown" | "x-unknown") => return None,
            ("text" | "message" | "multipart", _) => Kind::Text,
            ("application", sub) if TEXTS.contains(&sub) => Kind::Text,
            (_, sub) if sub == "xml" || sub.ends_with("+xml") || sub.ends_with("+yaml") => Kind::Text,
            _ => Kind::Binary,
        })
    }

    /// The kind of the page. Bytes that cannot occur in text take precedence over the header.
    /// Without a header, the bytes decide.
    pub fn kind(&self, body: &[u8]) -> Kind {
        let claimed = self.claimed();
        if claimed == Some(Kind::Binary) {
            return Kind::Binary;
        }
        // The HTML parser handles NULs.
        let is_foreign = claimed != Some(Kind::Html) && has_nul(body) && !is_wide(self.charset.as_deref(), body);
        if signature(body).is_some() || is_foreign {
            return Kind::Binary;
        }
        claimed.unwrap_or_else(|| sniff(body))
    }

    /// The type for people, by the header or by the bytes.
    pub fn shown(&self, body: &[u8]) -> String {
        let seen = signature(body);
        match (self.essence.is_empty(), seen) {
            (false, Some(seen)) if seen != self.essence => format!("{}, which is {seen}", self.essence),
            (false, _) => self.essence.clone(),
            (true, Some(seen)) => seen.to_owned(),
            (true, None) => "unknown".to_owned(),
        }
    }
}

/// Byte signatures that cannot start a text.
fn signature(body: &[u8]) -> Option<&'static str> {
    const SIGNATURES: &[(&[u8], &str)] = &[
        (b"%PDF-", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"\x7fELF", "application/x-elf"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"\x28\xb5\x2f\xfd", "application/zstd"),
        (b"\0asm", "application/wasm"),
        (b"OggS", "application/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"wOF2", "font/woff2"),
    ];
    SIGNATURES.iter().find(|(start, _)| body.starts_with(start)).map(|(_, name)| *name)
}

fn has_nul(body: &[u8]) -> bool {
    body.iter().take(4096).any(|byte| *byte == 0)
}

/// UTF-16 and UTF-32 are full of NULs.
fn is_wide(charset: Option<&str>, body: &[u8]) -> bool {
    body.starts_with(&[0xff, 0xfe])
        || body.starts_with(&[0xfe, 0xff])
        || charset.is_some_and(|label| label.to_ascii_lowercase().starts_with("utf-16"))
}

fn sniff(body: &[u8]) -> Kind {
    let start = &body[..body.len().min(1024)];
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start().to_ascii_lowercase();
    let html: [&[u8]; 8] = [b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<script", b"<div", b"<!--"];
    if html.iter().any(|tag| start.starts_with(tag)) {
        return Kind::Html;
    }
    if start.starts_with(b"{") || start.starts_with(b"[") {
        return Kind::Json;
    }
    // Escape sequences and form feeds occur in texts; other control characters do not.
    let odd = start.iter().filter(|byte| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31 | 127)).count();
    if odd * 50 > start.len() { Kind::Binary } else { Kind::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(header: &str, body: &[u8]) -> Kind {
        MediaType::read(Some(header)).kind(body)
    }

    #[test]
    fn content_type_headers_are_parsed() {
        let read = MediaType::read(Some(" Text/HTML ; q=1; Charset=\"ISO-8859-1\" "));
        assert_eq!((read.essence.as_str(), read.charset.as_deref()), ("text/html", Some("ISO-8859-1")));
        for nothing in [None, Some(""), Some("html"), Some("text/"), Some("a b/c"), Some("text/html\r\nx: y")] {
            assert_eq!(MediaType::read(nothing).essence, "", "{nothing:?}");
        }
    }

    #[test]
    fn bytes_take_precedence_over_the_header() {
        assert_eq!(kind("text/html", b"<p>hi"), Kind::Html);
        assert_eq!(kind("application/ld+json", b"{}"), Kind::Json);
        assert_eq!(kind("text/html", b"\x89PNG\r\n\x1a\n...."), Kind::Binary);
        assert_eq!(kind("text/plain", b"abc\0def"), Kind::Binary);
        assert_eq!(kind("text/plain; charset=utf-16le", b"a\0b\0"), Kind::Text);
        assert_eq!(kind("application/octet-stream", b"<!DOCTYPE html><p>"), Kind::Html);
        assert_eq!(kind("", b"{\"a\":1}"), Kind::Json);
        assert_eq!(kind("", b"just words"), Kind::Text);
        assert_eq!(kind("", &[1, 2, 3, 4, 5, 6]), Kind::Binary);
        assert_eq!(kind("image/png", b"words"), Kind::Binary);
        assert_eq!(kind("image/svg+xml", b"<svg/>"), Kind::Text);
    }
}
