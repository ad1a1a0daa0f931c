//! Calls of one tool version that follow each other in one process, by default: each finds what
//! the first one found.

mod left;
mod programs;
mod same;

use std::path::Path;

use rcrt_sandbox::{Invocation, RunOutcome, Sandbox};
use serde_json::{Value, json};

use crate::fixture::{block_on, invocation, run_in};
use crate::processes::Program;

/// Whether this system shows which process an isolate has.
fn shows_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// A sandbox with one worker, and calls of one script in it.
struct Calls {
    program: Program,
    sandbox: Sandbox,
    call: Invocation,
}

impl Calls {
    async fn of(javascript: &str) -> Self {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        Self { program, sandbox, call: invocation(javascript, Value::Null) }
    }

    async fn run(&self, input: Value) -> RunOutcome {
        run_in(&self.sandbox, Invocation { input, ..self.call.clone() }).await
    }

    async fn value(&self, input: Value) -> Value {
        self.run(input).await.result.unwrap()
    }

    /// The process of the worker's isolate. Equal after two calls if the second one ran in the
    /// process of the first: a process ends before the next one is forked.
    fn process(&self) -> u32 {
        let mut process = self.program.workers().pop_first().unwrap_or_default();
        // The last one in a chain of only children. One that is ending may not have any.
        while let Ok(children) = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))
            && let Some(child) = children.split_whitespace().next().and_then(|child| child.parse().ok())
        {
            process = child;
        }
        process
    }
}

#[test]
fn calls_of_one_version_follow_each_other_in_one_process() {
    block_on(async {
        let code = "let calls = 0; globalThis.seen ??= 0;
            export function execute() { calls += 1; globalThis.seen += 1; return [calls, globalThis.seen] }";
        let calls = Calls::of(code).await;
        let mut processes = Vec::new();
        for _ in 0..5 {
            assert_eq!(calls.value(Value::Null).await, json!([1, 1]));
            processes.push(calls.process());
        }
        // The process of the first call is not prepared for another one.
        if shows_children() {
            assert!(processes[1..].iter().all(|process| *process == processes[1]), "{processes:?}");
        }
        calls.sandbox.close().await;
    });
}

#[test]
fn a_failed_call_leaves_a_process_that_can_be_used() {
    block_on(async {
        let calls = Calls::of("export function execute(fails) { if (fails) throw new Error('no'); return 1 }").await;
        calls.value(json!(false)).await;
        calls.value(json!(false)).await;
        let before = calls.process();
        assert!(calls.run(json!(true)).await.result.is_err());
        assert_eq!(calls.value(json!(false)).await, 1);
        if shows_children() {
            assert_eq!(calls.process(), before);
        }
        calls.sandbox.close().await;
    });
}

#[test]
fn a_call_that_was_ended_costs_its_process() {
    block_on(async {
        let mut calls = Calls::of("export function execute(hangs) { while (hangs); return 1 }").await;
        calls.value(json!(false)).await;
        calls.value(json!(false)).await;
        let before = calls.process();
        calls.call.limits.timeout_ms = 300;
        assert!(calls.run(json!(true)).await.result.is_err());
        calls.call.limits.timeout_ms = crate::fixture::PATIENCE_MS;
        assert_eq!(calls.value(json!(false)).await, 1);
        if shows_children() {
            assert_ne!(calls.process(), before);
        }
        calls.sandbox.close().await;
    });
}

#[test]
fn a_tool_whose_processes_cannot_be_kept_gets_plain_ones() {
    block_on(async {
        let calls = Calls::of(
            "export async function execute() { await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
                return Object.isFrozen(Map.prototype) }",
        )
        .await;
        let mut prepared = Vec::new();
        for _ in 0..6 {
            prepared.push(calls.value(Value::Null).await);
        }
        assert_eq!(json!(prepared), json!([false, true, true, true, false, false]));
        calls.sandbox.close().await;
    });
}

#[test]
fn idle_processes_end_when_memory_is_scarce() {
    block_on(async {
        let program = Program::new();
        let change = |options: &mut rcrt_sandbox::SandboxOptions| options.is_memory_scarce = || true;
        let sandbox = program.start(change).await;
        let call = invocation("export const execute = () => 1", Value::Null);
        for _ in 0..2 {
            run_in(&sandbox, call.clone()).await.result.unwrap();
        }
        let ended = async {
            while !program.workers().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::fixture::PATIENCE, ended).await.expect("the idle worker ends");
        assert_eq!(run_in(&sandbox, call).await.result.unwrap(), 1);
        sandbox.close().await;
    });
}
