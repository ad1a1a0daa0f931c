//! Replaces values by `[secret NAME]`: in bytes, text, JSON, and streamed bodies.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{BodyStream, OpError, ToolFailure};
use serde_json::{Map, Value};

use super::search::{Search, Segment, Texts, Unsearchable};
use super::text_encoding::TextEncoding;
use super::{HeldSecret, forms};

/// Redacts the values of some secrets. Without secrets it changes nothing.
#[derive(Default)]
pub struct Redaction {
    known: Option<Known>,
}

struct Known {
    texts: Texts,
    /// For each text, the index of its secret in `names`.
    owners: Vec<usize>,
    names: Vec<String>,
    /// The texts in lower case, for contexts that ignore case.
    lowered: Vec<Vec<u8>>,
}

impl Redaction {
    pub fn of<'s>(secrets: impl Iterator<Item = &'s HeldSecret>) -> Result<Self, Unsearchable> {
        let (mut texts, mut owners, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for secret in secrets.filter(|secret| !secret.value.is_empty()) {
            let forms = forms::of(&secret.value);
            owners.extend(std::iter::repeat_n(names.len(), forms.len()));
            texts.extend(forms);
            names.push(secret.name.clone());
        }
        let lowered = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        Ok(Self { known: Texts::new(texts)?.map(|texts| Known { texts, owners, names, lowered }) })
    }

    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(known) = &self.known else { return Cow::Borrowed(bytes) };
        let mut out = Vec::with_capacity(bytes.len());
        let mut pipeline = Pipeline::new(known);
        pipeline.push(known, bytes, &mut out);
        pipeline.finish(known, &mut out);
        if out == bytes { Cow::Borrowed(bytes) } else { Cow::Owned(out) }
    }

    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
        }
    }

    /// Whether there is nothing to redact.
    pub fn is_idle(&self) -> bool {
        self.known.is_none()
    }

    /// Redacts strings and keys, and numbers whose text equals a secret.
    pub fn json(&self, value: &mut Value) {
        if self.known.is_none() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let text = number.to_string();
                if let Cow::Owned(cleared) = self.text(&text) {
                    *value = Value::String(cleared);
                }
            }
            Value::String(text) => {
                if let Cow::Owned(cleared) = self.text(text) {
                    *text = cleared;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(fields) => self.fields(fields),
        }
    }

    pub fn fields(&self, fields: &mut Map<String, Value>) {
        if self.known.is_none() {
            return;
        }
        fields.values_mut().for_each(|value| self.json(value));
        if fields.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            *fields =
                std::mem::take(fields).into_iter().map(|(key, value)| (self.text(&key).into_owned(), value)).collect();
        }
    }

    pub fn failure(&self, failure: &mut ToolFailure) {
        if let Cow::Owned(cleared) = self.text(&failure.message) {
            failure.message = cleared;
        }
        if let Some(details) = &mut failure.details {
            self.json(details);
        }
    }

    pub fn refusal(&self, mut error: OpError) -> OpError {
        if let Cow::Owned(cleared) = self.text(&error.message) {
            error.message = cleared;
        }
        error
    }

    /// Redacts a body, however it is split into chunks. Lines are passed on when they end, other
    /// text after a delay of one value's length. If the body fails, the delayed bytes are dropped:
    /// they can be the start of a value.
    pub fn stream(self: &Arc<Self>, body: BodyStream) -> BodyStream {
        let Some(known) = &self.known else { return body };
        let start = (self.clone(), body, Some(Pipeline::new(known)));
        stream::try_unfold(start, |(redaction, mut body, pipeline)| async move {
            let (Some(mut pipeline), Some(known)) = (pipeline, redaction.known.as_ref()) else { return Ok(None) };
            let mut out = Vec::new();
            loop {
                match body.try_next().await? {
                    Some(piece) => pipeline.push(known, &piece, &mut out),
                    None => {
                        pipeline.finish(known, &mut out);
                        let last = (!out.is_empty()).then(|| Bytes::from(out));
                        return Ok(last.map(|piece| (piece, (redaction.clone(), body, None))));
                    }
                }
                if !out.is_empty() {
                    return Ok(Some((Bytes::from(out), (redaction.clone(), body, Some(pipeline)))));
                }
            }
        })
        .boxed()
    }

    /// The secrets whose values occur in the bytes.
    pub fn names_in(&self, bytes: &[u8]) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let Some(known) = &self.known else { return names };
        for encoding in [TextEncoding::Plain, TextEncoding::Percent, TextEncoding::Json] {
            let mut search = Search::new(&known.texts, encoding);
            let mut note = |found: Segment<'_>| {
                if let Segment::Text(text) = found {
                    names.insert(known.name(text));
                }
            };
            search.push(&known.texts, bytes, &mut note);
            search.finish(&known.texts, &mut note);
        }
        names
    }

    /// Whether a value occurs in the bytes, ignoring case, as in header names and hosts.
    pub fn is_in_name(&self, bytes: &[u8]) -> bool {
        let lower = bytes.to_ascii_lowercase();
        self.known
            .iter()
            .flat_map(|known| &known.lowered)
            .any(|text| text.len() <= lower.len() && lower.windows(text.len()).any(|window| window == text.as_slice()))
    }
}

impl Known {
    fn name(&self, text: usize) -> &str {
        self.owners.get(text).and_then(|owner| self.names.get(*owner)).map_or("", String::as_str)
    }
}

/// One search per encoding, in a row: each sees the output of the one before.
struct Pipeline([Search; 3]);

impl Pipeline {
    fn new(known: &Known) -> Self {
        Self(
            [TextEncoding::Plain, TextEncoding::Percent, TextEncoding::Json]
                .map(|encoding| Search::new(&known.texts, encoding)),
        )
    }

    fn push(&mut self, known: &Known, bytes: &[u8], out: &mut Vec<u8>) {
        let [plain, percent, json] = &mut self.0;
        let mut last = |bytes: &[u8]| {
            json.push(&known.texts, bytes, &mut |found| known.write(&found, |b| out.extend_from_slice(b)));
        };
        let mut middle = |bytes: &[u8]| percent.push(&known.texts, bytes, &mut |found| known.write(&found, &mut last));
        plain.push(&known.texts, bytes, &mut |found| known.write(&found, &mut middle));
    }

    fn finish(&mut self, known: &Known, out: &mut Vec<u8>) {
        let [plain, percent, json] = &mut self.0;
        let mut rest = Vec::new();
        plain.finish(&known.texts, &mut |found| known.write(&found, |bytes| rest.extend_from_slice(bytes)));
        let mut after = Vec::new();
        percent.push(&known.texts, &rest, &mut |found| known.write(&found, |bytes| after.extend_from_slice(bytes)));
        percent.finish(&known.texts, &mut |found| known.write(&found, |bytes| after.extend_from_slice(bytes)));
        json.push(&known.texts, &after, &mut |found| known.write(&found, |bytes| out.extend_from_slice(bytes)));
        json.finish(&known.texts, &mut |found| known.write(&found, |bytes| out.extend_from_slice(bytes)));
    }
}

impl Known {
    fn write(&self, found: &Segment<'_>, mut to: impl FnMut(&[u8])) {
        match found {
            Segment::Other(bytes) => to(bytes),
            Segment::Text(text) => to(format!("[secret {}]", self.name(*text)).as_bytes()),
        }
    }
}
