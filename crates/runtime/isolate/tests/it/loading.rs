//! Code that cannot be loaded is reported before it is called.

use std::sync::Arc;

use rcrt_breadcrumb::{ToolDefinition, ToolFailure};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::{Executor, SandboxExecutor};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{PATIENCE_MS, block_on, start};

fn tool(source: &str, timeout_ms: u64) -> ToolDefinition {
    let context = json!({
        "name": "broken",
        "description": "d",
        "code": {"language": "typescript", "source": source},
        "input_schema": {"type": "object"},
        "output_schema": {},
        "limits": {"timeout_ms": timeout_ms},
    });
    ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None).unwrap()
}

async fn load(executor: &SandboxExecutor, source: &str) -> Result<(), ToolFailure> {
    load_within(executor, source, PATIENCE_MS).await
}

async fn load_within(executor: &SandboxExecutor, source: &str, timeout_ms: u64) -> Result<(), ToolFailure> {
    executor.load(&tool(source, timeout_ms), Uuid::from_u128(1), Uuid::new_v4(), 1).await
}

#[test]
fn load_errors_have_a_line() {
    let execute = "export async function execute(input: unknown) { throw new Error('called') }\n";
    let cases = [
        ("export async function execute() {}", "", Value::Null),
        ("interface X {\n  y: 1\n}\nthrow new Error('at the top');\n", "at the top", json!(4)),
        ("\nexport { nope };\n", "nope", json!(2)),
        ("\nconst pattern = /(/;\n", "regular expression", json!(2)),
        ("const execute = 1; export { execute };\n", "does not export a function execute", Value::Null),
        ("await fetch('https://example.org');\n", "only in execute", json!(1)),
    ];
    block_on(async {
        let sandbox = Arc::new(start(|_| {}).await);
        let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
        let executor = SandboxExecutor::new(sandbox.clone(), egress);
        load(&executor, execute).await.unwrap();
        for (top, words, line) in cases {
            let source = if top.contains("execute") { top.to_owned() } else { format!("{top}{execute}") };
            if words.is_empty() {
                // It loads; with the same export twice it does not.
                load(&executor, &source).await.unwrap();
                let failure = load(&executor, &format!("{source}\n{source}")).await.unwrap_err();
                assert!(failure.message.contains("execute"), "{failure}");
                continue;
            }
            let failure = load(&executor, &source).await.expect_err(top);
            let error = failure.details.unwrap()["errors"][0].clone();
            assert!(error["message"].as_str().unwrap().contains(words), "{top}: {error}");
            assert_eq!((&error["field"], &error["line"]), (&json!("code.source"), &line), "{top}: {error}");
        }
        let endless = format!("while (true) {{}}\n{execute}");
        let failure = load_within(&executor, &endless, 300).await.unwrap_err();
        let error = failure.details.unwrap()["errors"][0].clone();
        assert!(error["message"].as_str().unwrap().contains("did not end within 1000 ms"), "{error}");
        assert_eq!((&error["field"], &error["line"]), (&json!("code.source"), &Value::Null), "{error}");
        sandbox.close().await;
    });
}
