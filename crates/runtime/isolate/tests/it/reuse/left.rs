//! What a call can leave in each kind of state that reflection does not show, and in everything
//! that it does show.

use serde_json::{Value, json};

use super::{Calls, shows_children};
use crate::fixture::block_on;

/// What a call does, and an expression in which the next call would notice it.
const LEFT: &[(&str, &str)] = &[
    ("globalThis.left = 1", "Reflect.ownKeys(globalThis).includes('left')"),
    ("globalThis[Symbol.for('left')] = 1", "Object.getOwnPropertySymbols(globalThis).map(String)"),
    ("Object.defineProperty(globalThis, 'left', { value: 1 })", "'left' in globalThis"),
    ("Object.preventExtensions(globalThis)", "Object.isExtensible(globalThis)"),
    ("globalThis.fetch = () => 1", "fetch.length"),
    ("const { fetch } = globalThis; delete globalThis.fetch; globalThis.fetch = fetch", "Reflect.ownKeys(globalThis).join()"),
    ("Object.defineProperty(globalThis, 'URL', { enumerable: true })", "Object.keys(globalThis)"),
    ("Reflect.setPrototypeOf(globalThis, { left: 1 })", "typeof left"),
    ("Reflect.defineProperty(Object.getPrototypeOf(globalThis), 'left', { value: 1 })", "typeof left"),
    ("Reflect.defineProperty(Array.prototype, 'left', { value: 1 })", "typeof [].left"),
    ("Reflect.defineProperty(context.api.callTool, 'left', { value: 1 })", "typeof context.api.callTool.left"),
    ("Reflect.defineProperty(Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get ?? {}, 'left', { value: 1 })",
        "typeof Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.left"),
    ("Reflect.set(Error, 'stackTraceLimit', 1)", "Error.stackTraceLimit"),
    ("Reflect.set(Error, 'prepareStackTrace', () => 'mine')", "new Error('e').stack.split('\\n')[0]"),
    ("/(secret)/.exec('a secret b')", "[RegExp.$1, RegExp.lastMatch, RegExp.leftContext, RegExp.rightContext, RegExp.input]"),
    ("RegExp.input = 'secret'", "RegExp.input"),
    ("console.count('x'); console.group('g'); console.time('t')", "(console.count('x'), console.timeEnd('t'), 1)"),
    ("performance.mark('secret'); performance.measure('m')", "performance.getEntries().length"),
    ("performance.addEventListener('x', () => { globalThis.heard = 1 })",
        "(performance.dispatchEvent(new Event('x')), typeof heard)"),
    ("new PerformanceObserver(() => { globalThis.heard = 1 }).observe({ entryTypes: ['mark'] })",
        "(performance.mark('m'), await rest(), typeof heard)"),
    ("Error.captureStackTrace(globalThis); delete globalThis.stack",
        "`${Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.call(globalThis)}`"),
    ("Error.captureStackTrace(globalThis, execute); Object.getOwnPropertyDescriptor(globalThis, 'stack')?.set?.call(globalThis, 'secret'); delete globalThis.stack",
        "`${Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.call(globalThis)}`"),
    ("try { Error.captureStackTrace(Array.prototype) } catch {} Reflect.deleteProperty(Array.prototype, 'stack')",
        "`${Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.call(Array.prototype)}`"),
    ("const proto = Reflect.getPrototypeOf(CustomEvent); Reflect.setPrototypeOf(CustomEvent, function () { return Array.prototype });
        try { new CustomEvent('x', { detail: 'secret' }) } catch {} Reflect.setPrototypeOf(CustomEvent, proto)",
        "(() => { try { return `${Object.getOwnPropertyDescriptor(CustomEvent.prototype, 'detail').get.call(Array.prototype)}` } catch (error) { return error.name } })()"),
    ("class Base { constructor() { return Array.prototype } } class Stamp extends Base { #left = 1; static of(o) { return #left in o } } new Stamp()",
        "(() => { class Base { constructor() { return Array.prototype } } class Stamp extends Base { #left = 1; static of(o) { return #left in o } } const was = Stamp.of([].__proto__); new Stamp(); return was })()"),
    ("Object.prototype.constructor = Array; Object.prototype.toString = () => 'left'; Array.prototype.toString = () => 'left'",
        "[({}).constructor.name, `${{}}`, `${[1]}`]"),
    ("Object.freeze(Object.prototype); Object.freeze(Error.prototype)",
        "(() => { const own = {}; own.constructor = 1; const error = new Error('e'); error.name = 'Own'; return [own.constructor, error.name] })()"),
    ("Reflect.defineProperty(({}).hasOwnProperty, 'call', { value: () => true })",
        "Object.prototype.hasOwnProperty.call({}, 'nothing')"),
    ("Reflect.set(Array.prototype, 'constructor', { [Symbol.species]: function () { return new Proxy([], {}) } });
        performance.mark('m'); performance.clearMarks()", "[1].map((x) => x).constructor.name"),
    ("Reflect.defineProperty(performance.mark('m'), 'entryType', { get() { globalThis.heard = 1; return 'mark' } })",
        "[typeof heard, performance.getEntries().length]"),
    ("Reflect.defineProperty(performance.measure('m'), 'entryType', { value: 'resource' })", "performance.getEntries().length"),
    ("Reflect.set(Reflect.getPrototypeOf(new Response('x')[symbol(Response, 'body')]), 'consume', async () => 'forged')",
        "await new Response('private').text()"),
    ("Reflect.set(Reflect.getPrototypeOf(new Request('https://example.org/', { method: 'POST', body: 'x' })[symbol(Request, 'body')]), 'left', 1)",
        "typeof new Response('x')[symbol(Response, 'body')].left"),
    ("for (const on of [Math, globalThis, context.api, Object.prototype, performance])
        try { accessor(Request, 'headers').set.call(on, { left: 1 }) } catch {}",
        "[Math, globalThis, context.api, Object.prototype, performance].map((on) =>
            { try { return `${accessor(Request, 'headers').get.call(on)?.left}` } catch { return 'undefined' } })"),
    ("try { accessor(Request, 'signal').get.call(Math).left = 1 } catch {}",
        "(() => { try { return `${accessor(Request, 'signal').get.call(Math).left}` } catch { return 'undefined' } })()"),
    ("for (const on of shared()) try { named(AbortSignal, '[[add]]').call(on, () => { globalThis.heard = 1 }) } catch {}",
        "(shared().forEach((on) => { try { named(AbortSignal, '[[runAbortSteps]]').call(on) } catch {} }), typeof heard)"),
    ("for (const on of shared()) for (const key of ['stopPropagation', 'stopImmediatePropagation']) try { Event.prototype[key].call(on) } catch {}",
        "shared().map((on) => { try { return `${Object.getOwnPropertyDescriptor(Event.prototype, 'cancelBubble').get.call(on)}` } catch { return 'undefined' } })"),
    ("try { accessor(Request, 'headers').set.call(template(), { left: 1 }) } catch {}",
        "(() => { try { return `${accessor(Request, 'headers').get.call(template())?.left}` } catch { return 'undefined' } })()"),
    ("for (const on of shared()) try { named(ReadableStreamDefaultController, '[[CancelSteps]]').call(on) } catch {}",
        "shared().map((on) => { try { return `${named(ReadableStreamDefaultController, '[[PullSteps]]').call(on, {})}` } catch (error) { return error.message } })"),
    ("Error.captureStackTrace(globalThis); Object.getOwnPropertyDescriptor(new Error(), 'stack')?.set?.call(globalThis, undefined); delete globalThis.stack",
        "(Object.getOwnPropertyDescriptor(new Error(), 'stack')?.set?.call(Object.create(globalThis), 'x'), `${Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.call(globalThis)}`)"),
    ("const fake = Object.create(null); Reflect.set(globalThis, 'globalThis', fake); Reflect.set(globalThis, 'left', 1)",
        "[typeof left, typeof globalThis.left]"),
    ("const of = globalThis; Reflect.set(of, 'globalThis', {}); Error.captureStackTrace(of); Object.getOwnPropertyDescriptor(new Error(), 'stack')?.set?.call(of, 'secret'); delete of.stack",
        "`${Object.getOwnPropertyDescriptor(new Error(), 'stack')?.get?.call(globalThis)}`"),
    ("const of = globalThis; Reflect.set(of, 'globalThis', Math); Reflect.set(new CountQueuingStrategy({ highWaterMark: 1 }).size, 'left', 1); Reflect.set(of, 'globalThis', of)",
        "(() => { const of = globalThis; Reflect.set(of, 'globalThis', Math); const { size } = new CountQueuingStrategy({ highWaterMark: 1 }); Reflect.set(of, 'globalThis', of); return typeof size.left })()"),
    ("let given; const pull = symbol(ReadableStreamDefaultController, '[[PullSteps]]');
        const stream = new ReadableStream({ start: (to) => { to[pull] = (request) => { given = request } } });
        stream.getReader().read(); Reflect.set(Reflect.getPrototypeOf(given), 'closeSteps', () => { globalThis.heard = 1 })",
        "(await new ReadableStream({ start: (to) => to.close() }).getReader().read(), typeof heard)"),
    ("let bytes; new ReadableStream({ type: 'bytes', start: (to) => { bytes = to } });
        try { bytes[symbol(ReadableByteStreamController, '[[PullSteps]]')]() } catch (error) { Reflect.set(Reflect.getPrototypeOf(error), 'left', 1) }",
        "(() => { let bytes; new ReadableStream({ type: 'bytes', start: (to) => { bytes = to } });
            try { bytes[symbol(ReadableByteStreamController, '[[PullSteps]]')](); return 1 } catch (error) { return typeof error.left } })()"),
    ("const real = Error; let sites; globalThis.Error = function () {}; globalThis.Error.prepareStackTrace = (_, all) => { sites = all; return '' };
        try { null.x } catch (error) { error.stack } globalThis.Error = real; if (sites) Reflect.set(Reflect.getPrototypeOf(sites[0]), 'left', 1)",
        "(() => { const real = Error; let sites; globalThis.Error = function () {}; globalThis.Error.prepareStackTrace = (_, all) => { sites = all; return '' };
            try { null.x } catch (error) { error.stack } globalThis.Error = real; return sites === undefined ? 'none' : typeof sites[0].left })()"),
    ("const event = globalThis; event.type = 'x'; event.eventPhase = 0; const target = new EventTarget(); target.addEventListener('x', () => {});
        try { target.dispatchEvent(event) } catch {} delete event.type; delete event.eventPhase",
        "(() => { try { new EventTarget().dispatchEvent(globalThis); return 1 } catch (error) { return error.message } })()"),
    ("Reflect.set(new CountQueuingStrategy({ highWaterMark: 1 }).size, 'left', 1)",
        "typeof new CountQueuingStrategy({ highWaterMark: 1 }).size.left"),
    ("Reflect.set(new ByteLengthQueuingStrategy({ highWaterMark: 1 }).size, 'left', 1)",
        "typeof new ByteLengthQueuingStrategy({ highWaterMark: 1 }).size.left"),
    ("setTimeout(() => { globalThis.heard = 1 }, 1)", "(await rest(), typeof heard)"),
    ("setInterval(() => { globalThis.heard = 1 }, 1)", "(await rest(), typeof heard)"),
    ("AbortSignal.timeout(1).onabort = () => { globalThis.heard = 1 }", "(await rest(), typeof heard)"),
    ("Object.defineProperty(AbortSignal.timeout(1e6), 'aborted', { get() { Object.prototype.toString = () => 'left'; return true } })",
        "`${{}}`"),
    ("Reflect.set(AbortSignal.timeout(1e6), symbol(AbortSignal, '[[signalAbort]]'), () => { Object.prototype.valueOf = () => 'left' })",
        "`${({}).valueOf()}`"),
    ("Object.defineProperty(AbortSignal.timeout(1e6), 'aborted', { get() { performance.addEventListener('x', () => console.log('left')); return true } })",
        "(performance.dispatchEvent(new Event('x')), 1)"),
    ("Object.defineProperty(AbortSignal.timeout(1e6), 'aborted', { get() { Promise.resolve().then(() => { globalThis.heard = 1 }); return true } })",
        "(await rest(), typeof heard)"),
    ("const source = new ReadableStream({ start: (to) => to.enqueue(1) });
        const sink = new WritableStream({ abort() { Object.prototype.toString = () => 'left' } });
        source.pipeTo(sink, { signal: AbortSignal.timeout(1e6) }).catch(() => { globalThis.heard = 1 }); await 0",
        "[`${{}}`, (await rest(), typeof heard)]"),
    ("Object.defineProperty(AbortSignal.timeout(10), 'aborted', { get() { globalThis.heard = 1; return true } })",
        "(await rest(), typeof heard)"),
    ("const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { globalThis.heard = 1 }; port2.postMessage(1)",
        "(await rest(), typeof heard)"),
    ("new MessageChannel()", "1"),
    ("for (let i = 0; i < 9; i++) clearTimeout(setTimeout(() => {}, 1))",
        "(() => { const id = setTimeout(() => {}, 1); clearTimeout(id); return id })()"),
    ("clearTimeout(setTimeout(() => {}, 101))",
        "await new Promise((done) => { const order = []; setTimeout(() => order.push(1), 100); setTimeout(() => order.push(2), 101);
            const from = performance.now(); while (performance.now() - from < 110); setTimeout(() => done(order), 1) })"),
    ("cancelled(); cancelled(); for (let k = 0; k < 30; k++) at(k, cancelled)", "(await rest(), 1)"),
    ("cancelled(); cancelled(); const f = () => { for (let k = 0; k < 30; k++) at(k, cancelled) };
        const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 109, 1, 102, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 103, 0, 1, 10, 6, 1, 4, 0, 16, 0, 11];
        const instance = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), { m: { f } });
        await WebAssembly.promising?.(instance.exports.g)()", "(await rest(), 1)"),
    ("const failing = target(); for (let k = 0; k < 600; k++) at(k, () => failing.dispatchEvent(new Event('x')))",
        "(() => { try { target().dispatchEvent(new Event('x')); return 1 } catch (error) { return `${error}` } })()"),
    ("const of = globalThis; const proto = Reflect.getPrototypeOf(of);
        Reflect.setPrototypeOf(of, { __proto__: proto, queueMicrotask: () => { of.heard = 1 } }); queueMicrotask(() => {}); Reflect.setPrototypeOf(of, proto)",
        "(queueMicrotask(() => {}), await rest(), typeof heard)"),
    ("import('x').catch(() => { globalThis.heard = 1 })", "(await rest(), typeof heard)"),
    ("context.api.getBreadcrumb('x').catch(() => { globalThis.heard = 1 })", "(await rest(), typeof heard)"),
    ("fetch('https://example.org/').catch(() => { globalThis.heard = 1 })", "(await rest(), typeof heard)"),
    ("crypto.subtle.digest('SHA-256', new Uint8Array(1 << 20)).then(() => { globalThis.heard = 1 })", "(await rest(), typeof heard)"),
    ("new Blob(['x']).text().then(() => { globalThis.heard = 1 })", "(await rest(), typeof heard)"),
    ("new Response('x').body.pipeThrough(new CompressionStream('gzip')).getReader().read().then(rest).then(() => { globalThis.heard = 1 })",
        "(await rest(), typeof heard)"),
    ("new Response(new Blob(['x'])).body.getReader().read()", "1"),
    ("(async () => { for (let i = 0; i < 50; i++) await null; globalThis.heard = 1 })()", "(await rest(), typeof heard)"),
    ("WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => { globalThis.heard = 1 })",
        "(await rest(), typeof heard)"),
    ("const registry = new FinalizationRegistry(() => { globalThis.heard = 1 }); for (let i = 0; i < 100; i++) registry.register({}, 1)",
        "((() => { for (let i = 0; i < 40; i++) new Array(1e5).fill(i) })(), await rest(), typeof heard)"),
    ("Reflect.setPrototypeOf(globalThis, Intl.NumberFormat.prototype); try { Intl.NumberFormat.call(globalThis) } catch {}",
        "Object.getOwnPropertySymbols(globalThis).map(String)"),
    ("URL.createObjectURL(new Blob(['x']))", "1"),
];

