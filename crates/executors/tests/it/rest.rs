use breadcrumb::{ToolDefinition, schema_names};
use serde_json::{Value, json};

pub fn definition(implementation: Value, required_secrets: &[&str]) -> ToolDefinition {
    let context = json!({"name": "web", "implementation": implementation, "required_secrets": required_secrets});
    ToolDefinition::read(schema_names::TOOL_LEGACY, context.as_object().unwrap(), None, None).unwrap()
}
