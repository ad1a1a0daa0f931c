//! Tools that throw, in many ways.

use std::sync::Arc;

use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::Script;
use serde_json::{Value, json};

use crate::fixture::{block_on, execute, function, invocation, run_in, shared};

fn failure(body: &str) -> rcrt_breadcrumb::ToolFailure {
    execute(body, Value::Null).result.expect_err(body)
}

#[test]
fn a_thrown_error_keeps_its_name_message_and_stack() {
    let failure = failure("const e = new TypeError('no good'); throw e;");
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert_eq!(failure.message, "TypeError: no good");
    let details = failure.details.unwrap();
    assert_eq!(details["name"], "TypeError");
    let stack = details["stack"].as_str().unwrap();
    assert!(stack.contains("tool.js:1:"), "{stack}");
    assert!(!stack.contains("ext:") && !stack.contains("tool:///"), "{stack}");
}

#[test]
fn stacks_have_positions_in_the_authors_source() {
    let source = "interface Input {\n  n: number;\n}\n\nexport async function execute(input: Input): Promise<number> {\n  \
                  const half: number = input.n / 2;\n  if (half > 1) throw new RangeError(`too much: ${half}`);\n  return half;\n}\n";
    let compiled = rcrt_typescript::compile(source, "half.ts", rcrt_typescript::Dialect::TypeScript).unwrap();
    let mut call = invocation("", json!({"n": 4}));
    call.script = Arc::new(Script::new("half.ts".into(), compiled.javascript, Some(compiled.source_map)));
    let failure = block_on(run_in(shared(), call)).result.unwrap_err();
    assert_eq!(failure.message, "RangeError: too much: 2");
    let details = failure.details.unwrap();
    assert!(details["stack"].as_str().unwrap().contains("half.ts:7:23"), "{details}");
}

#[test]
fn every_thrown_value_has_a_message() {
    assert_eq!(failure("throw 'plain words'").message, "plain words");
    assert_eq!(failure("throw { message: 'like an error' }").message, "like an error");
    assert_eq!(failure("throw 42").message, "number: 42");
    assert_eq!(failure("throw null").message, "null: null");
    assert!(failure("throw { code: 7 }").message.contains("code: 7"));
    assert_eq!(failure("return Promise.reject(new Error('rejected'))").message, "rejected");
    assert!(failure("throw new AggregateError([new Error('one')], 'many')").message.contains("many"));
    assert_eq!(failure("throw new DOMException('gone', 'AbortError')").message, "AbortError: gone");
    assert!(failure("nowhere.x").message.starts_with("ReferenceError:"));
}

#[test]
fn characters_that_records_cannot_store_are_replaced_in_messages() {
    for odd in ["\\u0000", "\\ud800"] {
        let outcome = execute(&format!("console.log('a{odd}b'); return 1"), Value::Null);
        assert_eq!((outcome.result.unwrap(), outcome.console[0].message.as_str()), (json!(1), "a\u{FFFD}b"));
        let failure = failure(&format!("const e = new Error('a{odd}b'); e.name = 'N{odd}'; throw e"));
        assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::ExecutionFailed, "N\u{FFFD}: a\u{FFFD}b"));
        let details = failure.details.unwrap();
        assert_eq!(details["name"], "N\u{FFFD}");
        assert!(!details.to_string().contains("\\u0000"), "{details}");
    }
    let refused = failure("await context.api.createBreadcrumb({ title: 'a\\ud800b' })");
    assert!(refused.message.starts_with("TypeError: createBreadcrumb: \"title\""), "{refused}");
}

#[test]
fn the_causes_of_an_error_are_reported() {
    let failure = failure(
        "const first = new RangeError('first'); throw new Error('last', { cause: new Error('middle', { cause: first }) })",
    );
    assert_eq!(failure.details.unwrap()["cause"], "Error: middle; caused by RangeError: first");
    assert_eq!(
        execute("const e = new Error('round'); e.cause = e; throw e", Value::Null).result.unwrap_err().message,
        "round"
    );
}

#[test]
fn the_errors_of_an_aggregate_are_reported() {
    let cause = |body: &str| failure(body).details.unwrap()["cause"].clone();
    let both = "new AggregateError([new Error('one'), new TypeError('two')], 'many')";
    assert_eq!(cause(&format!("throw {both}")), "2 errors: Error: one; TypeError: two");
    assert_eq!(
        cause(&format!("throw new Error('x', {{ cause: {both} }})")),
        "AggregateError: many (2 errors: Error: one; TypeError: two)"
    );
    assert_eq!(cause("await Promise.any([Promise.reject(new Error('one'))])"), "1 error: Error: one");
    assert_eq!(cause("throw new AggregateError('123456', 'many')"), "6 errors: 1; 2; 3; 4; 5; ...");
}

