//! Making tools: from a creation to the first answer of the new tool, from saving a file to its
//! published version, and examples per second. Each is compared in turns with its parts.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rcrt_breadcrumb::{Isolation, NewBreadcrumb, Records};
use rcrt_load::{Histogram, Row};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::sandboxed::{self, ADD};
use crate::instance::{Answers, Instance, adding, rcrt};
use crate::run::{Run, millis};

const SECTION: &str = "making tools";
const TOOLS: usize = 40;
const SAVES: usize = 40;
const ROUNDS: usize = 10;
/// The most that one tool can have.
const EXAMPLES: usize = 50;
const SAVED_MS: f64 = 300.0;
/// The longest wait for one line of `rcrt tool dev`.
const PATIENCE: Duration = Duration::from_mins(1);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("authoring"), &[]).await?;
    let answers = Answers::follow(&instance).await?;
    let created = creations(run, &instance, &answers).await?;
    saves(run, &instance, created).await?;
    examples(run, &answers).await?;
    instance.stop().await
}

/// The definition of a tool that adds, with this many examples.
fn spec(name: &str, source: &str, examples: usize) -> Value {
    let number = json!({"type": "number", "description": "A number."});
    let example = json!({"description": "An example", "input": {"a": 1, "b": 2}, "output": {"sum": 3}});
    json!({
        "name": name, "description": "A tool of the bench.", "version": "1.0.0",
        "code": {"language": "typescript", "source": source},
        "input_schema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
        "output_schema": {"type": "object", "properties": {"sum": number}},
        "examples": vec![example; examples],
    })
}

/// Returns the median of one creation, in milliseconds.
async fn creations(run: &mut Run, instance: &Instance, answers: &Answers) -> anyhow::Result<f64> {
    let client = instance.client();
    let plain = adding("bench-plain", Isolation::Call).add(&client).await?;
    let (mut answered, mut created) = (Histogram::new(), Histogram::new());
    let (mut called, mut inserted) = (Histogram::new(), Histogram::new());
    let input = || json!({"a": 1, "b": 2});
    for number in 0..run.times(TOOLS) {
        let begun = Instant::now();
        call(answers, &plain, input()).await?;
        called.record(begun.elapsed());
        let begun = Instant::now();
        let record = NewBreadcrumb { title: format!("Record {number}"), ..NewBreadcrumb::default() };
        client.create(record, None).await?;
        inserted.record(begun.elapsed());

        let name = format!("bench-made-{number}");
        let begun = Instant::now();
        let output = call(answers, "create_tool", json!({"tool_spec": spec(&name, ADD, 1)})).await?;
        created.record(begun.elapsed());
        ensure!(output["status"] == "created", "the creation of a tool was rejected: {output}");
        call(answers, &name, input()).await?;
        answered.record(begun.elapsed());
    }
    let [answered, created, called, inserted] =
        [answered, created, called, inserted].map(|histogram| millis(histogram.quantile(0.5)));
    let parts = "a plain call and a plain insert";
    run.push(Row::new(SECTION, "a call of another tool, p50", called, "ms"));
    run.push(Row::new(SECTION, "one record, p50", inserted, "ms"));
    run.push(
        Row::new(SECTION, "created, p50", created, "ms")
            .ratio(called + inserted, parts)
            .note("create_tool with one example: validated, loaded, the example run, the record written"),
    );
    run.push(
        Row::new(SECTION, "from a creation to the first answer, p50", answered, "ms").ratio(called + inserted, parts),
    );
    Ok(created)
}

/// The output of a call.
async fn call(answers: &Answers, tool: &str, input: Value) -> anyhow::Result<Value> {
    let context = answers.call(tool, input).await.map_err(anyhow::Error::msg)?;
    ensure!(context.get("status") == Some(&json!("success")), "{tool}: {:?}", context.get("error"));
    Ok(context.get("output").cloned().unwrap_or_default())
}

