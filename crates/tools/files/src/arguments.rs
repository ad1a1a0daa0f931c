//! Deserializes a tool's input.

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub fn read<T: DeserializeOwned>(input: &Value) -> Result<T, ToolFailure> {
    T::deserialize(input).map_err(|error| invalid(error.to_string()))
}

pub fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, message)
}
