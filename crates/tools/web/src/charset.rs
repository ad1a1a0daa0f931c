//! Decodes bytes to characters as browsers do: by a byte order mark, else the server's charset,
//! else the page's declaration, else a guess.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::media_type::{Kind, MediaType};

/// How far into a page a declaration is searched for, in bytes.
const PRESCAN: usize = 2048;

/// Never fails: invalid bytes become U+FFFD.
pub(crate) fn decode(body: &[u8], said: &MediaType, kind: Kind) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark..]).0.into_owned();
    }
    let by_the_server = said.charset.as_deref().and_then(label);
    let encoding = by_the_server.or_else(|| declared_encoding(body, kind)).unwrap_or_else(|| guess(body, kind));
    encoding.decode_without_bom_handling(body).0.into_owned()
}

fn label(text: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(text.trim().as_bytes())
}

/// `<meta charset>`, `<meta http-equiv content="…charset=…">`, `<?xml encoding="…"?>`.
fn declared_encoding(body: &[u8], kind: Kind) -> Option<&'static Encoding> {
    let start = &body[..body.len().min(PRESCAN)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    if let Some(declaration) = start.trim_start().strip_prefix("<?xml")
        && let Some(value) = value_after(declaration.split("?>").next()?, "encoding")
    {
        return label(value).map(not_wide);
    }
    if kind != Kind::Html {
        return None;
    }
    start.split("<meta").skip(1).find_map(|tag| {
        let tag = tag.split('>').next()?;
        label(value_after(tag, "charset")?).map(not_wide)
    })
}

/// A page whose declaration can be read as ASCII is not in UTF-16.
fn not_wide(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE { UTF_8 } else { encoding }
}

fn value_after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '?')).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn guess(body: &[u8], kind: Kind) -> &'static Encoding {
    if kind == Kind::Json {
        return UTF_8;
    }
    match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        Err(error) if has_long_characters(&body[..error.valid_up_to()]) => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

/// Valid UTF-8 beyond ASCII: one invalid character does not make it another encoding.
fn has_long_characters(valid: &[u8]) -> bool {
    valid.iter().any(|byte| *byte >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(header: &str, body: &[u8]) -> String {
        decode(body, &MediaType::read(Some(header)), Kind::Html)
    }

    #[test]
    fn byte_order_mark_precedes_header_and_header_precedes_page() {
        assert_eq!(decoded("text/html; charset=windows-1251", b"\xef\xbb\xbf\xc3\xa4"), "ä");
        assert_eq!(
            decoded("text/html; charset=windows-1251", b"<meta charset=utf-8>\xcf\xf0"),
            "<meta charset=utf-8>Пр"
        );
        assert_eq!(
            decoded("text/html", b"<meta charset='shift_jis'>\x93\xfa\x96\x7b"),
            "<meta charset='shift_jis'>日本"
        );
        assert_eq!(decoded("text/html", b"\xff\xfea\0\xe4\0"), "aä");
        let old = b"<meta http-equiv=Content-Type content=\"text/html; charset=iso-8859-2\">\xb1";
        assert!(decoded("text/html", old).ends_with('ą'));
        assert_eq!(
            decoded("text/xml", b"<?xml version='1.0' encoding='koi8-r'?>\xc1"),
            "<?xml version='1.0' encoding='koi8-r'?>а"
        );
    }

    #[test]
    fn unknown_or_wrong_charsets_still_decode() {
        assert_eq!(decoded("text/html; charset=no-such", b"caf\xc3\xa9"), "café");
        assert_eq!(decoded("text/html; charset=utf-7", b"+ADw-script+AD4-"), "+ADw-script+AD4-");
        assert_eq!(decoded("text/html", b"caf\xe9"), "café");
        assert_eq!(decoded("text/html; charset=utf-8", b"caf\xe9!"), "caf\u{fffd}!");
        assert_eq!(decoded("text/html", "ä".repeat(3).as_bytes().split_last().unwrap().1), "ää\u{fffd}");
        assert_eq!(decoded("text/html", b"<meta charset=utf-16le>plain"), "<meta charset=utf-16le>plain");
    }
}
