//! Detects the type of a file by its first bytes, because names can be wrong.

use std::path::Path;

use super::decode::{Encoding, is_odd_control};
use crate::docx;

/// How many bytes are inspected.
pub const SAMPLE: u64 = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Text(Encoding),
    /// A Word document.
    Document,
    /// Any other format, with its media type.
    Binary(&'static str),
}

pub fn of(sample: &[u8], path: &Path) -> Kind {
    // A PDF's first lines look like text.
    if sample.starts_with(b"%PDF-") {
        return Kind::Binary("application/pdf");
    }
    if let Some(encoding) = text(sample) {
        return Kind::Text(encoding);
    }
    let kind = infer::get(sample).map(|kind| kind.mime_type());
    let is_named_docx = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("docx"));
    if sample.starts_with(b"PK\x03\x04") && (is_named_docx || kind == Some(docx::TYPE)) {
        return Kind::Document;
    }
    Kind::Binary(kind.unwrap_or("application/octet-stream"))
}

fn text(sample: &[u8]) -> Option<Encoding> {
    match sample {
        [0xEF, 0xBB, 0xBF, ..] => return Some(Encoding::Utf8 { mark: 3 }),
        // UTF-32 starts like this too. It is practically unused.
        [0xFF, 0xFE, 0, 0, ..] => return None,
        [0xFF, 0xFE, ..] => return Some(Encoding::Utf16 { big_endian: false }),
        [0xFE, 0xFF, ..] => return Some(Encoding::Utf16 { big_endian: true }),
        _ => {}
    }
    let odd = sample.iter().filter(|&&byte| is_odd_control(char::from(byte))).count();
    if sample.contains(&0) || odd * 100 > sample.len() {
        return None;
    }
    match std::str::from_utf8(sample) {
        Ok(_) => Some(Encoding::Utf8 { mark: 0 }),
        // The end of the sample cuts a character in two.
        Err(error) if error.error_len().is_none() => Some(Encoding::Utf8 { mark: 0 }),
        Err(_) => is_western(sample).then_some(Encoding::Windows1252),
    }
}

/// Text in an old one-byte encoding is mostly letters and spaces; compressed data is distributed
/// evenly.
fn is_western(sample: &[u8]) -> bool {
    let high = sample.iter().filter(|byte| **byte >= 0x80).count();
    let defined = !sample.iter().any(|byte| matches!(byte, 0x81 | 0x8D | 0x8F | 0x90 | 0x9D));
    let spaces = sample.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    defined && high * 4 <= sample.len() && (spaces * 50 >= sample.len() || sample.len() < 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sample: &[u8]) -> Kind {
        of(sample, Path::new("x"))
    }

    #[test]
    fn text_is_detected_whatever_its_first_bytes() {
        let utf8 = Kind::Text(Encoding::Utf8 { mark: 0 });
        for text in ["", "BM is a bank", "MZ\n", "GIF89a is a format", "ID3 and ID4", "<?xml?>", "#!/bin/sh\n", "é"] {
            assert_eq!(kind(text.as_bytes()), utf8, "{text:?}");
        }
        assert_eq!(kind(b"\x1b[31mred\x1b[0m, as programs print it to terminals, over and over again, and so on and on, up to two hundred and more characters, since now and then is what such a sequence may come, and not all the time, or else it is none"), utf8);
        assert_eq!(kind("é".as_bytes().get(..1).unwrap()), utf8);
        assert_eq!(kind(b"Stra\xdfe und Stra\xdfen in K\xf6ln"), Kind::Text(Encoding::Windows1252));
        assert_eq!(kind(b"\xff\xfeh\0i\0"), Kind::Text(Encoding::Utf16 { big_endian: false }));
    }

    #[test]
    fn binary_files_have_a_media_type() {
        for (sample, named) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "application/x-executable"),
            (b"\x1f\x8b\x08\0\0\0\0\0", "application/gzip"),
            (b"a\0b", "application/octet-stream"),
            (b"\xff\xfe\0\0a\0\0\0", "application/octet-stream"),
            (b"PK\x03\x04\x14\0\0\0", "application/zip"),
        ] {
            assert_eq!(kind(sample), Kind::Binary(named), "{sample:?}");
        }
        assert_eq!(of(b"PK\x03\x04\x14\0\0\0", Path::new("a.DOCX")), Kind::Document);
        assert_eq!(of(b"just text", Path::new("a.docx")), Kind::Text(Encoding::Utf8 { mark: 0 }));
    }
}
