//! Records of tools, as their authors write them.

use rcrt_breadcrumb::NewBreadcrumb;
use serde_json::{Value, json};

/// A tool of the tests.
pub fn tool(name: &str, source: &str, input_schema: &Value, extra: &Value) -> NewBreadcrumb {
    let mut context = json!({
        "name": name, "description": "A tool of the tests.", "version": "1.0.0",
        "code": {"language": "typescript", "source": source},
        "input_schema": input_schema,
        "output_schema": {},
        "examples": [{"description": "An example.", "input": {"n": 1}}],
    });
    context.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    NewBreadcrumb {
        title: name.into(),
        context: context.as_object().unwrap().clone(),
        tags: vec!["tool".into(), format!("tool:{name}"), "workspace:tools".into()],
        schema_name: Some("tool.code.v1".into()),
        ..NewBreadcrumb::default()
    }
}
