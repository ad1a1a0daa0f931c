//! Attempts to escape through JavaScript.

use serde_json::{Value, json};

use crate::fixture::{block_on, execute, function, invocation, run_in, shared, value};

#[test]
fn stack_frames_expose_no_function_and_no_object() {
    let found = value(
        "const found = []; let seen = 0;
         Error.prepareStackTrace = (_, sites) => {
             for (const site of sites) {
                 seen += 1;
                 const names = new Set();
                 for (let o = site; o !== null && o !== Object.prototype; o = Object.getPrototypeOf(o)) {
                     for (const key of Reflect.ownKeys(o)) names.add(key);
                 }
                 for (const name of names) {
                     let result;
                     try { result = typeof site[name] === 'function' && name !== 'constructor' ? site[name]() : undefined } catch { continue }
                     if ((typeof result === 'object' && result !== null) || typeof result === 'function') found.push(String(name));
                 }
             }
             return '';
         };
         const look = () => new Error().stack;
         [1].map(look); setTimeout(look, 0); queueMicrotask(look); await new Promise((r) => setTimeout(r, 2));
         try { structuredClone({ get a() { look(); return 1 } }) } catch {}
         try { new Headers({ get a() { look(); return '1' } }) } catch {}
         try { new Request('https://h/', { get method() { look(); return 'GET' } }) } catch {}
         console.log({ get [Symbol.toStringTag]() { look(); return 'x' } });
         const target = new EventTarget(); target.addEventListener('a', look); target.dispatchEvent(new Event('a'));
         await new ReadableStream({ start: look, pull(c) { look(); c.close() } }).getReader().read();
         try { await context.api.createBreadcrumb({ toJSON() { look(); return {} } }) } catch {}
         return { found, seen: seen > 20 };",
    );
    assert_eq!(found, json!({"found": [], "seen": true}));
}

#[test]
fn functions_do_not_expose_their_caller() {
    let found = value(
        "const found = [];
         const functions = [setTimeout, setInterval, clearTimeout, structuredClone, atob, fetch, queueMicrotask, console.log,
             Reflect.getOwnPropertyDescriptor(Request.prototype, 'url').get, Headers.prototype.get, EventTarget,
             EventTarget.prototype.dispatchEvent, crypto.getRandomValues, performance.now, context.api.getBreadcrumb, Headers];
         const look = () => {
             for (const f of functions) for (const key of ['caller', 'arguments']) {
                 try { if (f[key] !== null && f[key] !== undefined) found.push(f.name + '.' + key) } catch {}
             }
         };
         look();
         structuredClone({ get a() { look(); return 1 } });
         new Headers({ get a() { look(); return '1' } });
         console.log({ get [Symbol.toStringTag]() { look(); return 'x' } });
         setTimeout(look, 0); await new Promise((r) => setTimeout(r, 2));
         const target = new EventTarget(); target.addEventListener('a', look); target.dispatchEvent(new Event('a'));
         return found",
    );
    assert_eq!(found, json!([]));
}

#[test]
fn the_console_exposes_nothing_of_its_printer() {
    let found = value(
        "const heard = [];
         const hear = (...args) => { heard.push(args.map((a) => typeof a)); return 'heard' };
         class Loud { [Symbol.for('Deno.customInspect')] = hear; [Symbol.for('Deno.privateCustomInspect')] = hear;
             [Symbol.for('nodejs.util.inspect.custom')] = hear }
         console.log(new Loud()); console.dir(new Loud()); console.table([new Loud()]); console.error(new Loud()); console.trace(new Loud());
         Promise.reject(new Loud()); await new Promise((r) => setTimeout(r, 1));
         return heard",
    );
    assert_eq!(found, json!([]));
    let thrown = execute("throw { [Symbol.for('Deno.customInspect')]() { throw 'heard' } }", Value::Null);
    assert!(!thrown.result.unwrap_err().message.contains("heard"));
}

