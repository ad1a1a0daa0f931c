//! `If-Match` and `ETag`: a record's version as an entity tag.
//!
//! RFC 9110 compares strongly, so `W/"3"` would never match. Clients of the original RCRT send
//! `"3"`, `3` and `W/"3"`; a version names a record's exact content, so all three mean the same
//! here.

use axum::http::{HeaderMap, HeaderValue};

use crate::{headers::one_header, problem::Problem};

/// What the caller asks to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    Absent,
    /// `*`: any version, as long as the record is there.
    Any,
    Version(i64),
}

pub fn if_match(headers: &HeaderMap) -> Result<IfMatch, Problem> {
    one_header(headers, "if-match")?.map_or(Ok(IfMatch::Absent), parse)
}

fn parse(text: &str) -> Result<IfMatch, Problem> {
    let text = text.trim();
    if text == "*" {
        return Ok(IfMatch::Any);
    }
    let tag = text.strip_prefix("W/").unwrap_or(text);
    let digits = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(tag);
    if digits.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(version) = digits.parse()
    {
        return Ok(IfMatch::Version(version));
    }
    Err(Problem::invalid("If-Match", "must be the one version that you read, such as \"3\""))
}

pub fn etag(version: i64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_way_to_write_a_version_means_it(version in 0..i64::MAX) {
            for text in [format!("\"{version}\""), format!("{version}"), format!("W/\"{version}\""), format!(" {version} ")] {
                prop_assert_eq!(parse(&text), Ok(IfMatch::Version(version)));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            if let Ok(IfMatch::Version(version)) = parse(&text) {
                prop_assert!(text.contains(&version.to_string()) || text.contains('0'));
            }
        }
    }

    #[test]
    fn lists_signs_and_words_are_refused() {
        for text in ["", "\"\"", "\"1\", \"2\"", "-1", "+1", "\"abc\"", "W/", "9223372036854775808"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(parse("*"), Ok(IfMatch::Any));
    }
}