fn code(leave: &str, notice: &str) -> String {
    format!(
        "const rest = () => new Promise((done) => setTimeout(done, 20));
         const symbol = (of, name) => Reflect.ownKeys(of.prototype).find((key) => String(key) === `Symbol(${{name}})`);
         const cancelled = () => clearTimeout(setTimeout(cancelled, 20));
         const target = () => {{ const made = new EventTarget(); made.addEventListener('x', () => {{ throw 1 }}); return made }};
         // Acts in the k-th frame before the end of the stack.
         const at = (k, act) => {{ let frame = 0; const go = () => {{ try {{ go() }} catch {{}} if (frame++ === k) try {{ act() }} catch {{}} }}; go() }};
         const named = (of, name) => of.prototype[symbol(of, name)];
         const template = () => ((strings) => strings)`left`;
         const shared = () => [Math, JSON, context_api, template(), Object.prototype, AbortSignal.prototype, performance];
         let context_api;
         const accessor = (of, name) => Object.getOwnPropertyDescriptor(of.prototype, symbol(of, name));
         export async function execute(input, context) {{
             context_api = context.api;
             if (input === 'leave') {{ {leave}; return null }}
             return [{notice}];
         }}"
    )
}

#[test]
fn no_kind_of_state_reaches_the_next_call() {
    for (leave, notice) in LEFT {
        block_on(async {
            let calls = Calls::of(&code(leave, notice)).await;
            let seen = async || {
                let outcome = calls.run(json!("notice")).await;
                let lines: Vec<String> = outcome.console.into_iter().map(|line| line.message).collect();
                (outcome.result.unwrap_or_else(|failure| panic!("{notice}: {failure}")), lines)
            };
            seen().await;
            // The first one in a process that is prepared for further calls.
            let first = seen().await;
            for _ in 0..3 {
                calls.run(json!("leave")).await.result.unwrap_or_else(|failure| panic!("{leave}: {failure}"));
                assert_eq!(seen().await, first, "{leave}");
            }
            calls.sandbox.close().await;
        });
    }
}

