//! `memory_mb` is one sum: heap, strings, array buffers and WebAssembly together.

use rcrt_breadcrumb::{ErrorCode, Isolation};
use serde_json::{Value, json};

use crate::fixture::{PATIENCE_MS, block_on, function, invocation, run_in, shared, start, value};

fn with(memory_mb: u64, body: &str) -> Result<Value, rcrt_breadcrumb::ToolFailure> {
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = PATIENCE_MS;
    call.limits.memory_mb = memory_mb;
    block_on(run_in(shared(), call)).result
}

/// How far `step` gets, in MiB, before it ends the call. It writes each MiB to the console.
fn reached(memory_mb: u64, start: &str, step: &str) -> u64 {
    let body = format!("{start}; for (let held = 1; ; held++) {{ {step}; console.log(held) }}");
    let mut call = invocation(&function(&body), Value::Null);
    call.limits.timeout_ms = PATIENCE_MS;
    call.limits.memory_mb = memory_mb;
    let outcome = block_on(run_in(shared(), call));
    let failure = outcome.result.expect_err(step);
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{step}: {failure}");
    let details = failure.details.unwrap_or_default();
    assert_eq!((&details["limit"], &details["allowed"]), (&json!("memory_mb"), &json!(memory_mb)), "{step}");
    outcome.console.last().map_or(0, |line| line.message.parse().unwrap())
}

const MIB: &str = "const all = []; const mib = (n) => new Uint8Array(n << 20).fill(1);
    const text = (n) => { const s = 'x'.repeat(n << 20) + Math.random(); s.charCodeAt(3); return s };
    const objects = (n) => Array.from({ length: n << 14 }, (_, i) => ({ i, j: i }));";

#[test]
fn every_kind_of_memory_has_the_same_limit() {
    for (step, least) in [
        ("all.push(mib(1))", 40),
        ("all.push(text(1))", 40),
        ("all.push(structuredClone(mib(1)))", 30),
        ("all.push(mib(1).buffer.transfer())", 30),
    ] {
        let held = reached(64, MIB, step);
        assert!((least..=64).contains(&held), "{step}: {held} MiB");
    }
}

#[test]
fn kinds_of_memory_are_added_up() {
    let held = reached(64, &format!("{MIB} all.push(mib(30))"), "all.push(text(1))");
    // Strings are checked every few milliseconds, buffers at each allocation.
    assert!((10..=60).contains(&held), "buffers and strings: {held} MiB");
    let held = reached(64, &format!("{MIB} all.push(text(30))"), "all.push(mib(1))");
    assert!((10..=60).contains(&held), "strings and buffers: {held} MiB");
}

#[test]
fn a_refused_buffer_is_an_error_that_a_tool_can_catch() {
    let result =
        with(64, "let refused = false; try { new ArrayBuffer(1 << 30) } catch { refused = true } return refused");
    assert_eq!(result.unwrap(), true);
}

#[test]
fn garbage_does_not_count() {
    for body in [
        "for (let i = 0; i < 300; i++) new Uint8Array(8 << 20).fill(1); return 1",
        "let n = 0; for (let i = 0; i < 200; i++) n += ('x'.repeat(4 << 20) + i).slice(5).length; return 1",
        "for (let i = 0; i < 100; i++) { const a = []; for (let j = 0; j < 20000; j++) a.push({ j }) } return 1",
    ] {
        assert_eq!(with(64, body).unwrap(), 1, "{body}");
    }
}

#[test]
fn webassembly_memories_count() {
    let grow = "if (memory.grow(16) < 0) throw new RangeError('could not allocate memory'); new Uint8Array(memory.buffer).fill(1)";
    let held = reached(64, "const memory = new WebAssembly.Memory({ initial: 1 })", grow);
    // Part of the process's own memory is not counted.
    assert!((20..=110).contains(&held), "{held} MiB");
}

#[test]
fn buffers_that_grow_count() {
    let grow = "all.push(new ArrayBuffer(1 << 20, { maxByteLength: 1 << 24 })); new Uint8Array(all.at(-1)).fill(1)";
    let held = reached(64, MIB, grow);
    // The engine allocates these itself, and they are checked every few milliseconds.
    assert!((20..=150).contains(&held), "{held} MiB");
}

#[test]
fn released_memory_can_be_used_again() {
    assert_eq!(with(64, "for (let i = 0; i < 20; i++) { let all = []; for (let j = 0; j < 40; j++) all.push(new Uint8Array(1 << 20)); all = null } return 1").unwrap(), 1);
    assert_eq!(value("return 'alive'"), "alive");
}

#[test]
fn memory_of_a_kept_isolate_counts_in_its_next_call() {
    let code = "globalThis.all ??= []; export function execute() {
        const memory = new WebAssembly.Memory({ initial: 16 * 24 });
        new Uint8Array(memory.buffer).fill(1); all.push(memory); const end = Date.now() + 40; while (Date.now() < end); return all.length }";
    let sandbox = block_on(start(|options| {
        options.max_workers = 1;
        options.spares = 0;
    }));
    let mut call = invocation(code, Value::Null);
    call.isolation = Isolation::Tool;
    call.limits.memory_mb = 64;
    let held: Vec<Result<Value, _>> = (0..6).map(|_| block_on(run_in(&sandbox, call.clone())).result).collect();
    block_on(sandbox.close());
    assert_eq!(held[0].as_ref().unwrap(), &json!(1));
    let failure = held.into_iter().find_map(Result::err).expect("six times 24 MiB are more than 64");
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
}
