//! `If-Match` and `ETag`: a record's version as an entity tag.
//!
//! RFC 9110 compares strongly, so `W/"3"` would never match. Clients of the original RCRT send
//! `"3"`, `3` and `W/"3"`; a version names a record's exact content, so all three mean the same
//! here.

use axum::http::{HeaderMap, HeaderValue};

use crate::http::headers::one_header;
use crate::http::problem::Problem;

/// The condition of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    Absent,
    /// `*`: any version, if the record exists.
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
    Err(Problem::invalid("If-Match", "must be one version, the one that you read, such as \"3\""))
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
        fn every_spelling_of_a_version_is_accepted(version in 0..i64::MAX) {
            for text in [format!("\"{version}\""), format!("{version}"), format!("W/\"{version}\""), format!(" {version} ")] {
                prop_assert_eq!(parse(&text), Ok(IfMatch::Version(version)));
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,30}") {
            if let Ok(IfMatch::Version(version)) = parse(&text) {
                prop_assert!(text.contains(&version.to_string()) || text.contains('0'));
            }
        }
    }

    #[test]
    fn lists_signs_and_other_text_are_refused() {
        for text in ["", "\"\"", "\"1\", \"2\"", "-1", "+1", "\"abc\"", "W/", "9223372036854775808"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(parse("*"), Ok(IfMatch::Any));
    }
}
