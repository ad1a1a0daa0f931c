//! `enum`, `const` and `uniqueItems` by hash. Each check costs time in proportion to its value, not
//! to the number of allowed values.
//!
//! The validator's own `enum` compares each value in turn if they have more than one type. Its
//! `uniqueItems` uses a hash function for which anybody can construct collisions.

use jsonschema::{Keyword, ValidationError};
use rcrt_breadcrumb::ValueSet;
use serde_json::Value;

use crate::message::shorten;

/// `enum` and `const`: one of these values.
pub(crate) struct OneOf {
    values: ValueSet,
    message: String,
}

impl OneOf {
    pub(crate) fn of(values: &Value) -> Self {
        // The meta-schema only accepts an array here.
        let set = values.as_array().into_iter().flatten().collect();
        Self { values: set, message: format!("must be one of {}", shorten(&values.to_string())) }
    }

    pub(crate) fn only(value: &Value) -> Self {
        let message = format!("must be {}", shorten(&value.to_string()));
        Self { values: std::iter::once(value).collect(), message }
    }
}

impl<'i> Keyword<'i> for OneOf {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom(self.message.clone())) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.values.contains(instance)
    }
}

/// `uniqueItems`, if it is true.
pub(crate) struct Unique {
    is_asked: bool,
}

impl Unique {
    pub(crate) fn if_asked(by: &Value) -> Self {
        Self { is_asked: *by == Value::Bool(true) }
    }
}

impl<'i> Keyword<'i> for Unique {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom("must not have duplicate items")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        !self.is_asked || instance.as_array().is_none_or(|items| ValueSet::are_distinct(items))
    }
}