#[test]
fn imports_are_refused_for_every_specifier() {
    let specifiers = [
        "ext:core/ops",
        "ext:core/mod.js",
        "ext:sandbox/main.js",
        "ext:deno_web/00_url.js",
        "tool:///tool.js",
        "./tool.js",
        "node:fs",
        "data:text/javascript,export default 1",
        "blob:null/x",
        "https://example.org/x.js",
        "",
    ];
    let body = format!(
        "const got = [];
         for (const s of {specifiers:?}) {{
             try {{ await import(s); got.push(s) }} catch (e) {{ if (!/cannot import/.test(e.message)) got.push(s + ': ' + e.message) }}
             try {{ await import(s, {{ with: {{ type: 'json' }} }}); got.push('json ' + s) }} catch {{}}
             try {{ await import(s, {{ with: {{ type: 'text' }} }}); got.push('text ' + s) }} catch {{}}
         }}
         return got"
    );
    assert_eq!(value(&body), json!([]));
    for code in [
        "import 'ext:core/mod.js'; export function execute() {}",
        "import * as ops from 'ext:core/ops'; export function execute() { return Object.keys(ops) }",
        "import x from 'tool:///tool.js'; export function execute() {}",
        "import x from 'data:application/json,1' with { type: 'json' }; export function execute() {}",
        "export * from 'ext:core/mod.js'; export function execute() {}",
        "import source x from 'data:application/wasm,'; export function execute() {}",
        "import defer * as x from 'ext:core/mod.js'; export function execute() { return x.core }",
    ] {
        let failure = block_on(run_in(shared(), invocation(code, Value::Null))).result.expect_err(code);
        assert!(
            failure.message.contains("cannot import") || failure.message.contains("SyntaxError"),
            "{code}: {failure}"
        );
    }
}

#[test]
fn text_is_never_run_as_code() {
    let found = value(
        "const ways = {
             eval: () => eval('1'), indirect: () => (0, eval)('1'), Function: () => Function('return 1')(), new: () => new Function('1'),
             arrow: () => (() => {}).constructor('1'), async: () => (async () => {}).constructor('1'),
             generator: () => (function* () {}).constructor('1'), asyncGenerator: () => (async function* () {}).constructor('1'),
             prototype: () => Function.prototype.constructor('1'), method: () => [].map.constructor('1'),
             api: () => context.api.getBreadcrumb.constructor('1'), platform: () => fetch.constructor('1'),
             construct: () => Reflect.construct(Function, ['1']), apply: () => Reflect.apply(Function, null, ['1']),
             subclass: () => new (class extends Function {})('1'), asyncSubclass: () => new (class extends (async () => {}).constructor {})('1'),
             species: () => Reflect.construct((() => {}).constructor, ['1'], Array), global: () => globalThis.Function('1'),
             stringTimer: () => setTimeout('globalThis.ran = true'), interval: () => setInterval('globalThis.ran = true', 1),
             objectTimer: () => setTimeout({ toString: () => 'globalThis.ran = true' }),
         };
         const ran = [];
         for (const [name, way] of Object.entries(ways)) { try { way(); ran.push(name) } catch (e) { if (!['EvalError', 'TypeError'].includes(e.name)) ran.push(e.name) } }
         await new Promise((r) => setTimeout(r, 5));
         return [ran, typeof globalThis.ran]",
    );
    assert_eq!(found, json!([[], "undefined"]));
}

#[test]
fn shared_memory_is_not_available() {
    let found = value(
        "const ways = {
             memory: () => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer,
             fixed: () => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).toFixedLengthBuffer(),
             resizable: () => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).toResizableBuffer(),
             clone: () => structuredClone(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })).buffer,
             exported: () => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(
                 [0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1, 7, 5, 1, 1, 109, 2, 0]))).exports.m.buffer,
             subclass: () => new (class extends WebAssembly.Memory {})({ initial: 1, maximum: 1, shared: true }).buffer,
             getter: () => Reflect.apply(Reflect.getOwnPropertyDescriptor(WebAssembly.Memory.prototype, 'buffer').get,
                 new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }), []),
         };
         const got = [];
         for (const [name, way] of Object.entries(ways)) {
             try { if (Object.prototype.toString.call(way()) !== '[object ArrayBuffer]') got.push(name) } catch {}
         }
         const wide = typeof WebAssembly === 'object' ? new WebAssembly.Memory({ initial: 1 }).buffer.byteLength : 65536;
         return [got, typeof SharedArrayBuffer, typeof Atomics, wide]",
    );
    assert_eq!(found, json!([[], "undefined", "undefined", 65536]));
}

