//! What one call leaves behind for the next.

use breadcrumb::Isolation;
use sandbox::{Invocation, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{block_on, invocation, run_in, script, start};

const COUNTER: &str = "globalThis.seen ??= 0; let calls = 0;
    export async function execute() { calls += 1; globalThis.seen += 1; Array.prototype.mark ??= 0;
        return { calls, seen: globalThis.seen, mark: Array.prototype.mark++ } }";

fn counter(isolation: Isolation) -> Invocation {
    Invocation { isolation, ..invocation(COUNTER, Value::Null) }
}

/// One worker for all calls: whatever is carried over is carried over here.
fn with_one_worker(test: impl AsyncFnOnce(Sandbox)) {
    block_on(async {
        let one = |options: &mut SandboxOptions| {
            options.max_workers = 1;
            options.spares = 0;
        };
        test(start(one).await).await;
    });
}

#[test]
fn each_call_has_fresh_globals() {
    with_one_worker(async |sandbox| {
        for _ in 0..3 {
            let result = run_in(&sandbox, counter(Isolation::Call)).await.result.unwrap();
            assert_eq!(result, json!({"calls": 1, "seen": 1, "mark": 0}));
        }
        sandbox.close().await;
    });
}

#[test]
fn a_tool_that_asks_for_it_keeps_its_globals() {
    with_one_worker(async |sandbox| {
        let call = counter(Isolation::Tool);
        for n in 1..=3 {
            let result = run_in(&sandbox, call.clone()).await.result.unwrap();
            assert_eq!(result, json!({"calls": n, "seen": n, "mark": n - 1}));
        }
        // Another version of the script, the same text: nothing is shared.
        let other = Invocation { script: script(COUNTER), ..call.clone() };
        assert_eq!(run_in(&sandbox, other).await.result.unwrap()["calls"], 1);
        // Another tenant: nothing is shared.
        let other = Invocation { owner_id: Uuid::from_u128(2), ..call.clone() };
        assert_eq!(run_in(&sandbox, other).await.result.unwrap()["calls"], 1);
        // One that does not ask for it gets a fresh scope.
        let fresh = Invocation { isolation: Isolation::Call, ..call };
        assert_eq!(run_in(&sandbox, fresh).await.result.unwrap()["calls"], 1);
        sandbox.close().await;
    });
}

#[test]
fn a_failed_call_ends_what_was_kept() {
    with_one_worker(async |sandbox| {
        let code = "let n = 0; export function execute(fail) { n += 1; if (fail) for (;;); return n }";
        let mut call = invocation(code, json!(false));
        call.isolation = Isolation::Tool;
        assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), 1);
        assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), 2);
        let mut hangs = call.clone();
        hangs.input = json!(true);
        hangs.limits.timeout_ms = 200;
        assert!(run_in(&sandbox, hangs).await.result.is_err());
        assert_eq!(run_in(&sandbox, call).await.result.unwrap(), 1);
        sandbox.close().await;
    });
}

#[test]
fn timers_of_a_call_do_not_reach_the_next() {
    with_one_worker(async |sandbox| {
        let call = invocation(
            "export function execute() { setTimeout(() => console.log('ghost'), 1); return 1 }",
            Value::Null,
        );
        run_in(&sandbox, call).await.result.unwrap();
        let wait = "export async function execute() { await new Promise((r) => setTimeout(r, 50)); return 1 }";
        let outcome = run_in(&sandbox, invocation(wait, Value::Null)).await;
        assert!(outcome.result.is_ok() && outcome.console.is_empty(), "{outcome:?}");
        sandbox.close().await;
    });
}

#[test]
fn a_tenant_calls_as_often_as_it_likes() {
    with_one_worker(async |sandbox| {
        for n in 0..150 {
            let call = invocation("export const execute = (n) => n", json!(n));
            assert_eq!(run_in(&sandbox, call).await.result.unwrap(), json!(n));
        }
        sandbox.close().await;
    });
}
