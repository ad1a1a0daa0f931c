//! How long a caller waits: the supported parts of the header `Prefer` (RFC 7240).

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Names the preferences that were applied.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Seconds of waiting if the caller does not say.
const DEFAULT_WAIT: u64 = 30;
/// The longest wait in seconds. Proxies often have a timeout of one minute too.
const MAX_WAIT: u64 = 60;

/// The caller's preferences: how long to wait, or not to wait. Invalid ones are ignored, as the RFC
/// requires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Seconds.
    wait: Option<u64>,
    respond_async: bool,
}

impl Preferences {
    /// If a preference is repeated, the first one counts.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for value in headers.get_all("prefer") {
            // A value that is not text cannot be a known preference.
            for preference in divided(value.to_str().unwrap_or_default(), ',') {
                found.take(preference);
            }
        }
        found
    }

    fn take(&mut self, preference: &str) {
        // The two known preferences have no parameters (the part after a semicolon).
        let preference = divided(preference, ';').into_iter().next().unwrap_or_default();
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        let value = value.trim();
        if name.trim().eq_ignore_ascii_case("wait") && self.wait.is_none() {
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
                // More digits than a number can have also mean a long time.
                self.wait = Some(value.parse::<u64>().unwrap_or(u64::MAX).min(MAX_WAIT));
            }
        } else if name.trim().eq_ignore_ascii_case("respond-async") {
            self.respond_async = true;
        }
    }

    /// How long to wait for a response: the requested time, up to a minute. Without one, not at all
    /// with `respond-async`, otherwise half a minute.
    pub fn wait(self) -> Duration {
        Duration::from_secs(self.wait.unwrap_or(if self.respond_async { 0 } else { DEFAULT_WAIT }))
    }

    /// The header that names what was applied; `None` if there was no known preference.
    pub fn applied(self) -> Option<HeaderValue> {
        let text = match (self.respond_async, self.wait) {
            (false, None) => return None,
            (true, None) => "respond-async".to_owned(),
            (false, Some(wait)) => format!("wait={wait}"),
            (true, Some(wait)) => format!("respond-async, wait={wait}"),
        };
        HeaderValue::try_from(text).ok()
    }
}

/// Splits a text at separators that are not in a quoted string.
fn divided(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && letter == '\\' {
            is_escaped = true;
        } else if letter == '"' {
            is_quoted = !is_quoted;
        } else if letter == separator && !is_quoted {
            parts.push(&text[start..at]);
            start = at + letter.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[&str]) -> (u64, String) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("prefer", HeaderValue::from_str(line).unwrap());
        }
        let found = Preferences::read(&headers);
        let applied = found.applied().map(|value| value.to_str().unwrap().to_owned());
        (found.wait().as_secs(), applied.unwrap_or_default())
    }

    #[test]
    fn every_spelling_of_a_wait_in_the_rfc_is_accepted() {
        for line in ["wait=10", "Wait = 10", "wait=\"10\"", "foo; bar=\"a, wait=3\", wait=10; x=y", "wait=10, wait=20"]
        {
            assert_eq!(read(&[line]), (10, "wait=10".into()), "{line}");
        }
        assert_eq!(read(&["handling=lenient", "wait=10"]), (10, "wait=10".into()));
        assert_eq!(read(&["wait=0"]), (0, "wait=0".into()));
    }

    #[test]
    fn a_wait_is_at_most_a_minute() {
        for line in ["wait=61", "wait=99999999999999999999999999"] {
            assert_eq!(read(&[line]), (60, "wait=60".into()));
        }
    }

    #[test]
    fn respond_async_does_not_wait_unless_a_wait_is_given() {
        assert_eq!(read(&["respond-async"]), (0, "respond-async".into()));
        assert_eq!(read(&["Respond-Async, wait=5"]), (5, "respond-async, wait=5".into()));
    }

    #[test]
    fn invalid_preferences_are_ignored() {
        for line in ["", "wait", "wait=", "wait=-1", "wait=1.5", "wait=ten", "waiting=5", "\"wait=5\"", ",;=,"] {
            assert_eq!(read(&[line]), (30, String::new()), "{line:?}");
        }
        assert_eq!(read(&[]), (30, String::new()));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "[ -~]{0,60}") {
            let (wait, applied) = read(&[&text]);
            prop_assert!(wait <= 60);
            prop_assert!(applied.is_empty() || text.to_lowercase().contains("wait") || text.to_lowercase().contains("async"));
        }

        #[test]
        fn the_parts_joined_are_the_text(text in "[ -~]{0,60}") {
            prop_assert_eq!(divided(&text, ',').join(","), text);
        }
    }
}