#[test]
fn inner_state_of_platform_objects_is_hidden() {
    let found = value(
        "const found = [];
         const objects = { request: new Request('https://h/', { method: 'POST', body: 'b' }), headers: new Headers({ a: 'b' }),
             response: new Response('b'), stream: new ReadableStream(), signal: new AbortController().signal, blob: new Blob(['x']),
             url: new URL('https://h/'), event: new Event('e'), form: new FormData(), mark: performance.mark('m'), crypto,
             writable: new WritableStream(), transform: new TransformStream(), error: new DOMException('m') };
         for (const [name, object] of Object.entries(objects)) {
             for (const key of Reflect.ownKeys(object)) {
                 const text = String(key);
                 if (typeof key === 'symbol' && text !== 'Symbol(Deno.core.hostObject)') found.push(name + text);
             }
             const heard = [];
             const spy = new Proxy(object, { get(target, key) { heard.push(key); return Reflect.get(target, key) } });
             for (const key of Reflect.ownKeys(Object.getPrototypeOf(object))) { try { void spy[key] } catch {} }
             if (heard.some((key) => typeof key === 'symbol' && /brand/.test(String(key)))) found.push(name + ' brand');
         }
         return found",
    );
    assert_eq!(found, json!([]));
}

#[test]
fn the_material_of_a_non_extractable_key_is_hidden() {
    let found = value(
        "const keys = [
             await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']),
             await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', false, ['encrypt']),
             (await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])).privateKey,
         ];
         const exposed = [];
         for (const key of keys) {
             for (const name of Reflect.ownKeys(key)) if (typeof key[name] === 'function') exposed.push(String(name));
             try { await crypto.subtle.exportKey('jwk', key); exposed.push('export') } catch {}
             try { structuredClone(key); exposed.push('clone') } catch {}
         }
         const statics = [Crypto, CryptoKey, SubtleCrypto].flatMap((c) => Object.getOwnPropertyNames(c))
             .filter((name) => !['length', 'name', 'prototype', 'supports', 'toString'].includes(name));
         const signed = await crypto.subtle.sign('HMAC', keys[0], new Uint8Array(1));
         return [exposed, statics, signed.byteLength]",
    );
    assert_eq!(found, json!([[], [], 32]));
}

#[test]
fn errors_of_listeners_are_written_to_the_console() {
    let body = "const t = new EventTarget(); t.addEventListener('x', () => { throw new Error('boom') }); return t.dispatchEvent(new Event('x'))";
    let outcome = block_on(run_in(shared(), invocation(&function(body), Value::Null)));
    assert_eq!(outcome.result.unwrap(), true);
    assert!(outcome.console[0].message.contains("boom"), "{:?}", outcome.console);
}

#[test]
fn a_forged_host_object_affects_at_most_its_own_worker() {
    for forged in [
        "({ type: 'no such type' })",
        "5",
        "({ type: 'Blob', parts: [{ uuid: '../x', size: -1 }], size: 1 })",
        "({ type: 'CryptoKey' })",
    ] {
        let body =
            format!("return String(structuredClone({{ [Symbol.for('Deno.core.hostObject')]: () => {forged} }}))");
        let outcome = execute(&body, Value::Null);
        if let Err(failure) = outcome.result {
            assert_eq!(failure.code, rcrt_breadcrumb::ErrorCode::ExecutionFailed, "{forged}: {failure}");
        }
        assert_eq!(value("return 'alive'"), "alive");
    }
}
