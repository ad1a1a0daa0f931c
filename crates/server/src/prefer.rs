//! How long a caller wants to wait: the supported parts of the header `Prefer` (RFC 7240).

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Says which preferences were followed.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long a caller waits that does not say.
const DEFAULT_WAIT: u64 = 30;
/// The longest that anybody waits. Proxies between give up after a minute, too.
const MAX_WAIT: u64 = 60;

/// What a caller would like: for how long to wait, and not to wait at all. What makes no sense is as if it were not
/// there, as the RFC asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Seconds.
    wait: Option<u64>,
    respond_async: bool,
}

impl Preferences {
    /// Of a preference that is given more than once, the first counts.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for value in headers.get_all("prefer") {
            // A value that is no text is nothing that this server knows.
            for preference in divided(value.to_str().unwrap_or_default(), ',') {
                found.take(preference);
            }
        }
        found
    }

    fn take(&mut self, preference: &str) {
        // Parameters of a preference (after a semicolon) mean nothing to the two that are known here.
        let preference = divided(preference, ';').into_iter().next().unwrap_or_default();
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        let value = value.trim();
        if name.trim().eq_ignore_ascii_case("wait") && self.wait.is_none() {
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
                // Digits that are too many for a number are a long time all the same.
                self.wait = Some(value.parse::<u64>().unwrap_or(u64::MAX).min(MAX_WAIT));
            }
        } else if name.trim().eq_ignore_ascii_case("respond-async") {
            self.respond_async = true;
        }
    }

    /// How long to wait for an answer: as long as is asked, up to a minute; not at all for who wants to be answered at
    /// once and names no time; else half a minute.
    pub fn wait(self) -> Duration {
        Duration::from_secs(self.wait.unwrap_or(if self.respond_async { 0 } else { DEFAULT_WAIT }))
    }

    /// The header that tells what was followed; `None` when nothing was asked for.
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

/// The parts of a text between separators that stand in no quoted string.
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
    fn a_time_is_taken_in_every_spelling_of_the_rfc() {
        for line in ["wait=10", "Wait = 10", "wait=\"10\"", "foo; bar=\"a, wait=3\", wait=10; x=y", "wait=10, wait=20"]
        {
            assert_eq!(read(&[line]), (10, "wait=10".into()), "{line}");
        }
        assert_eq!(read(&["handling=lenient", "wait=10"]), (10, "wait=10".into()));
        assert_eq!(read(&["wait=0"]), (0, "wait=0".into()));
    }

    #[test]
    fn a_time_ends_at_a_minute() {
        for line in ["wait=61", "wait=99999999999999999999999999"] {
            assert_eq!(read(&[line]), (60, "wait=60".into()));
        }
    }

    #[test]
    fn who_wants_an_answer_at_once_gets_it_unless_it_names_a_time() {
        assert_eq!(read(&["respond-async"]), (0, "respond-async".into()));
        assert_eq!(read(&["Respond-Async, wait=5"]), (5, "respond-async, wait=5".into()));
    }

    #[test]
    fn what_makes_no_sense_is_as_if_it_were_not_there() {
        for line in ["", "wait", "wait=", "wait=-1", "wait=1.5", "wait=ten", "waiting=5", "\"wait=5\"", ",;=,"] {
            assert_eq!(read(&[line]), (30, String::new()), "{line:?}");
        }
        assert_eq!(read(&[]), (30, String::new()));
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[ -~]{0,60}") {
            let (wait, applied) = read(&[&text]);
            prop_assert!(wait <= 60);
            prop_assert!(applied.is_empty() || text.to_lowercase().contains("wait") || text.to_lowercase().contains("async"));
        }

        #[test]
        fn the_parts_are_the_text(text in "[ -~]{0,60}") {
            prop_assert_eq!(divided(&text, ',').join(","), text);
        }
    }
}
