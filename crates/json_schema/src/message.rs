//! The validator's errors as plain text of limited size.

use breadcrumb::{Violation, Violations};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use crate::path::Path;

/// Characters of one message, at most.
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

/// An error of a schema against the meta-schema, or of its compilation.
pub(crate) fn of_schema(error: &ValidationError<'_>) -> Violations {
    let field = path("", error.instance_path()).into_string();
    let message = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            "is no regular expression of linear time (no lookaround, no back references)".to_owned()
        }
        _ => words(error),
    };
    Violations::one(field, shorten(&message))
}

/// Adds what one error means: one violation, or one for each property that is too much.
pub(crate) fn add(root: &str, error: &ValidationError<'_>, found: &mut Vec<Violation>) {
    let place = path(root, error.instance_path());
    match error.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => {
            let mut place = place;
            place.push(name);
            found.push(Violation::new(place.into_string(), "is required"));
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected.iter().take(crate::schema::MAX_VIOLATIONS) {
                let mut place = place.clone();
                place.push(name);
                found.push(Violation::new(place.into_string(), "is no property that the schema knows"));
            }
        }
        _ => found.push(Violation::new(place.into_string(), shorten(&words(error)))),
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
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}{}", is(error)),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {limit} properties"),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {}", shorten(pattern)),
        ValidationErrorKind::Contains => "must have an item as `contains` asks".to_owned(),
        // `additionalProperties: false` with no property allowed speaks of the object.
        ValidationErrorKind::FalseSchema if error.schema_path().as_str().ends_with("Properties") => {
            "must have no properties".to_owned()
        }
        ValidationErrorKind::FalseSchema => "must not be here".to_owned(),
        ValidationErrorKind::Not { .. } => "must not match the schema under `not`".to_owned(),
        ValidationErrorKind::PropertyNames { error } => format!("has a property whose name {}", words(error)),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            format!("matches none of the {} shapes that are allowed{}", context.len(), nearest(error, context))
        }
        ValidationErrorKind::OneOfMultipleValid { context } => {
            format!("matches more than one of the {} shapes of which exactly one is allowed", context.len())
        }
        ValidationErrorKind::Referencing(_) => "has a reference that leads nowhere".to_owned(),
        _ => error.masked().to_string(),
    }
}

/// What is wrong by the shape that has the fewest errors.
fn nearest(whole: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let Some(error) = context.iter().filter(|errors| !errors.is_empty()).min_by_key(|errors| errors.len()) else {
        return String::new();
    };
    let Some(first) = error.first() else { return String::new() };
    let place = if first.instance_path() == whole.instance_path() {
        String::new()
    } else {
        path("", first.instance_path()).into_string() + " "
    };
    format!(" (by the nearest, {place}{})", words(first))
}

/// The value itself, where it is short.
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
