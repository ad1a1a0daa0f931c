//! What a tool can do in a process that calls share: the same as in one of its own.

use serde_json::{Value, json};

use super::Calls;
use crate::fixture::block_on;

/// Runs the code five times: in a process of its own, in one that is being prepared, and in that
/// again. Returns the results.
fn five_times(code: &str) -> Vec<Value> {
    block_on(async {
        let calls = Calls::of(code).await;
        let mut results = Vec::new();
        for _ in 0..5 {
            let outcome = calls.run(Value::Null).await;
            let console: Vec<String> = outcome.console.into_iter().map(|line| line.message).collect();
            let result = match outcome.result {
                Ok(value) => json!({ "ok": value }),
                Err(failure) => json!({ "message": failure.message, "details": failure.details }),
            };
            results.push(json!([result, console]));
        }
        calls.sandbox.close().await;
        results
    })
}

fn is_always(code: &str, wanted: &Value) {
    let results = five_times(code);
    for result in &results {
        assert_eq!(result[0]["ok"], *wanted, "{code}: {results:?}");
    }
    assert!(results.iter().all(|result| *result == results[0]), "{code}: {results:?}");
}

#[test]
fn a_tool_that_changes_builtins_gets_its_own_processes() {
    is_always(
        "export function execute() { console.log('once'); Array.prototype.left ??= 0; Array.prototype.left += 1; return [].left }",
        &json!(1),
    );
    is_always(
        "Object.defineProperty(String.prototype, 'shout', { value() { return `${this}!` } });
         export const execute = () => 'a'.shout()",
        &json!("a!"),
    );
    is_always("Math.max = () => 7; export const execute = () => Math.max(1)", &json!(7));
    is_always("globalThis.Map = class { size = 7 }; export const execute = () => new Map().size", &json!(7));
    is_always(
        "const { fetch } = globalThis; globalThis.fetch = () => 7; export const execute = () => [globalThis.fetch(), fetch.name]",
        &json!([7, "fetch"]),
    );
    is_always("export function execute() { delete Array.prototype.at; return typeof [].at }", &json!("undefined"));
    is_always(
        "Object.setPrototypeOf(Map.prototype, null); export const execute = () => `${Object.getPrototypeOf(Map.prototype)}`",
        &json!("null"),
    );
}

#[test]
fn so_does_one_that_changes_them_in_code_that_nothing_waits_for() {
    for change in [
        "setTimeout(() => { Array.prototype.left = 1; done([].left) }, 1)",
        "queueMicrotask(() => { Array.prototype.left = 1; done([].left) })",
        "Promise.resolve().then(() => { Array.prototype.left = 1; done([].left) })",
        "const target = new EventTarget(); target.addEventListener('x', () => { Array.prototype.left = 1 });
            target.dispatchEvent(new Event('x')); done([].left ?? 0)",
        "setTimeout(() => { try { Array.prototype.left = 1 } catch (error) { throw new Error('no', { cause: error }) } done([].left) }, 1)",
    ] {
        is_always(&format!("export const execute = () => new Promise((done) => {{ {change} }})"), &json!(1));
    }
}

#[test]
fn a_call_that_waits_forever_for_a_refused_change_is_the_last_one() {
    block_on(async {
        let mut calls = Calls::of(
            "export const execute = () => new Promise((done) => { const waits = setInterval(() => {}, 10);
                setTimeout(() => { Array.prototype.left = 1; clearInterval(waits); done([].left) }, 1) })",
        )
        .await;
        assert_eq!(calls.value(Value::Null).await, 1);
        calls.call.limits.timeout_ms = 500;
        assert!(calls.run(Value::Null).await.result.is_err());
        calls.call.limits.timeout_ms = crate::fixture::PATIENCE_MS;
        assert_eq!(calls.value(Value::Null).await, 1);
        assert_eq!(calls.value(Value::Null).await, 1);
        calls.sandbox.close().await;
    });
}

#[test]
fn a_call_that_asked_for_something_before_is_not_repeated() {
    block_on(async {
        let calls = Calls::of(
            "export async function execute(_, { api }) { await api.getBreadcrumb('a').catch(() => {});
                Array.prototype.left = 1; return [].left }",
        )
        .await;
        assert_eq!(calls.value(Value::Null).await, 1);
        let failure = calls.run(Value::Null).await.result.unwrap_err();
        assert!(failure.message.contains("not extensible"), "{failure}");
        // The next attempt succeeds.
        assert!(failure.is_retryable && failure.message.contains("isolation"), "{failure}");
        assert_eq!(calls.value(Value::Null).await, 1);
        assert_eq!(calls.value(Value::Null).await, 1);
        calls.sandbox.close().await;
    });
}

#[test]
fn objects_of_a_tool_can_replace_what_they_inherit() {
    is_always(
        "class Mine extends Error { constructor(text) { super(text); this.name = 'Mine' } }
         export function execute() {
             const error = new Mine('a');
             error.message = 'b';
             const counts = {};
             for (const word of ['toString', 'valueOf', 'hasOwnProperty', 'constructor']) counts[word] = word.length;
             const list = [1];
             list.toString = () => 'list';
             function shown() {}
             shown.toString = () => 'shown';
             const plain = new TypeError('c');
             plain.name = 'Other';
             return [`${error}`, counts, `${list}`, `${shown}`, `${plain}`, Object.keys(error), `${{}}`];
         }",
        &json!([
            "Mine: b",
            {"toString": 8, "valueOf": 7, "hasOwnProperty": 14, "constructor": 11},
            "list",
            "shown",
            "Other: c",
            ["name"],
            "[object Object]"
        ]),
    );
}

