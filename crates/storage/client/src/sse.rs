//! A parser of server-sent events (the rules of the HTML standard, section 9.2.6).

/// The most bytes of one message, far above the JSON of the largest record's event.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The id of this message, or of the last one before it that had one.
    pub(crate) id: String,
    pub(crate) data: String,
}

/// A message exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

#[derive(Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    data: Option<String>,
    id: String,
    begun: bool,
    /// The last byte was a CR, so an LF right after it belongs to the same line end.
    after_cr: bool,
}

impl Parser {
    /// Parses more bytes, and adds the completed messages.
    pub(crate) fn read(&mut self, bytes: &[u8], found: &mut impl Extend<Message>) -> Result<(), TooLong> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let message = if self.line.is_empty() {
                self.end_line(&rest[..end])
            } else {
                self.line.extend_from_slice(&rest[..end]);
                let line = std::mem::take(&mut self.line);
                self.end_line(&line)
            };
            found.extend(message);
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > MOST_BYTES { Err(TooLong) } else { Ok(()) }
    }

    fn end_line(&mut self, bytes: &[u8]) -> Option<Message> {
        let text = String::from_utf8_lossy(bytes);
        let line = if self.begun { &*text } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.begun = true;
        if line.is_empty() {
            return self.data.take().map(|data| Message { id: self.id.clone(), data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // Comments (an empty field name), event names and retry times are not used.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::format_collect)]

    use proptest::prelude::*;

    use super::*;

    fn read(parts: &[&[u8]]) -> Vec<Message> {
        let mut parser = Parser::default();
        let mut found = Vec::new();
        for part in parts {
            parser.read(part, &mut found).unwrap();
        }
        found
    }

    fn message(id: &str, data: &str) -> Message {
        Message { id: id.into(), data: data.into() }
    }

    #[test]
    fn the_examples_of_the_standard() {
        let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        assert_eq!(
            read(&[text.as_bytes()]),
            [message("1", "first event"), message("", "second event"), message("", " third event")]
        );
        assert_eq!(read(&[b"data\n\ndata\ndata\n\ndata:"]), [message("", ""), message("", "\n")]);
        assert_eq!(read(&[b"\xef\xbb\xbfdata: YHOO\r\ndata: +2\rdata: 10\n\n"]), [message("", "YHOO\n+2\n10")]);
    }

    #[test]
    fn an_id_applies_until_the_next_one_and_does_not_complete_a_message() {
        assert_eq!(read(&[b"id: 7\n\ndata: a\n\nid: 8\ndata: b\n\n"]), [message("7", "a"), message("8", "b")]);
    }

    #[test]
    fn a_message_above_the_limit_is_refused() {
        let mut parser = Parser::default();
        let mut found: Vec<Message> = Vec::new();
        let part = vec![b'x'; MOST_BYTES];
        assert_eq!(parser.read(&part, &mut found), Ok(()));
        assert_eq!(parser.read(b"x", &mut found), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_messages(
            text in r"((data|id|event|retry|x)?:? ?[a-z\u{0}é☃]{0,5}(\n|\r|\r\n)){0,20}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let bytes = text.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let parts: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&parts), read(&[bytes]));
        }

        #[test]
        fn written_messages_are_parsed_unchanged(
            messages in prop::collection::vec(("[0-9]{1,9}", r"[a-z :é]{0,9}(\n[a-z :é]{0,9}){0,3}"), 0..8),
        ) {
            let text: String = messages.iter().map(|(id, data)| {
                let data: String = data.split('\n').map(|line| format!("data: {line}\n")).collect();
                format!("id: {id}\n{data}\n")
            }).collect();
            let expected: Vec<Message> = messages.iter().map(|(id, data)| message(id, data)).collect();
            prop_assert_eq!(read(&[text.as_bytes()]), expected);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&[&bytes]);
        }
    }
}