#[test]
fn what_calls_leave_for_good_reason_does_not_cost_the_process() {
    if !shows_children() {
        return;
    }
    for leave in [
        "globalThis.cache = new Map()",
        "console.group('g'); console.count()",
        "/(a)/.exec('a')",
        "performance.mark('m')",
        "clearTimeout(setTimeout(() => {}, 1e6))",
        "AbortSignal.timeout(1e6)",
        "AbortSignal.any([AbortSignal.timeout(1e6), new AbortController().signal])",
        "await fetch('https://example.org/', { signal: AbortSignal.timeout(1e6) }).catch(() => {})",
        "await rest(); await new Blob(['x']).text(); await crypto.subtle.digest('SHA-256', new Uint8Array(1))",
        "await new Response('x').text(); structuredClone({ a: [1] }); new URL('https://example.org/')",
        "const target = new EventTarget(); target.addEventListener('x', () => {}); target.dispatchEvent(new Event('x'))",
        "new Response(new ReadableStream()).body.getReader()",
        "new Promise(() => {})",
        "queueMicrotask(() => {}); new Response(new ReadableStream()).clone()",
        "(function deep(n) { if (n > 0) deep(n - 1) })(2000)",
    ] {
        block_on(async {
            let calls = Calls::of(&code(leave, "1")).await;
            calls.value(json!("leave")).await;
            calls.value(json!("leave")).await;
            let before = calls.process();
            calls.value(json!("leave")).await;
            calls.value(json!("leave")).await;
            assert_eq!(calls.process(), before, "{leave}");
            calls.sandbox.close().await;
        });
    }
}

