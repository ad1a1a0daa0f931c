//! A tool that breaks every prototype it can reach affects only itself: the platform then does what
//! was asked for, or throws, and the parent never receives anything else.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use rcrt_sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError, Redirect, RunOutcome};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{PATIENCE_MS, block_on, function, invocation, shared};

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(FetchRequest, Vec<u8>)>>,
    calls: Mutex<Vec<ApiCall>>,
}

#[async_trait]
impl HostOps for Seen {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        let mut bytes = Vec::new();
        if let Some(mut body) = body {
            while let Some(piece) = body.next().await {
                bytes.extend_from_slice(&piece?);
            }
        }
        self.requests.lock().unwrap().push((request, bytes));
        let body = futures::stream::once(async { Ok("answer".into()) }).boxed();
        Ok(FetchResponse {
            status: 200,
            status_text: "OK".into(),
            headers: vec![("x-sent".into(), "yes".into())],
            url: "https://host.example/".into(),
            redirected: false,
            body,
        })
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        self.calls.lock().unwrap().push(call);
        Ok(json!({"id": "r"}))
    }
}

/// Helpers that do not use the prototypes that are broken.
const TOOLS: &str = "
    const { ownKeys, getOwnPropertyDescriptor: own, defineProperty: define } = Reflect;
    const breakMembers = (object, keep = []) => {
        if (object === undefined || object === null) return;
        const keys = ownKeys(object);
        for (let i = 0; i < keys.length; i++) {
            let kept = keys[i] === 'constructor' || keys[i] === 'prototype';
            for (let j = 0; j < keep.length; j++) kept ||= keys[i] === keep[j];
            const found = own(object, keys[i]);
            if (kept || !found.configurable) continue;
            if ('value' in found && typeof found.value !== 'function') continue;
            if ('value' in found) define(object, keys[i], { value: () => 'broken', writable: true, configurable: true });
            else define(object, keys[i], { get: () => 'broken', set: () => {}, configurable: true });
        }
    };
    const breakAll = (...names) => { for (let i = 0; i < names.length; i++) { breakMembers(globalThis[names[i]].prototype); } };
    const trap = (...names) => {
        for (let i = 0; i < names.length; i++) {
            define(Object.prototype, names[i], { get: () => 'broken', set: () => {}, configurable: true });
        }
    };
    const { api } = context; const ask = fetch; const { log } = console; const clone = structuredClone;";

/// The requested work, the same after every way of breaking prototypes.
const ASK: &str = "
    const report = (what) => (error) => log(what + ' threw');
    try { await api.getBreadcrumb('the-id') } catch (e) { report('api')(e) }
    try { await api.createBreadcrumb({ title: 'the title', context: { deep: [1, 'two', null] } }) } catch (e) { report('create')(e) }
    try {
        const answer = await ask('https://host.example/path?q=1', {
            method: 'PUT', body: 'the body', redirect: 'error', headers: { 'X-Mine': 'value' },
        });
        log('answered', answer.status);
    } catch (e) { report('fetch')(e) }
    try { const c = clone({ a: [1, 2] }); if (c.a[1] !== 2) log('clone is wrong') } catch (e) { report('clone')(e) }
    try { log('the last line') } catch {}
    return null;";

/// The time limit of code whose own changes may make it wait forever.
const MAY_HANG_MS: u64 = 5_000;

/// The requests that arrived, each with its body.
type Requests = Vec<(FetchRequest, Vec<u8>)>;

fn broken(how: &str, timeout_ms: u64) -> (RunOutcome, Requests, Vec<ApiCall>) {
    let host = Arc::new(Seen::default());
    let mut call = invocation(&function(&format!("{TOOLS}\n{how}\n{ASK}")), Value::Null);
    call.limits.timeout_ms = timeout_ms;
    let outcome = block_on(shared().run(call, host.clone(), CancellationToken::new()));
    let requests = std::mem::take(&mut *host.requests.lock().unwrap());
    let calls = std::mem::take(&mut *host.calls.lock().unwrap());
    (outcome, requests, calls)
}

fn wanted_request() -> FetchRequest {
    FetchRequest {
        method: "PUT".into(),
        url: "https://host.example/path?q=1".into(),
        headers: vec![
            ("X-Mine".into(), "value".into()),
            ("Content-Type".into(), "text/plain;charset=UTF-8".into()),
            ("accept".into(), "*/*".into()),
        ],
        redirect: Redirect::Error,
    }
}

fn wanted_calls() -> [ApiCall; 2] {
    [
        ApiCall::GetBreadcrumb { id: "the-id".into() },
        ApiCall::CreateBreadcrumb { record: json!({"title": "the title", "context": {"deep": [1, "two", null]}}) },
    ]
}

/// Checks that only what was asked for arrived, and returns what did not arrive. A header that the
/// platform adds itself may be missing if its own interface is broken.
fn requested_work(how: &str, timeout_ms: u64) -> Vec<&'static str> {
    let (outcome, requests, calls) = broken(how, timeout_ms);
    let mut missing = Vec::new();
    for (request, body) in &requests {
        let wanted = wanted_request();
        assert!(request.headers.iter().all(|header| wanted.headers.contains(header)), "{how}: {request:?}");
        let request = FetchRequest { headers: wanted.headers.clone(), ..request.clone() };
        assert_eq!((&request, body.as_slice()), (&wanted, b"the body".as_slice()), "{how}");
    }
    for call in &calls {
        assert!(wanted_calls().contains(call), "{how}: {call:?}");
    }
    assert!(requests.len() <= 1 && calls.len() <= 2, "{how}");
    if requests.is_empty() {
        missing.push("fetch");
    }
    if calls.len() < 2 {
        missing.push("api");
    }
    if !outcome.console.iter().any(|line| line.message == "the last line") {
        missing.push("console");
    }
    assert!(!outcome.console.iter().any(|line| line.message.contains("clone is wrong")), "{how}");
    missing
}

