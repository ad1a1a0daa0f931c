//! The tools that a bench calls.

use std::time::Duration;

use anyhow::bail;
use rcrt_breadcrumb::{Isolation, NewBreadcrumb, Records, schema_names};
use rcrt_client::Client;
use serde_json::{Map, Value, json};

/// How long a runner can take to offer a new tool.
const OFFERED: u32 = 1200;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A tool as its author writes it.
pub struct Tool {
    pub name: String,
    record: NewBreadcrumb,
}

/// The tool of every comparison: adds two numbers.
pub fn adding(name: &str, isolation: Isolation) -> Tool {
    let source = "export async function execute(input: { a: number; b: number }): Promise<{ sum: number }> {\n  \
                  return { sum: input.a + input.b };\n}\n";
    let number = json!({"type": "number", "description": "A number."});
    Tool::code(name, source, isolation, &json!({"a": number, "b": number}), &json!({"a": 1, "b": 2}))
}

impl Tool {
    /// A tool in TypeScript whose input has these properties, all of them required.
    pub fn code(name: &str, source: &str, isolation: Isolation, properties: &Value, example: &Value) -> Self {
        let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
        let context = json!({
            "name": name, "description": "A tool of the bench.", "version": "1.0.0",
            "code": {"language": "typescript", "source": source},
            "input_schema": {"type": "object", "properties": properties, "required": required},
            "output_schema": {},
            "isolation": isolation,
            "examples": [{"description": "An example.", "input": example}],
        });
        Self::of(name, schema_names::TOOL_CODE, context)
    }

    /// A tool in TypeScript that fetches this address and returns the status.
    pub fn fetching(name: &str, url: &str, host: &str, timeout_ms: u64) -> Self {
        let source = format!(
            "export async function execute(): Promise<{{ status: number }}> {{\n  \
             const answer = await fetch(\"{url}\");\n  await answer.text();\n  return {{ status: answer.status }};\n}}\n"
        );
        let mut tool = Self::code(name, &source, Isolation::Call, &json!({}), &json!({}));
        tool.record.context.insert("permissions".into(), json!({"net": [host]}));
        tool.record.context.insert("limits".into(), json!({"timeout_ms": timeout_ms}));
        tool
    }

    /// An http tool that makes one GET request to this address.
    pub fn get(name: &str, url: &str, host: &str, timeout_ms: u64) -> Self {
        let context = json!({
            "name": name, "description": "A tool of the bench.", "version": "1.0.0",
            "definition": {
                "inputSchema": {"type": "object", "properties": {}},
                "outputSchema": {},
                "examples": [{"description": "An example.", "input": {}}],
            },
            "implementation": {"type": "http", "method": "GET", "url": url},
            "permissions": {"net": [host]},
            "limits": {"timeout_ms": timeout_ms},
        });
        Self::of(name, schema_names::TOOL_V1, context)
    }

    fn of(name: &str, schema: &str, context: Value) -> Self {
        let context = match context {
            Value::Object(context) => context,
            _ => Map::new(),
        };
        let record = NewBreadcrumb {
            title: name.into(),
            context,
            tags: vec!["tool".into(), format!("tool:{name}"), "workspace:tools".into()],
            schema_name: Some(schema.into()),
            ..NewBreadcrumb::default()
        };
        Self { name: name.into(), record }
    }

    /// Writes the tool's record and returns its name.
    pub async fn write(self, client: &Client) -> anyhow::Result<String> {
        client.create(self.record, None).await?;
        Ok(self.name)
    }

    /// Writes the tool's record and waits until a runner offers it.
    pub async fn add(self, client: &Client) -> anyhow::Result<String> {
        let name = self.write(client).await?;
        for _ in 0..OFFERED {
            if client.tool(&name).await.is_ok() {
                return Ok(name);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("no runner offers the tool {name}; `rcrt doctor` says why")
    }
}
