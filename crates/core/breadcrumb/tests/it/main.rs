//! Tests of the shared types through their public interface. Each module mirrors the source that it
//! tests.
#![allow(clippy::unwrap_used)]

mod breadcrumb;
mod catalog;
mod deprecation;
mod event;
mod exact_numbers;
mod foreign_text;
mod host;
mod json_size;
mod model_call;
mod near_miss;
mod nearest;
mod permissions;
mod profile;
mod public_address;
mod runner_protocol;
mod secret;
mod selector;
mod tool_definition;
mod tool_request;
mod tool_response;
mod tool_shadow;
mod tool_source;
mod traceparent;
mod ttl;
mod typed_json;
mod version_pin;

use serde_json::{Map, Value};

/// The object of a `json!` literal.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        other => panic!("not an object: {other}"),
    }
}