async fn saves(run: &mut Run, instance: &Instance, created: f64) -> anyhow::Result<()> {
    let folder = run.folder("saved-tools");
    std::fs::create_dir_all(&folder)?;
    let mut context = spec("bench-saved", "", 1);
    context.as_object_mut().context("a definition is an object")?.remove("code");
    let record = json!({"schema_name": "tool.code.v1", "title": "bench-saved", "tags": ["tool"], "context": context});
    std::fs::write(folder.join("bench-saved.ts"), ADD)?;
    std::fs::write(folder.join("bench-saved.json"), record.to_string())?;
    let mut dev = Dev::start(instance, &folder)?;
    dev.published().await?;
    let mut saved = Histogram::new();
    let aside = run.folder("saved.ts");
    for number in 0..run.times(SAVES) {
        std::fs::write(&aside, format!("{ADD}\n// {number}\n"))?;
        let begun = Instant::now();
        std::fs::rename(&aside, folder.join("bench-saved.ts"))?;
        dev.published().await?;
        saved.record(begun.elapsed());
    }
    dev.child.kill().await?;
    let (p50, p99) = (millis(saved.quantile(0.5)), millis(saved.quantile(0.99)));
    run.push(
        Row::new(SECTION, "from a save to the published version, p50", p50, "ms")
            .target(format!("≤ {SAVED_MS} ms"), p50 <= SAVED_MS)
            .ratio(created, "a creation")
            .note("rcrt tool dev: it looks at the files every 50 ms, and a change must be the same twice"),
    );
    run.push(Row::new(SECTION, "from a save to the published version, p99", p99, "ms"));
    Ok(())
}

/// `rcrt tool dev`, which prints one line for each version.
struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Dev {
    fn start(instance: &Instance, folder: &Path) -> anyhow::Result<Self> {
        let mut command = rcrt()?;
        command.args(["tool", "dev", "--output", "json", "--data"]).arg(&instance.data).arg(folder);
        let mut child = command.stdout(Stdio::piped()).spawn().context("rcrt tool dev cannot be started")?;
        let lines = BufReader::new(child.stdout.take().context("rcrt tool dev has no output")?).lines();
        Ok(Self { child, lines })
    }

    /// Waits for the line of the next version.
    async fn published(&mut self) -> anyhow::Result<()> {
        let line =
            tokio::time::timeout(PATIENCE, self.lines.next_line()).await.context("rcrt tool dev is silent")??;
        let line: Value = serde_json::from_str(&line.context("rcrt tool dev ended")?)?;
        ensure!(line["published"]["is_in_effect"] == true, "a saved tool was not published: {line}");
        Ok(())
    }
}

async fn examples(run: &mut Run, answers: &Answers) -> anyhow::Result<()> {
    let sandbox = sandboxed::start(2).await?;
    let plain = sandboxed::invocation(ADD, Isolation::Call);
    let (mut tested, mut ran) = (Duration::ZERO, Duration::ZERO);
    let rounds = run.times(ROUNDS).max(1);
    for _ in 0..rounds {
        let begun = Instant::now();
        let output = call(answers, "test_tool", json!({"tool_spec": spec("bench-tested", ADD, EXAMPLES)})).await?;
        tested += begun.elapsed();
        ensure!(output["passed"] == true, "an example failed: {output}");
        let begun = Instant::now();
        for _ in 0..EXAMPLES {
            sandboxed::run(&sandbox, plain.clone()).await.map_err(anyhow::Error::msg)?;
        }
        ran += begun.elapsed();
    }
    sandbox.close().await;
    let rate = |took: Duration| (rounds * EXAMPLES) as f64 / took.as_secs_f64();
    run.push(Row::new(SECTION, "plain runs in the sandbox, one after the other", rate(ran), "runs/s"));
    run.push(
        Row::new(SECTION, "examples, one after the other", rate(tested), "examples/s")
            .ratio(rate(ran), "plain runs in the sandbox")
            .note(format!("one call of test_tool runs {EXAMPLES}, each in a fresh isolate with a world of its own")),
    );
    Ok(())
}