/// The code is evaluated by the engine, which describes the error itself.
#[test]
fn an_error_outside_of_execute_keeps_its_causes_and_its_position() {
    let run = |code: &str| block_on(run_in(shared(), invocation(code, Value::Null))).result.unwrap_err();
    let thrown =
        "throw new Error('x', { cause: new AggregateError([new Error('one'), new RangeError('two')], 'many') })";
    let details = run(&format!("\n{thrown}; export function execute() {{}}")).details.unwrap();
    assert_eq!(details["cause"], "AggregateError: many (2 errors: Error: one; RangeError: two)");
    assert!(details["stack"].as_str().unwrap().contains("tool.js:2:"), "{details}");
    let details = run("throw new AggregateError([new Error('one')], 'many'); export function execute() {}").details;
    assert_eq!(details.unwrap()["cause"], "1 error: Error: one");
}

#[test]
fn hostile_errors_become_ordinary_failures() {
    let hostile = [
        "throw { get message() { throw new Error('inner') }, get stack() { throw 1 } }",
        "throw new Proxy({}, { get() { throw new Error('trap') }, getPrototypeOf() { throw 1 } })",
        "Error.prepareStackTrace = () => { throw new Error('again') }; throw new Error('outer')",
        "Error.prepareStackTrace = () => ({ toString() { throw 1 } }); throw new Error('outer')",
        "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw e } }); throw e",
        "throw { toString() { throw 1 }, [Symbol.toPrimitive]() { throw 2 } }",
        "const e = new Error('m'.repeat(1_000_000)); throw e",
        "String.prototype.slice = () => { throw 1 }; Object.prototype.toJSON = () => { throw 2 }; throw new Error('x')",
        "globalThis.Error = class { constructor() { throw 1 } }; JSON.stringify = null; null.x",
        "throw { [Symbol.for('Deno.customInspect')]() { throw 1 } }",
    ];
    for body in hostile {
        let failure = failure(body);
        assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{body}: {failure}");
        assert!(failure.message.len() < 20_000, "{body}");
    }
}

#[test]
fn formatting_an_error_or_a_result_is_bounded_by_the_timeout() {
    for body in [
        "throw { get message() { for (;;); } }",
        "throw { get stack() { for (;;); } }",
        "throw { get name() { for (;;); } }",
        "throw { get cause() { for (;;); } }",
        "throw { get cause() { return this } , get message() { for (;;); } }",
        "throw new Proxy({}, { get() { for (;;); } })",
        "throw new Proxy({}, { getPrototypeOf() { for (;;); } })",
        "Error.prepareStackTrace = () => { for (;;); }; throw new Error('x')",
        "Object.defineProperty(Error.prototype, 'name', { get() { for (;;); } }); throw new Error('x')",
        "return { toJSON() { for (;;); } }",
        "return { get a() { for (;;); } }",
        "return new Proxy({}, { ownKeys() { for (;;); } })",
        "return new Proxy([], { get() { for (;;); } })",
        "return { then() { for (;;); } }",
        "Object.prototype.toJSON = () => { for (;;); }; return {}",
        "console.log(new Proxy({}, { get() { for (;;); }, ownKeys() { for (;;); }, getPrototypeOf() { for (;;); } })); for (;;);",
        "Promise.reject({ get message() { for (;;); }, get stack() { for (;;); } }); await new Promise((r) => setTimeout(r, 1)); for (;;);",
    ] {
        let mut call = invocation(&function(body), Value::Null);
        call.limits.timeout_ms = 200;
        let failure = block_on(run_in(shared(), call)).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::Timeout, "{body}: {failure}");
    }
    for code in [
        "Error.prepareStackTrace = () => { for (;;); }; throw new Error('x'); export function execute() {}",
        "for (;;); export function execute() {}",
        "await new Promise((r) => { const spin = () => Promise.resolve().then(spin); spin() }); export function execute() {}",
    ] {
        let mut call = invocation(code, Value::Null);
        call.limits.timeout_ms = 200;
        let failure = block_on(run_in(shared(), call)).result.expect_err(code);
        assert_eq!(failure.code, ErrorCode::Timeout, "{code}: {failure}");
    }
    // The engine may or may not call these.
    for thrown in
        ["{ get message() { for (;;); } }", "{ get stack() { for (;;); } }", "new Proxy({}, { get() { for (;;); } })"]
    {
        let mut call = invocation(&format!("throw {thrown}; export function execute() {{}}"), Value::Null);
        call.limits.timeout_ms = 200;
        let failure = block_on(run_in(shared(), call)).result.expect_err(thrown);
        assert!([ErrorCode::Timeout, ErrorCode::ExecutionFailed].contains(&failure.code), "{thrown}: {failure}");
    }
}

