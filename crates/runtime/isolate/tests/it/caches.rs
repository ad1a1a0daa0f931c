//! The engine's code cache of a script, kept for the next isolate.

use std::sync::Arc;

use rcrt_sandbox::{Invocation, Sandbox, Script, Task};
use serde_json::{Value, json};

use crate::fixture::{block_on, invocation, run_in, script, start};

/// Long enough for a code cache.
fn long(code: &str) -> String {
    let filling: Vec<String> = (0..400).map(|n| format!("function helper{n}(x) {{ return x + {n} }}")).collect();
    format!("{}\n{code}", filling.join("\n"))
}

fn adding() -> Arc<Script> {
    script(&long("globalThis.seen ??= 0; export function execute({ a }) { seen += 1; return [helper7(a), seen] }"))
}

fn calling(script: &Arc<Script>) -> Invocation {
    Invocation { script: script.clone(), ..invocation("", json!({"a": 1})) }
}

fn with_one_worker(test: impl AsyncFnOnce(Sandbox)) {
    block_on(async {
        let sandbox = start(|options| {
            options.max_workers = 1;
            options.spares = 0;
        });
        test(sandbox.await).await;
    });
}

#[test]
fn a_cached_script_runs_the_same() {
    with_one_worker(async |sandbox| {
        let script = adding();
        for _ in 0..3 {
            assert_eq!(run_in(&sandbox, calling(&script)).await.result.unwrap(), json!([8, 1]));
            assert!(script.cache.is_there());
        }
        sandbox.close().await;
    });
}

#[test]
fn a_check_makes_the_cache_too() {
    with_one_worker(async |sandbox| {
        let script = adding();
        let check = Invocation { task: Task::Check, ..calling(&script) };
        assert_eq!(run_in(&sandbox, check).await.result.unwrap(), Value::Null);
        assert!(script.cache.is_there());
        assert_eq!(run_in(&sandbox, calling(&script)).await.result.unwrap(), json!([8, 1]));
        sandbox.close().await;
    });
}

#[test]
fn a_process_that_ran_a_tool_makes_no_cache() {
    with_one_worker(async |sandbox| {
        run_in(&sandbox, invocation("export const execute = () => 1", Value::Null)).await.result.unwrap();
        let script = adding();
        assert_eq!(run_in(&sandbox, calling(&script)).await.result.unwrap(), json!([8, 1]));
        assert!(!script.cache.is_there());
        sandbox.close().await;
    });
}

#[test]
fn a_syntax_error_is_reported_and_not_cached() {
    with_one_worker(async |sandbox| {
        let wrong = script(&long("export function execute( { return 1 }"));
        let failure = run_in(&sandbox, calling(&wrong)).await.result.unwrap_err();
        assert!(failure.message.starts_with("SyntaxError: "), "{failure}");
        assert!(!wrong.cache.is_there());
        sandbox.close().await;
    });
}

#[test]
fn positions_in_stacks_are_the_same_with_a_cache() {
    with_one_worker(async |sandbox| {
        let throws = script(&long("export function execute() { throw new Error('here') }"));
        let mut stacks = Vec::new();
        for _ in 0..2 {
            let failure = run_in(&sandbox, calling(&throws)).await.result.unwrap_err();
            stacks.push(failure.details.unwrap()["stack"].clone());
        }
        assert!(throws.cache.is_there());
        assert!(stacks[0].as_str().unwrap().contains("tool.js:401:35"), "{stacks:?}");
        assert_eq!(stacks[0], stacks[1]);
        sandbox.close().await;
    });
}
