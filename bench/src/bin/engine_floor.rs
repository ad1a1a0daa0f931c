//! A bare engine with the workers' own snapshot and without anything that RCRT adds: the least that
//! an isolate, a tool's module and a call cost on this machine.
//!
//! `engine_floor loop SECONDS` makes, loads, calls and drops isolates. `engine_floor idle N` holds
//! N isolates that have run the tool, and prints the memory of each. Both print JSON. `engine_floor
//! snapshot FILE` writes the snapshot for them, because a process that has made a snapshot cannot
//! make other isolates.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use deno_core::{JsRuntime, ModuleSpecifier, PollEventLoopOptions, RuntimeOptions, v8};
use serde_json::json;

/// The tool of every comparison, types stripped.
const TOOL: &str = "export async function execute(input) { return { sum: input.a + input.b }; }";
const INPUT: &str = r#"{"a":1,"b":2}"#;
/// The median of this many calls of one isolate is the cost of a warm call.
const WARM_CALLS: u32 = 200;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (what, how_much) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    JsRuntime::init_platform(None);
    if what == "snapshot" {
        let snapshot = rcrt_isolate::bare_engine::snapshot().map_err(anyhow::Error::msg)?;
        return fs::write(how_much, snapshot).context("the snapshot cannot be written");
    }
    let snapshot = snapshot()?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let found = tokio.block_on(async {
        match what.as_str() {
            "loop" => in_a_loop(snapshot, Duration::from_secs_f64(how_much.parse().context("SECONDS")?)).await,
            "idle" => idle(snapshot, how_much.parse().context("N")?).await,
            _ => bail!("engine_floor loop SECONDS | engine_floor idle N"),
        }
    })?;
    #[allow(clippy::print_stdout)]
    {
        println!("{found}");
    }
    // Isolates would have to be dropped in the reverse order of their creation. The process exits
    // anyway.
    std::process::exit(0)
}

fn snapshot() -> anyhow::Result<&'static [u8]> {
    let file = tempfile::NamedTempFile::new()?;
    let status = Command::new(std::env::current_exe()?).arg("snapshot").arg(file.path()).status()?;
    if !status.success() {
        bail!("the process that makes the snapshot failed: {status}");
    }
    Ok(Box::leak(fs::read(file.path())?.into_boxed_slice()))
}

fn make(snapshot: &'static [u8]) -> anyhow::Result<JsRuntime> {
    Ok(JsRuntime::try_new(RuntimeOptions {
        extensions: rcrt_isolate::bare_engine::extensions(),
        startup_snapshot: Some(snapshot),
        ..RuntimeOptions::default()
    })?)
}

async fn load(runtime: &mut JsRuntime) -> anyhow::Result<v8::Global<v8::Function>> {
    let specifier = ModuleSpecifier::parse("tool:///add.js")?;
    let module = runtime.load_main_es_module_from_code(&specifier, TOOL.to_owned()).await?;
    let evaluated = Box::pin(runtime.mod_evaluate(module));
    runtime.with_event_loop_promise(evaluated, PollEventLoopOptions::default()).await?;
    let namespace = runtime.get_module_namespace(module)?;
    deno_core::scope!(scope, runtime);
    let namespace = v8::Local::new(scope, namespace);
    let name = v8::String::new(scope, "execute").context("a name")?;
    let execute = namespace.get(scope, name.into()).context("the tool exports execute")?;
    Ok(v8::Global::new(scope, v8::Local::<'_, v8::Function>::try_from(execute)?))
}

/// JSON in, JSON out, as a worker does it.
async fn call(runtime: &mut JsRuntime, execute: &v8::Global<v8::Function>) -> anyhow::Result<String> {
    let input = {
        deno_core::scope!(scope, runtime);
        let text = v8::String::new(scope, INPUT).context("an input")?;
        let input = v8::json::parse(scope, text).context("an input")?;
        v8::Global::new(scope, input)
    };
    let answered = runtime.call_with_args(execute, &[input]);
    let answer = runtime.with_event_loop_promise(Box::pin(answered), PollEventLoopOptions::default()).await?;
    deno_core::scope!(scope, runtime);
    let answer = v8::Local::new(scope, answer);
    Ok(v8::json::stringify(scope, answer).context("a result")?.to_rust_string_lossy(scope))
}

async fn in_a_loop(snapshot: &'static [u8], time: Duration) -> anyhow::Result<serde_json::Value> {
    let (mut made, mut loaded, mut called) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < time || made.is_empty() {
        // Nothing here waits, so the task budget of the runtime would run out, and promises would
        // look unsettled.
        tokio::task::yield_now().await;
        let start = Instant::now();
        let mut runtime = make(snapshot)?;
        made.push(start.elapsed());
        let start = Instant::now();
        let execute = load(&mut runtime).await?;
        loaded.push(start.elapsed());
        let start = Instant::now();
        let answer = call(&mut runtime, &execute).await?;
        called.push(start.elapsed());
        if answer != r#"{"sum":3}"# {
            bail!("the tool returned {answer}");
        }
    }
    let per_second = made.len() as f64 / begun.elapsed().as_secs_f64();
    let mut runtime = make(snapshot)?;
    let execute = load(&mut runtime).await?;
    let mut warm = Vec::new();
    for _ in 0..WARM_CALLS {
        tokio::task::yield_now().await;
        let start = Instant::now();
        call(&mut runtime, &execute).await?;
        warm.push(start.elapsed());
    }
    Ok(json!({
        "per_second": per_second,
        "made_us": median_us(made),
        "loaded_us": median_us(loaded),
        "called_us": median_us(called),
        "warm_call_us": median_us(warm),
    }))
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e6
}

async fn idle(snapshot: &'static [u8], isolates: u64) -> anyhow::Result<serde_json::Value> {
    let mut kept = Vec::new();
    // The first isolate also loads the engine itself.
    kept.push(used(snapshot).await?);
    let before = proportional_bytes()?;
    for _ in 0..isolates {
        kept.push(used(snapshot).await?);
    }
    let grown = proportional_bytes()?.saturating_sub(before);
    std::mem::forget(kept);
    Ok(json!({"isolates": isolates, "bytes_each": grown as f64 / isolates.max(1) as f64}))
}

async fn used(snapshot: &'static [u8]) -> anyhow::Result<JsRuntime> {
    tokio::task::yield_now().await;
    let mut runtime = make(snapshot)?;
    let execute = load(&mut runtime).await?;
    call(&mut runtime, &execute).await?;
    Ok(runtime)
}

/// Proportional memory of this process, in bytes.
fn proportional_bytes() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").context("memory is only measured on Linux")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("no Pss")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}