#[test]
fn code_that_survives_termination_times_out_too() {
    for body in [
        "for (;;) { try { for (;;); } finally { continue } }",
        "const spin = () => Promise.resolve().then(spin); await spin()",
        "queueMicrotask(function again() { queueMicrotask(again) }); await new Promise(() => {})",
        "const f = () => { try { f() } finally { f() } }; f()",
        "for await (const _ of { [Symbol.asyncIterator]: () => ({ next: () => ({ done: false }) }) });",
        "setInterval(() => { for (;;); }, 0); await new Promise(() => {})",
        "const t = new EventTarget(); t.addEventListener('x', () => { for (;;) { try { t.dispatchEvent(new Event('x')) } catch {} } }); t.dispatchEvent(new Event('x'))",
        "new ReadableStream({ pull() { for (;;); } }, { highWaterMark: 1 }); await new Promise(() => {})",
        "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)",
    ] {
        let mut call = invocation(&function(body), Value::Null);
        call.limits.timeout_ms = 200;
        let failure = block_on(run_in(shared(), call)).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::Timeout, "{body}: {failure}");
    }
    assert_eq!(execute("return 'alive'", Value::Null).result.unwrap(), "alive");
}

#[test]
fn a_stack_overflow_in_the_platform_is_an_ordinary_error() {
    for body in [
        "const f = () => { new URL('http://x/'); f() }; f()",
        "const f = () => structuredClone({ get a() { return f() } }); f()",
        "const f = () => new Headers({ get a() { return f() } }); f()",
        "const f = () => { try { throw new Error('x', { cause: f() }) } catch (e) { throw e } }; f()",
        "let o = []; for (let i = 0; i < 200_000; i++) o = [o]; structuredClone(o)",
        "let o = {}; for (let i = 0; i < 200_000; i++) o = { o }; console.log(o); console.dir(o, { depth: Infinity }); throw o",
        "let e = new Error('a'); for (let i = 0; i < 50_000; i++) e = new Error('b', { cause: e }); console.log(e); throw e",
        "let e = new Error('a'); for (let i = 0; i < 50_000; i++) e = new AggregateError([e], 'b'); console.log(e); throw e",
        "new RegExp('('.repeat(200_000) + ')'.repeat(200_000))",
        "let p = {}; for (let i = 0; i < 50_000; i++) p = new Proxy(p, {}); console.log(p); p.x",
        "let f = () => 1; for (let i = 0; i < 50_000; i++) f = f.bind(null); throw f()",
    ] {
        let failure = execute(body, Value::Null).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{body}: {failure}");
        assert!(!failure.message.contains("died"), "{body}: {failure}");
        assert!(failure.message.len() < 20_000, "{body}");
    }
    assert_eq!(execute("return 'alive'", Value::Null).result.unwrap(), "alive");
}

#[test]
fn code_that_does_not_load_says_why() {
    let run = |code: &str| block_on(run_in(shared(), invocation(code, Value::Null))).result.unwrap_err();
    assert!(run("export function execute( {").message.starts_with("SyntaxError:"));
    assert!(run("export const other = 1").message.contains("does not export a function execute"));
    assert!(run("export const execute = 5").message.contains("does not export a function execute"));
    assert!(run("throw new Error('at the top'); export function execute() {}").message.contains("at the top"));
    assert!(run("import x from './x.js'; export function execute() {}").message.contains("cannot import"));
    let stuck = run("await new Promise(() => {}); export function execute() {}");
    assert!(stuck.message.contains("can never settle"), "{stuck}");
}

#[test]
fn imports_are_refused() {
    assert!(failure("await import('node:fs')").message.contains("cannot import"));
    assert!(failure("await import('data:text/javascript,export default 1')").message.contains("cannot import"));
}

#[test]
fn code_from_text_is_refused() {
    for body in ["eval('1')", "new Function('return 1')()", "(async () => {}).constructor('return 1')()"] {
        assert!(failure(body).message.starts_with("EvalError:"), "{body}");
    }
}

#[test]
fn unhandled_errors_are_written_to_the_console() {
    let outcome = execute(
        "Promise.reject(new Error('lost')); setTimeout(() => { throw new Error('late') }, 1);
         await new Promise((resolve) => setTimeout(resolve, 20)); return 'fine'",
        Value::Null,
    );
    assert_eq!(outcome.result.unwrap(), json!("fine"));
    let text: Vec<&str> = outcome.console.iter().map(|line| line.message.as_str()).collect();
    assert!(text.iter().any(|line| line.contains("in promise") && line.contains("lost")), "{text:?}");
    assert!(text.iter().any(|line| line.contains("late")), "{text:?}");
}