#[test]
fn an_unbroken_scope_does_all_requested_work() {
    assert_eq!(requested_work("", PATIENCE_MS), Vec::<&str>::new());
}

#[test]
fn requested_work_survives_broken_prototypes() {
    for how in [
        "breakAll('Array')",
        "breakAll('String', 'Number', 'Boolean', 'Symbol', 'BigInt')",
        "breakAll('RegExp', 'Date', 'Error', 'TypeError')",
        "breakAll('Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef')",
        "breakAll('ArrayBuffer', 'Uint8Array', 'DataView'); breakMembers(Object.getPrototypeOf(Uint8Array.prototype))",
        "breakAll('Promise')",
        "breakAll('Function', 'Object')",
        "breakMembers(JSON); breakMembers(Math); breakMembers(Object); breakMembers(Array); breakMembers(String); breakMembers(Symbol); breakMembers(Promise); breakMembers(Reflect)",
        "breakAll('Headers', 'URLSearchParams', 'AbortSignal', 'AbortController', 'EventTarget', 'Event')",
        "breakAll('ReadableStream', 'ReadableStreamDefaultReader', 'ReadableStreamDefaultController', 'Blob', 'FormData')",
        "breakAll('TextEncoder', 'TextDecoder', 'DOMException', 'Performance')",
        "breakMembers(Object.getPrototypeOf([][Symbol.iterator]())); breakMembers(Object.getPrototypeOf(new Map().entries()))",
        "trap('toJSON')",
        "trap('err', 'ok', 'method', 'url', 'redirect', 'id', 'record', 'rid', 'bytes')",
        "for (const name of ['fetch', 'Request', 'Headers', 'URL', 'JSON', 'Object', 'Array', 'Promise', 'Error', 'Symbol']) delete globalThis[name]",
        "for (const name of ['Request', 'Headers', 'URL', 'JSON', 'Promise', 'TypeError', 'console', 'structuredClone']) globalThis[name] = null",
        "Object.prototype.__proto__ === null; Object.setPrototypeOf(Array.prototype, null)",
        "for (const C of [Headers, Request, Response, Map, Array]) Object.setPrototypeOf(C, null)",
    ] {
        let missing = requested_work(how, PATIENCE_MS);
        assert!(missing.is_empty(), "{how}: {missing:?}");
    }
}

#[test]
fn broken_interfaces_do_not_change_the_requested_work() {
    for how in [
        "breakAll('Request', 'Response', 'URL')",
        "trap('body', 'signal', 'headers', 'window', 'priority', 'client', 'duplex')",
        "trap('get', 'set', 'value', 'writable', 'enumerable', 'configurable')",
        "trap('0', '1', '2', 'length', 'done', 'next', 'then')",
        "for (let i = 0; i < 8; i++) define(Array.prototype, i, { get: () => 'broken', set: () => {}, configurable: true })",
        "for (const name of Object.getOwnPropertyNames(globalThis)) { try { breakMembers(globalThis[name]); breakMembers(globalThis[name].prototype) } catch {} }",
        "define(Promise.prototype, 'constructor', { get: () => function (f) { f(() => {}, () => {}) } })",
        "define(Promise, Symbol.species, { get: () => function (f) { f(() => {}, () => {}) } })",
        "Object.setPrototypeOf(Object.getPrototypeOf(async function () {}), null)",
        "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype)",
    ] {
        requested_work(how, MAY_HANG_MS);
    }
}

#[test]
fn forged_inner_state_does_not_change_a_request() {
    // Sets another value for every own and inherited symbol of every object of the platform.
    let how = "
        const forge = (object) => {
            for (let o = object; o !== null && o !== Object.prototype; o = Object.getPrototypeOf(o)) {
                const symbols = Object.getOwnPropertySymbols(o);
                for (let i = 0; i < symbols.length; i++) {
                    try { define(object, symbols[i], { value: { url: 'https://evil.example/', method: 'DELETE' }, configurable: true }) } catch {}
                }
            }
            return object;
        };
        const request = forge(new Request('https://host.example/path?q=1', {
            method: 'PUT', body: 'the body', redirect: 'error', headers: { 'X-Mine': 'value' } }));
        try { await ask(request) } catch {}
        log('the last line');
        return null;";
    let (_, requests, _) = broken(how, MAY_HANG_MS);
    for (request, _) in requests {
        assert_eq!((request.url.as_str(), request.method.as_str()), ("https://host.example/path?q=1", "PUT"));
    }
}

#[test]
fn a_tool_cannot_observe_the_ops() {
    let outcome = crate::fixture::execute(
        "const heard = [];
         const hear = (object, key) => {
             const real = object[key];
             try { object[key] = function (...args) { heard.push(String(this?.name)); return Reflect.apply(real, this, args) } }
             catch { return 'locked' }
             return 'open';
         };
         const locks = ['call', 'apply', 'bind'].map((key) => hear(Function.prototype, key));
         try { Object.defineProperty(Function.prototype, 'call', { value: () => {} }); locks.push('open') } catch { locks.push('locked') }
         await context.api.getBreadcrumb('x').catch(() => {});
         await fetch('https://h.example/').catch(() => {});
         await new Blob(['a']).text();
         await crypto.subtle.digest('SHA-256', new Uint8Array(1));
         return { heard, locks };",
        Value::Null,
    );
    assert_eq!(outcome.result.unwrap(), json!({"heard": [], "locks": ["locked", "locked", "locked", "locked"]}));
}
