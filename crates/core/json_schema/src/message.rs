//! The validator's errors as plain text of limited size.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use rcrt_breadcrumb::{Violation, Violations};
use serde_json::Value;

use crate::alternatives::Alternatives;
use crate::path::Path;

/// The most characters of one message.
const LONGEST: usize = 400;

pub(crate) fn shorten(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

fn path(root: &str, location: &Location) -> Path {
    let mut path = Path::new(root);
    for segment in location {
        match segment {
            LocationSegment::Property(name) => path.push(&name),
            LocationSegment::Index(index) => path.push_index(index),
        }
    }
    path
}

/// The violation for an error against the meta-schema, or for a compile error.
pub(crate) fn of_schema(error: &ValidationError<'_>) -> Violations {
    let field = path("", error.instance_path()).into_string();
    let message = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            "is not a supported regular expression (linear time: no lookaround, no back references)".to_owned()
        }
        _ => words(error),
    };
    Violations::one(field, shorten(&message))
}

/// Adds the violations of one error: one, or one for each additional property.
pub(crate) fn add(root: &str, error: &ValidationError<'_>, alternatives: &Alternatives, found: &mut Vec<Violation>) {
    let location = path(root, error.instance_path());
    match error.kind() {
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            let names = alternatives.at(error.schema_path().as_str());
            let message = names.map_or_else(|| words(error), |names| format!("must have only one of {names}"));
            found.push(Violation::new(location.into_string(), shorten(&message)));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let is_missing = |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::Required { .. });
            let names = alternatives.at(error.schema_path().as_str());
            let names = names.filter(|_| context.iter().flatten().all(is_missing));
            let message = names.map_or_else(|| words(error), |names| format!("must have {names}"));
            found.push(Violation::new(location.into_string(), shorten(&message)));
        }
        ValidationErrorKind::Required { property: Value::String(name) } => {
            let mut location = location;
            location.push(name);
            found.push(Violation::new(location.into_string(), "is required"));
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected.iter().take(crate::schema::MAX_VIOLATIONS) {
                let mut location = location.clone();
                location.push(name);
                let meant = alternatives.meant(error.schema_path().as_str(), name);
                let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                let message = format!("is not a property of the schema{hint}");
                found.push(Violation::new(location.into_string(), message));
            }
        }
        _ => found.push(Violation::new(location.into_string(), shorten(&words(error)))),
    }
}

fn words(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(wanted) => wanted.to_string(),
                TypeKind::Multiple(wanted) => {
                    wanted.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            format!("must be of type {wanted}, is {}", kind_of(error.instance()))
        }
        ValidationErrorKind::Required { property } => format!("must have the property {property}"),
        ValidationErrorKind::Custom { message, .. } => message.clone(),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}{}", is(error)),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}{}", is(error)),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be above {limit}{}", is(error)),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be below {limit}{}", is(error)),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {limit} properties"),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        ValidationErrorKind::Contains => "must have an item that matches the schema under `contains`".to_owned(),
        // Reported for the object when `additionalProperties: false` allows no property.
        ValidationErrorKind::FalseSchema if error.schema_path().as_str().ends_with("Properties") => {
            "must have no properties".to_owned()
        }
        ValidationErrorKind::FalseSchema => "is not allowed here".to_owned(),
        ValidationErrorKind::Not { .. } => "must not match the schema under `not`".to_owned(),
        ValidationErrorKind::PropertyNames { error } => format!("has a property whose name {}", words(error)),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            format!("matches none of the {} allowed schemas{}", context.len(), nearest(error, context))
        }
        ValidationErrorKind::OneOfMultipleValid { context } => {
            format!("matches more than one of {} schemas, of which exactly one must match", context.len())
        }
        ValidationErrorKind::Referencing(_) => "has an unresolved reference".to_owned(),
        _ => error.masked().to_string(),
    }
}

/// The first error of the variant with the fewest errors.
fn nearest(whole: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let Some(error) = context.iter().filter(|errors| !errors.is_empty()).min_by_key(|errors| errors.len()) else {
        return String::new();
    };
    let Some(first) = error.first() else { return String::new() };
    let location = if first.instance_path() == whole.instance_path() {
        String::new()
    } else {
        path("", first.instance_path()).into_string() + " "
    };
    format!(" (closest: {location}{})", words(first))
}

/// Quotes the value if it is short.
fn is(error: &ValidationError<'_>) -> String {
    match error.instance().as_ref() {
        Value::Number(number) => format!(", is {number}"),
        _ => String::new(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
