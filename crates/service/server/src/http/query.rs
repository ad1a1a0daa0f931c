//! The query of a request. A parameter that no handler reads is an error.

use std::str::FromStr;

use axum::{extract::FromRequestParts, http::request::Parts};
use rcrt_breadcrumb::{Violations, intended_field};
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::http::json_body;
use crate::http::problem::Problem;
use crate::routes::rcrt_compat;

/// The largest limit that RCRT's clients can ask for.
const MOST_ASKED: u32 = i32::MAX as u32;

/// The applied limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppliedLimit {
    pub applied: u32,
    /// The caller asked for more.
    pub is_bounded: bool,
}

/// The parameters that were not read yet.
pub struct Query {
    pairs: Vec<(String, String)>,
    /// The names of the parameters that were read.
    known: Vec<&'static str>,
    found: Violations,
    /// Ignore unknown parameters.
    is_rcrt: bool,
}

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        Self {
            pairs: form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect(),
            known: Vec::new(),
            found: Violations::default(),
            is_rcrt: false,
        }
    }

    /// All values of a parameter that can be repeated.
    pub fn take_all(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        self.take_other(name)
    }

    /// The same for a parameter that errors do not offer.
    pub fn take_other(&mut self, name: &str) -> Vec<String> {
        let (taken, rest) = std::mem::take(&mut self.pairs).into_iter().partition(|(key, _)| key == name);
        self.pairs = rest;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// The value of a parameter that can occur only once.
    pub fn take(&mut self, name: &'static str) -> Result<Option<String>, Violations> {
        let mut values = self.take_all(name);
        if values.len() > 1 {
            return Err(Violations::one(name, "must be given only once"));
        }
        Ok(values.pop())
    }

    /// A parsed parameter. An error is collected for [`Query::finish`], and `default` is returned.
    pub fn take_as<T: FromStr>(&mut self, name: &'static str, what: &str, default: T) -> T {
        match self.take(name) {
            Ok(None) => default,
            Ok(Some(text)) => text.parse().unwrap_or_else(|_| {
                self.found.add(name, format!("is {:?}; must be {what}", shortened(&text)));
                default
            }),
            Err(found) => {
                self.found.0.extend(found.0);
                default
            }
        }
    }

    /// The same for a parameter without a default.
    pub fn take_optional<T: FromStr>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let text = self.take_text(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(_) => {
                self.found.add(name, format!("is {:?}; must be {what}", shortened(&text)));
                None
            }
        }
    }

    /// A parameter as text; errors as in [`Query::take_as`].
    pub fn take_text(&mut self, name: &'static str) -> Option<String> {
        self.take(name).unwrap_or_else(|found| {
            self.found.0.extend(found.0);
            None
        })
    }

    /// All values of a parameter that contains JSON objects; errors as in [`Query::take_as`].
    pub fn take_objects<T: DeserializeOwned>(&mut self, name: &'static str) -> Vec<T> {
        let mut taken = Vec::new();
        for text in self.take_all(name) {
            match json_body::read_object(text.as_bytes()) {
                Ok(value) => taken.push(value),
                Err((field, message)) => {
                    let field = if field.is_empty() { name.to_owned() } else { format!("{name}.{field}") };
                    self.found.add(field, message);
                }
            }
        }
        taken
    }

    /// The limit from 1 to `most`, by one of these names. RCRT's clients can also ask for more,
    /// which is reduced, and by several names, of which the smallest counts.
    pub fn take_limit(&mut self, names: &[&'static str], most: u32) -> Option<AppliedLimit> {
        let largest = if self.is_rcrt { MOST_ASKED } else { most };
        let given: Vec<(&str, String)> = names.iter().filter_map(|name| Some((*name, self.take_text(name)?))).collect();
        if let [(first, _), (second, _), ..] = given.as_slice()
            && !self.is_rcrt
        {
            self.wrong(second, format!("means the same as {first}; give only one of them"));
        }
        let asked = given.iter().filter_map(|(name, text)| {
            let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let number = digits.and_then(|text| text.parse().ok()).filter(|number| (1..=largest).contains(number));
            if number.is_none() {
                self.wrong(name, format!("is {:?}; must be a number from 1 to {largest}", shortened(text)));
            }
            number
        });
        let asked: u32 = asked.min()?;
        let applied = asked.min(most);
        Some(AppliedLimit { applied, is_bounded: asked > most })
    }

    pub fn wrong(&mut self, name: &str, message: impl Into<String>) {
        self.found.add(name, message);
    }

    /// `Ok` if every parameter was read and is valid.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in self.pairs.iter().filter(|_| !self.is_rcrt) {
            let meant = intended_field(name, self.known.iter().copied());
            let hint = match meant {
                Some(meant) => format!("did you mean {meant}?"),
                None if self.known.is_empty() => "the path has no parameters".to_owned(),
                None => format!("expected one of {}", self.known.join(", ")),
            };
            self.found.add(shortened(name), format!("is not a parameter of this path; {hint}"));
        }
        Ok(self.found.into_result()?)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(Self { is_rcrt: rcrt_compat::is_on(&parts.extensions), ..Self::parse(parts.uri.query()) })
    }
}