/// Leaves a mark on every object that it reaches, and returns the paths of those that had one.
const MARKS: &str = include_str!("../../golden/marks.js");

#[test]
fn no_object_keeps_a_mark() {
    block_on(async {
        let calls = Calls::of(MARKS).await;
        let first = calls.value(Value::Null).await;
        assert!(first["reached"].as_u64().unwrap() > 1000 && first["made"].as_u64().unwrap() > 100, "{first}");
        let mut processes = Vec::new();
        for _ in 0..4 {
            let found = calls.value(Value::Null).await;
            assert_eq!(found["marked"], json!([]), "{found}");
            processes.push(calls.process());
        }
        if shows_children() {
            assert!(processes.iter().all(|process| *process == processes[0]), "{processes:?}");
        }
        calls.sandbox.close().await;
    });
}

/// Calls every member of every prototype on shared objects.
const RECEIVERS: &str = include_str!("../../golden/receivers.js");

#[test]
fn no_member_of_a_prototype_leaves_a_trace_on_a_shared_object() {
    for order in [[false, true], [true, false]] {
        block_on(async {
            let calls = Calls::of(RECEIVERS).await;
            calls.value(json!(order[0])).await;
            let first = [calls.value(json!(order[0])).await, calls.value(json!(order[1])).await];
            let process = calls.process();
            for _ in 0..2 {
                for (is_reversed, first) in order.into_iter().zip(&first) {
                    let found = calls.value(json!(is_reversed)).await;
                    let lines = |value: &Value| value.as_array().unwrap().clone();
                    let differing: Vec<_> =
                        lines(first).into_iter().zip(lines(&found)).filter(|(a, b)| a != b).collect();
                    assert!(differing.is_empty() && lines(first).len() > 2000, "{differing:?}");
                }
            }
            if shows_children() {
                assert_eq!(calls.process(), process, "only a process that is kept shows what it kept");
            }
            calls.sandbox.close().await;
        });
    }
}

#[test]
fn garbage_costs_neither_the_process_nor_a_call() {
    if !shows_children() {
        return;
    }
    block_on(async {
        let mut calls =
            Calls::of("export function execute() { return new Array(1 << 18).fill(0).map(String).length }").await;
        calls.call.limits.memory_mb = 40;
        for _ in 0..2 {
            calls.value(Value::Null).await;
        }
        let before = calls.process();
        for _ in 0..10 {
            calls.value(Value::Null).await;
        }
        assert_eq!(calls.process(), before);
        calls.sandbox.close().await;
    });
}

#[test]
fn memory_that_calls_pin_costs_the_process_and_not_a_call() {
    block_on(async {
        // No reflection finds what a private field holds.
        let mut calls = Calls::of(
            "class Base { constructor() { return Array.prototype } }
             class Stamp extends Base { #held = new Uint8Array(8 << 20).fill(1) }
             export function execute() { new Stamp(); return 1 }",
        )
        .await;
        // A limit that leaves no room for what four calls hold.
        for memory_mb in [96, 40] {
            calls.call.limits.memory_mb = memory_mb;
            for _ in 0..20 {
                assert_eq!(calls.value(Value::Null).await, 1);
            }
        }
        calls.sandbox.close().await;
    });
}
