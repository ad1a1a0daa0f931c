//! Requests of increasing size. Each is stored, sent in an event and passed to the tool. The tool
//! returns the length of the text, or the text itself, so that the response is stored and sent as
//! well.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::Isolation;
use rcrt_load::report::number;
use rcrt_load::{Row, Target};
use serde_json::{Value, json};

use super::point::{Point, Shape};
use crate::instance::{Answers, Tool};
use crate::run::Run;

/// Characters, of one byte each.
const SIZES: [usize; 6] = [1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000];
const IN_FLIGHT: usize = 8;
const SECTION: &str = "the shape of cost: bytes in request and response";
/// Calls per second with the largest request and response.
const LEAST: f64 = 100.0;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("request-size"), &[]).await?;
    let answers = Answers::follow(&instance).await?;
    let source = "export async function execute(input: { text: string }): Promise<{ length: number }> {\n  \
                  return { length: input.text.length };\n}\n";
    let tool = Tool::code("bench-length", source, Isolation::Tool, &text_property(), &json!({"text": "abc"}));
    let tool = tool.add(&instance.client()).await?;
    let source = "export async function execute(input: { text: string }): Promise<{ length: number; text: string }> {\n  \
                  return { length: input.text.length, text: input.text };\n}\n";
    let echo = Tool::code("bench-echo", source, Isolation::Tool, &text_property(), &json!({"text": "abc"}));
    let echo = echo.add(&instance.client()).await?;
    let both = "bytes in request and response";
    for (name, along, tool) in [("request-size-in", "bytes in a request", tool), ("request-size-both", both, echo)] {
        let mut shape = Shape { name, along, latency_of: "at low load", points: Vec::new() };
        for size in SIZES {
            let text = prose(size);
            let target: Arc<dyn Target> = Arc::new(Sending { answers: answers.clone(), tool: tool.clone(), text });
            shape.points.push(Point::of(run, size as f64, &target, IN_FLIGHT).await);
        }
        shape.put(run)?;
        let Some(last) = shape.points.last().filter(|_| along == both) else { continue };
        let row = Row::new(SECTION, format!("{} {both}: rate", number(last.x)), last.per_second, "calls/s");
        run.push(row.target(format!("≥ {LEAST} calls/s"), last.missed == 0 && last.per_second >= LEAST));
    }
    instance.stop().await
}

fn text_property() -> Value {
    json!({"text": {"type": "string", "description": "A text."}})
}

/// A text of `size` bytes with words as in a language: a few are frequent and most are rare. The
/// same text each time.
fn prose(size: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        // The nth word has a probability proportional to 1/n.
        let rank = 20_000_f64.powf(random.f64()) as u64;
        let mut word = rank.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for _ in 0..2 + rank.ilog2() / 2 {
            text.push(char::from(b'a' + (word % 26) as u8));
            word /= 26;
        }
        text.push(' ');
    }
    text.truncate(size);
    text
}

/// Sends the same text again and again, and checks that the tool got all of it.
struct Sending {
    answers: Arc<Answers>,
    tool: String,
    text: String,
}

#[async_trait]
impl Target for Sending {
    async fn call(&self, _number: u64) -> Result<(), String> {
        let context = self.answers.call_for_all(&self.tool, json!({"text": self.text})).await?;
        match context.get("output").and_then(|output| output["length"].as_u64()) {
            Some(length) if length == self.text.len() as u64 => Ok(()),
            _ => Err(context.get("error").map_or_else(|| "the tool got another text".into(), Value::to_string)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::prose;

    #[test]
    fn prose_has_its_size_and_a_natural_mix_of_words() {
        let text = prose(64_000);
        assert_eq!(text.len(), 64_000);
        assert_eq!(text, prose(64_000));
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let different: HashSet<_> = words.iter().collect();
        assert!(different.len() > 1_000 && different.len() * 2 < words.len(), "{} of {}", different.len(), words.len());
    }
}
