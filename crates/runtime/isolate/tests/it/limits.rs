//! Limits end the call with a typed error, and only that call.

use std::sync::Arc;

use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::RunOutcome;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

mod groups;
mod processor;
mod watched;

use crate::fixture::{NoHostOps, PATIENCE_MS, block_on, execute, function, invocation, run_in, shared, value};

fn limited(body: &str, timeout_ms: u64, memory_mb: u64) -> RunOutcome {
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = timeout_ms;
    call.limits.memory_mb = memory_mb;
    block_on(run_in(shared(), call))
}

#[test]
fn endless_loops_time_out() {
    let loops = [
        "for (;;);",
        "while (true) { try { for (;;); } finally { continue; } }",
        "for (;;) await null;",
        "const spin = () => Promise.resolve().then(spin); await spin();",
        "await new Promise((r) => setTimeout(r, 1e6))",
        "setInterval(() => {}, 1); await new Promise(() => {})",
        "/(a+)+b/.exec('a'.repeat(40))",
        "Array.from({ length: 1000 }, Math.random).sort(() => { for (;;); })",
    ];
    for body in loops {
        let failure = limited(body, 300, 128).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::Timeout, "{body}: {failure}");
        assert!(failure.is_retryable && failure.message.contains("300 ms"), "{failure}");
        assert_eq!(failure.details.unwrap(), json!({ "limit": "timeout_ms", "allowed": 300 }), "{body}");
    }
    assert_eq!(value("return 'alive'"), json!("alive"));
}

#[test]
fn console_lines_survive_a_timeout() {
    let mut timeout_ms = 300;
    let console = loop {
        let outcome = limited("console.log('got here'); for (;;);", timeout_ms, 128);
        assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Timeout);
        // On a busy machine, the first times can end before the tool prints.
        if !outcome.console.is_empty() || timeout_ms > PATIENCE_MS {
            break outcome.console;
        }
        timeout_ms *= 4;
    };
    assert_eq!(console.len(), 1, "{console:?}");
    assert_eq!(console[0].message, "got here");
}

#[test]
fn a_promise_that_can_never_settle_fails_at_once() {
    let failure = execute("await new Promise(() => {})", Value::Null).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("can never settle"), "{failure}");
}

#[test]
fn unbounded_heap_growth_is_resource_exhausted() {
    for body in [
        "const all = []; for (;;) all.push({ x: new Array(100).fill(all.length) })",
        "let s = 'x'; const all = []; for (;;) { s = s + s.slice(0, 100_000) + Math.random(); all.push([...s.slice(0, 10000)]) }",
        "const m = new Map(); for (let i = 0; ; i++) m.set('key' + i, { i })",
    ] {
        let failure = limited(body, PATIENCE_MS, 64).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{body}: {failure}");
        assert!(failure.message.contains("64 MiB"), "{failure}");
        assert_eq!(failure.details.unwrap(), json!({ "limit": "memory_mb", "allowed": 64 }), "{body}");
    }
    assert_eq!(value("return 'alive'"), json!("alive"));
}

#[test]
fn memory_outside_of_the_heap_is_limited() {
    for body in [
        "const all = []; for (;;) { const a = new Uint8Array(8 << 20); a.fill(1); all.push(a) }",
        "const all = []; for (;;) { all.push(new ArrayBuffer(1 << 20)); new Uint8Array(all.at(-1)).fill(1) }",
        "const b = new ArrayBuffer(1, { maxByteLength: 2 ** 32 }); for (let n = 1; ; n *= 2) { b.resize(n); new Uint8Array(b).fill(1) }",
        "const all = []; for (;;) all.push(crypto.getRandomValues(new Uint8Array(65536)).slice())",
    ] {
        let failure = limited(body, PATIENCE_MS, 64).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{body}: {failure}");
    }
    assert_eq!(value("return 'alive'"), json!("alive"));
}

#[test]
fn memory_of_webassembly_is_limited() {
    let grow = "const m = new WebAssembly.Memory({ initial: 1 });
        for (;;) { if (m.grow(256) < 0) throw new RangeError('could not allocate memory'); new Uint8Array(m.buffer).fill(1) }";
    let failure = limited(grow, PATIENCE_MS, 64).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
}

#[test]
fn a_call_within_its_memory_limit_runs() {
    let used =
        limited("const a = []; for (let i = 0; i < 300_000; i++) a.push({ i }); return a.length", PATIENCE_MS, 256);
    assert_eq!(used.result.unwrap(), json!(300_000));
    assert_eq!(limited("return 1", PATIENCE_MS, 8).result.unwrap(), json!(1));
    let big = limited("return new Uint8Array(100 << 20).fill(1).length", PATIENCE_MS, 256);
    assert_eq!(big.result.unwrap(), json!(100 << 20));
}

