//! What one call leaves for the next.

use rcrt_breadcrumb::Isolation;
use rcrt_sandbox::{Invocation, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{block_on, invocation, run_in, script, start};

const COUNTER: &str = "globalThis.seen ??= 0; let calls = 0;
    export async function execute() { calls += 1; globalThis.seen += 1; Array.prototype.mark ??= 0;
        return { calls, seen: globalThis.seen, mark: Array.prototype.mark++ } }";

fn counter(isolation: Isolation) -> Invocation {
    Invocation { isolation, ..invocation(COUNTER, Value::Null) }
}

/// One worker for all calls, so that anything that leaks between calls is seen.
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
        for isolation in [Isolation::Call, Isolation::Process] {
            let call = counter(isolation);
            for _ in 0..4 {
                let result = run_in(&sandbox, call.clone()).await.result.unwrap();
                assert_eq!(result, json!({"calls": 1, "seen": 1, "mark": 0}), "{isolation:?}");
            }
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
        // Another version of the script with the same text: nothing is shared.
        let other = Invocation { script: script(COUNTER), ..call.clone() };
        assert_eq!(run_in(&sandbox, other).await.result.unwrap()["calls"], 1);
        // Another tenant: nothing is shared.
        let other = Invocation { owner_id: Uuid::from_u128(2), ..call.clone() };
        assert_eq!(run_in(&sandbox, other).await.result.unwrap()["calls"], 1);
        // A call without `isolation: tool` gets a fresh scope.
        let fresh = Invocation { isolation: Isolation::Call, ..call };
        assert_eq!(run_in(&sandbox, fresh).await.result.unwrap()["calls"], 1);
        sandbox.close().await;
    });
}

#[test]
fn an_operator_can_give_every_call_a_process() {
    block_on(async {
        let sandbox = start(|options| {
            options.max_workers = 1;
            options.spares = 0;
            options.process_per_call = true;
        })
        .await;
        for isolation in [Isolation::Call, Isolation::Tool, Isolation::Process] {
            let code = "globalThis.seen ??= 0; export const execute = () => [globalThis.seen += 1, Object.isFrozen(Map.prototype)]";
            let call = Invocation { isolation, ..invocation(code, Value::Null) };
            for _ in 0..3 {
                // Also not prepared for further calls.
                assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), json!([1, false]), "{isolation:?}");
            }
        }
        sandbox.close().await;
    });
}

#[test]
fn a_failed_call_discards_the_kept_isolate() {
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
fn timers_of_a_call_do_not_run_in_the_next() {
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
fn a_worker_runs_many_calls_of_a_tenant() {
    with_one_worker(async |sandbox| {
        for n in 0..150 {
            let call = invocation("export const execute = (n) => n", json!(n));
            assert_eq!(run_in(&sandbox, call).await.result.unwrap(), json!(n));
        }
        sandbox.close().await;
    });
}

/// Runs a call that leaves pending work, then one that waits for it. Returns the console lines.
fn console_after_leftover_work(leave: &str, isolation: Isolation) -> Vec<String> {
    let code = format!(
        "globalThis.calls ??= 0;
         export async function execute(input, context) {{
             globalThis.calls += 1;
             const {{ api }} = context;
             if (input === 'leave') {{ {leave}; return globalThis.calls }}
             await new Promise((r) => setTimeout(r, 60));
             return globalThis.calls;
         }}"
    );
    let host = std::sync::Arc::new(crate::fixture::NoHostOps);
    block_on(async {
        let sandbox = start(|options| {
            options.max_workers = 1;
            options.spares = 0;
        })
        .await;
        let mut call = invocation(&code, json!("leave"));
        call.isolation = isolation;
        // The second one is in a process that is prepared for others, if there are such.
        for _ in 0..2 {
            run_in(&sandbox, call.clone()).await.result.unwrap();
        }
        call.input = json!("wait");
        let outcome = sandbox.run(call, host, tokio_util::sync::CancellationToken::new()).await;
        sandbox.close().await;
        outcome.result.unwrap();
        outcome.console.into_iter().map(|line| line.message).collect()
    })
}

#[test]
fn pending_work_of_a_call_does_not_run_in_the_next() {
    for leave in [
        "setTimeout(() => console.log('ghost'), 5)",
        "setInterval(() => console.log('ghost'), 5)",
        "AbortSignal.timeout(5).addEventListener('abort', () => console.log('ghost'))",
        "fetch('https://example.org/').catch(() => console.log('ghost'))",
        "api.getBreadcrumb('a').catch(() => console.log('ghost'))",
        "crypto.subtle.generateKey({ name: 'RSA-OAEP', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, true, ['encrypt']).then(() => console.log('ghost'))",
        "const c = new MessageChannel(); c.port1.onmessage = () => console.log('ghost'); c.port2.postMessage(1)",
        "new Blob(['x']).text().then(() => console.log('ghost'))",
        "new Response('x').body.pipeThrough(new CompressionStream('gzip')).getReader().read().then(() => new Promise((r) => setTimeout(r, 5))).then(() => console.log('ghost'))",
    ] {
        for isolation in [Isolation::Call, Isolation::Process, Isolation::Tool] {
            assert_eq!(console_after_leftover_work(leave, isolation), Vec::<String>::new(), "{isolation:?}: {leave}");
        }
    }
}

#[test]
fn finished_work_does_not_prevent_keeping_the_isolate() {
    with_one_worker(async |sandbox| {
        let code = "let calls = 0; export async function execute() { calls += 1;
            clearTimeout(setTimeout(() => {}, 1e6)); const t = setInterval(() => {}, 1e6); clearInterval(t);
            await new Promise((r) => setTimeout(r, 1)); await new Blob(['x']).text();
            await crypto.subtle.digest('SHA-256', new Uint8Array(1)); return calls }";
        let mut call = invocation(code, Value::Null);
        call.isolation = Isolation::Tool;
        for n in 1..=3 {
            assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), n);
        }
        sandbox.close().await;
    });
}

