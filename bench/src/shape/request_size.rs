//! Larger and larger requests. Each is stored, told in an event and handed to the tool, which says how long it was.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::Isolation;
use load::Target;
use serde_json::{Value, json};

use super::point::{Point, Shape};
use crate::house::{Answers, Tool};
use crate::run::Run;

/// Characters, of one byte each.
const SIZES: [usize; 6] = [1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000];
const IN_FLIGHT: usize = 8;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let house = run.rested_house(&run.folder("request-size"), &[]).await?;
    let answers = Answers::follow(&house).await?;
    let source = "export async function execute(input: { text: string }): Promise<{ length: number }> {\n  \
                  return { length: input.text.length };\n}\n";
    let text = json!({"text": {"type": "string", "description": "A text."}});
    let tool = Tool::code("bench-length", source, Isolation::Tool, &text, &json!({"text": "abc"}));
    let tool = tool.add(&house.client()).await?;
    let mut shape = Shape { name: "request", along: "bytes in a request", latency_of: "at rest", points: Vec::new() };
    for size in SIZES {
        let text = "payload ".repeat(size / 8);
        let target: Arc<dyn Target> = Arc::new(Sending { answers: answers.clone(), tool: tool.clone(), text });
        shape.points.push(Point::of(run, size as f64, &target, IN_FLIGHT).await);
    }
    house.stop().await?;
    shape.put(run)
}

/// Sends the same text again and again, and looks whether the tool got all of it.
struct Sending {
    answers: Arc<Answers>,
    tool: String,
    text: String,
}

#[async_trait]
impl Target for Sending {
    async fn call(&self, _number: u64) -> Result<(), String> {
        let context = self.answers.call(&self.tool, json!({"text": self.text})).await?;
        match context.get("output").and_then(|output| output["length"].as_u64()) {
            Some(length) if length == self.text.len() as u64 => Ok(()),
            _ => Err(context.get("error").map_or_else(|| "the tool got another text".into(), Value::to_string)),
        }
    }
}