#[test]
fn a_stack_overflow_is_an_ordinary_error() {
    let caught = value("const f = () => f() + 1; try { f() } catch (e) { return e instanceof RangeError || e.name }");
    assert_eq!(caught, json!(true));
    let failure = execute("const f = () => f() + 1; f()", Value::Null).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    let nested = execute("let o = null; for (let i = 0; i < 1e6; i++) o = [o]; return o", Value::Null);
    assert!(nested.result.is_err());
    assert_eq!(value("return 'alive'"), json!("alive"));
}

#[test]
fn a_cancelled_call_has_the_code_cancelled() {
    let sandbox = shared();
    let cancel = CancellationToken::new();
    let outcome = block_on(async {
        let call = invocation(&function("console.log('up'); for (;;) await null"), Value::Null);
        let soon = cancel.clone();
        let run = sandbox.run(call, Arc::new(NoHostOps), cancel);
        tokio::join!(run, async move { soon.cancel() }).0
    });
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Cancelled);
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let outcome =
        block_on(shared().run(invocation(&function("return 1"), Value::Null), Arc::new(NoHostOps), cancelled));
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Cancelled);
}

#[test]
fn too_large_results_and_inputs_name_their_limit() {
    let failure = execute("return 'x'.repeat(4 << 20)", Value::Null).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details.unwrap(), json!({ "limit": "output_bytes", "allowed": 4 << 20 }));
    let failure = execute("return input.length", json!("x".repeat(8 << 20))).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details.unwrap(), json!({ "limit": "input_bytes", "allowed": 8 << 20 }));
}

#[test]
fn too_many_ops_in_flight_name_their_limit() {
    struct Silent;

    #[async_trait::async_trait]
    impl rcrt_sandbox::HostOps for Silent {
        async fn fetch(
            &self,
            _request: rcrt_sandbox::FetchRequest,
            _body: Option<rcrt_sandbox::BodyStream>,
        ) -> Result<rcrt_sandbox::FetchResponse, rcrt_sandbox::OpError> {
            std::future::pending().await
        }

        async fn api(&self, _call: rcrt_sandbox::ApiCall) -> Result<Value, rcrt_sandbox::OpError> {
            std::future::pending().await
        }
    }

    let many =
        "const all = []; for (let i = 0; i < 65; i++) all.push(context.api.getBreadcrumb('x')); await Promise.all(all)";
    let call = invocation(&function(many), Value::Null);
    let failure =
        block_on(shared().run(call, Arc::new(Silent), CancellationToken::new())).result.expect_err("too many");
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
    let details = failure.details.unwrap();
    assert_eq!((&details["limit"], &details["allowed"]), (&json!("ops_in_flight"), &json!(64)), "{details}");
}

#[test]
fn a_limit_of_the_host_is_reported_and_cannot_be_forged() {
    struct Full;

    #[async_trait::async_trait]
    impl rcrt_sandbox::HostOps for Full {
        async fn fetch(
            &self,
            request: rcrt_sandbox::FetchRequest,
            body: Option<rcrt_sandbox::BodyStream>,
        ) -> Result<rcrt_sandbox::FetchResponse, rcrt_sandbox::OpError> {
            NoHostOps.fetch(request, body).await
        }

        async fn api(&self, _call: rcrt_sandbox::ApiCall) -> Result<Value, rcrt_sandbox::OpError> {
            let reached =
                rcrt_breadcrumb::LimitReached { limit: rcrt_breadcrumb::LimitName::BreadcrumbsWritten, allowed: 100 };
            Err(rcrt_sandbox::OpError::exhausted(reached, "100 records were written"))
        }
    }

    let failure = |body: &str| {
        let call = invocation(&function(body), Value::Null);
        block_on(shared().run(call, Arc::new(Full), CancellationToken::new())).result.unwrap_err()
    };
    let refused = failure("await context.api.deleteBreadcrumb('x')");
    let details = refused.details.unwrap();
    assert_eq!(refused.code, ErrorCode::ResourceExhausted);
    assert_eq!((&details["limit"], &details["allowed"]), (&json!("breadcrumbs_written"), &json!(100)), "{details}");
    let forged = failure(
        "Object.prototype.reached = { limit: 'memory_mb', allowed: 1 }; Object.prototype.limit = 'cpu_ms';
         const e = new Error('mine'); e.reached = { limit: 'memory_mb', allowed: 1 }; throw e",
    );
    assert_eq!((forged.code, forged.message.as_str()), (ErrorCode::ExecutionFailed, "mine"));
    assert_eq!(forged.details.unwrap().get("limit"), None);
}