#[test]
fn an_op_that_finishes_after_the_call_counts_as_pending() {
    // The replies may arrive after the call is over, while the other threads become idle.
    let code = "globalThis.calls ??= 0; globalThis.late ??= []; export async function execute(_, { api }) {
        const mine = calls += 1;
        const answered = () => { if (calls !== mine) late.push(`of call ${mine} in call ${calls}`) };
        api.getBreadcrumb('a').then(answered, answered);
        const key = await crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']);
        const slow = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(8), iterations: 20000 };
        crypto.subtle.deriveBits(slow, key, 256).then(answered);
        return late }";
    with_one_worker(async |sandbox| {
        let mut call = invocation(code, Value::Null);
        call.isolation = Isolation::Tool;
        for _ in 1..=10 {
            assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), json!([]));
        }
        sandbox.close().await;
    });
}

#[test]
fn pending_compilation_of_the_engine_cannot_use_ops_in_the_next_call() {
    // Only the engine knows about its background compilation.
    let code = "
        globalThis.calls ??= 0; globalThis.heard ??= [];
        const leb = (n) => { const out = []; do { out.push(n > 127 ? (n & 127) | 128 : n); n >>>= 7 } while (n > 0); return out };
        const section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];
        const functions = 4000;
        const body = [0]; for (let i = 0; i < 200; i++) body.push(0x41, 1, 0x1a); body.push(0x0b);
        const bodies = []; for (let i = 0; i < functions; i++) for (const b of [...leb(body.length), ...body]) bodies.push(b);
        const module = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0];
        for (const b of section(3, [...leb(functions), ...new Array(functions).fill(0)])) module.push(b);
        const last = [...leb(functions)]; for (const b of bodies) last.push(b);
        module.push(10, ...leb(last.length)); for (const b of last) module.push(b);
        const bytes = new Uint8Array(module);
        export async function execute(input, { api }) {
            globalThis.calls += 1;
            if (input === 'leave') {
                const act = async () => {
                    globalThis.heard.push('compiled in call ' + globalThis.calls);
                    console.log('ghost');
                    const failed = (error) => heard.push('failed in call ' + globalThis.calls + ': ' + error.message);
                    await api.getBreadcrumb('a').catch(failed);
                    await fetch('https://h.example/').catch(failed);
                };
                for (let i = 0; i < 3; i++) WebAssembly.compile(bytes).then(act);
                return null;
            }
            for (let i = 0; i < 100 && heard.length < 9; i++) await new Promise((r) => setTimeout(r, 20));
            return heard;
        }";
    block_on(async {
        let sandbox = start(|options| {
            options.max_workers = 1;
            options.spares = 0;
        })
        .await;
        let mut call = invocation(code, json!("leave"));
        call.isolation = Isolation::Tool;
        run_in(&sandbox, call.clone()).await.result.unwrap();
        call.input = json!("wait");
        let outcome = run_in(&sandbox, call).await;
        sandbox.close().await;
        let heard = outcome.result.unwrap();
        // What finished in the first call was done; everything else is refused in the second.
        for line in heard.as_array().unwrap() {
            let line = line.as_str().unwrap();
            let is_over = line.ends_with(": the call that started this is over");
            assert!(line.starts_with("compiled in call") || line.starts_with("failed in call 1") || is_over, "{heard}");
        }
        assert_eq!(outcome.console, []);
    });
}

#[test]
fn async_work_of_the_running_call_can_use_ops() {
    let code = "export async function execute(_, { api }) {
        const heard = [];
        const ask = (how) => api.getBreadcrumb(how).then(() => heard.push(how), (e) => heard.push(how + ': ' + e.message));
        await ask('now');
        await new Promise((r) => queueMicrotask(() => ask('microtask').then(r)));
        await new Promise((r) => setTimeout(() => ask('timer').then(r), 1));
        await new Promise((r) => { const t = setInterval(() => { clearInterval(t); ask('interval').then(r) }, 1) });
        await new Promise((r) => { AbortSignal.timeout(1).onabort = () => ask('signal').then(r); setTimeout(() => {}, 20) });
        await new Promise((r) => { const t = new EventTarget(); t.addEventListener('x', () => ask('event').then(r)); t.dispatchEvent(new Event('x')) });
        await new ReadableStream({ async pull(c) { await ask('stream'); c.close() } }).getReader().read();
        await new Promise((r) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { port1.close(); ask('port').then(r) }; port2.postMessage(1) });
        for await (const _ of (async function* () { await ask('generator'); yield 1 })());
        await crypto.subtle.digest('SHA-256', new Uint8Array(1)).then(() => ask('crypto'));
        if (globalThis.WebAssembly?.compile) await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => ask('wasm'));
        await Promise.resolve({ then(r) { ask('thenable').then(r) } });
        return heard.filter((line) => !line.endsWith('Unavailable') && !/GetBreadcrumb/.test(line));
    }";
    with_one_worker(async |sandbox| {
        let mut call = invocation(code, Value::Null);
        call.isolation = Isolation::Tool;
        for _ in 0..3 {
            assert_eq!(run_in(&sandbox, call.clone()).await.result.unwrap(), json!([]));
        }
        sandbox.close().await;
    });
}