#[test]
fn text_that_only_looks_like_a_refused_change_costs_no_process() {
    block_on(async {
        let calls = Calls::of(
            "export function execute(city) { if (city === null) return Object.isFrozen(Map.prototype);
                throw new Error(`unknown city: ${city}`) }",
        )
        .await;
        for text in ["TypeError: Cannot set property x", "Array is not extensible", "'get' on proxy: no"] {
            calls.value(Value::Null).await;
            let failure = calls.run(json!(text)).await.result.unwrap_err();
            assert!(failure.message.ends_with(text) && !failure.is_retryable, "{failure}");
        }
        assert_eq!(calls.value(Value::Null).await, true);
        calls.sandbox.close().await;
    });
}

#[test]
fn text_of_others_does_not_repeat_a_call_that_asked_for_something() {
    block_on(async {
        let calls = Calls::of(
            "export async function execute(text, { api }) { await api.getBreadcrumb('a').catch(() => {});
                if (text !== null) throw new Error(`the server said: ${text}`); return 1 }",
        )
        .await;
        for _ in 0..2 {
            calls.value(Value::Null).await;
        }
        let failure = calls.run(json!("the list is not extensible")).await.result.unwrap_err();
        assert!(!failure.is_retryable, "{failure}");
        calls.sandbox.close().await;
    });
}

#[test]
fn tools_that_stumble_over_frozen_builtins_get_their_own_processes() {
    for (code, expected) in [
        (
            "const log = new Proxy(console, { get: (on, key) => (...all) => on[key](...all) });
          export function execute() { log.info('a'); return 1 }",
            json!(1),
        ),
        (
            "const mine = new Proxy(Math, { get: (on, key) => key === 'random' ? () => 4 : Reflect.get(on, key) });
          export const execute = () => mine.random()",
            json!(4),
        ),
        (
            "export function execute() { try { Map.prototype.left = 1 } catch (error) { throw new Error(`no: ${error.message}`) } return 1 }",
            json!(1),
        ),
        ("Object.setPrototypeOf(Map, class {}); export const execute = () => 1", json!(1)),
    ] {
        is_always(code, &expected);
    }
}

#[test]
fn ordinary_code_for_errors_and_words_shares_a_process() {
    is_always(
        "function Mine(text) { this.message = text }
         Mine.prototype = Object.create(Error.prototype);
         Mine.prototype.constructor = Mine;
         Error.stackTraceLimit = 3;
         const deep = (n) => n === 0 ? new Error('deep').stack.split('\\n').length : deep(n - 1);
         export function execute() {
             const counts = {};
             for (const word of ['__lookupGetter__', '__defineSetter__', 'constructor']) counts[word] = 1;
             return [new Mine('a').constructor.name, deep(20), Object.keys(counts).length, Object.isFrozen(Map.prototype) !== undefined];
         }",
        &json!(["Mine", 4, 3, true]),
    );
}

#[test]
fn modules_are_the_same_each_time() {
    is_always(
        "const meta = [import.meta.url, import.meta.main, typeof import.meta.resolve];
         let refused; try { import.meta.resolve('x') } catch (error) { refused = error.name }
         export const execute = () => [meta, refused]",
        &json!([["tool:///tool.js", true, "function"], "TypeError"]),
    );
    is_always(
        "const late = await new Promise((done) => setTimeout(() => done('late'), 1)); export const execute = () => late",
        &json!("late"),
    );
    let refused = five_times("export const execute = async () => await import('x').catch((error) => error.message)");
    assert!(refused[0][0]["ok"].as_str().unwrap().contains("cannot import anything"), "{refused:?}");
    assert!(refused.iter().all(|result| *result == refused[0]), "{refused:?}");
}

#[test]
fn failures_are_the_same_each_time() {
    for code in [
        "export function execute() { throw new RangeError('here') }",
        "export function execute() { null.x }",
        "throw new Error('while loading')",
        "export function execute() { return () => 1 }",
        "export function execute( { return 1 }",
        "export const other = 1",
        "await new Promise(() => {}); export const execute = () => 1",
        "export const execute = () => new Promise(() => {})",
    ] {
        let results = five_times(code);
        assert!(results[0][0]["message"].is_string(), "{code}: {results:?}");
        assert!(results.iter().all(|result| *result == results[0]), "{code}: {results:?}");
    }
}

#[test]
fn the_console_formats_values_the_same_each_time() {
    let code = "class Point { x = 1 } export function execute() {
        console.log({ a: [1, { b: 2 }] }, new Point(), new Map([[1, 2]]), new Error('e').message, [1, , 3], Symbol('s'));
        console.count(); console.group('g'); console.log(new URL('https://example.org/'), new Headers({ a: 'b' }));
        return 1 }";
    let results = five_times(code);
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
}

#[test]
fn each_call_has_its_own_clock_and_random_numbers() {
    block_on(async {
        let calls = Calls::of(
            "const now = performance.now(); export async function execute() {
                await new Promise((done) => setTimeout(done, 30)); return [now, Math.random(), crypto.randomUUID()] }",
        )
        .await;
        let (mut seen, mut starts) = (Vec::new(), Vec::new());
        for _ in 0..6 {
            let result = calls.value(Value::Null).await;
            starts.push(result[0].as_f64().unwrap());
            seen.push(result[1].to_string());
            seen.push(result[2].to_string());
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
        // A clock that continued would include the calls before.
        assert!(starts[2..].iter().any(|start| *start < 30.0), "{starts:?}");
        calls.sandbox.close().await;
    });
}
