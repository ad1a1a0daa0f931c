//! Inputs and results.

use rcrt_breadcrumb::{ErrorCode, TriggerEvent};
use serde_json::{Value, json};

use crate::fixture::{block_on, execute, function, invocation, run_in, script, shared, value};

#[test]
fn results_are_json() {
    let outcome = execute("return { sum: input.a + input.b };", json!({"a": 1, "b": 2}));
    assert_eq!(outcome.result.unwrap(), json!({"sum": 3}));
    assert_eq!(value("return null"), json!(null));
    assert_eq!(value("return 'text'"), json!("text"));
    assert_eq!(value("return [1, -0.5, 1e21, true]"), json!([1, -0.5, 1e21, true]));
}

#[test]
fn input_arrives_unchanged() {
    let mut deep = json!("bottom");
    for _ in 0..100 {
        deep = json!({ "in": [deep] });
    }
    let input = json!({"text": "ä \u{1F600} \u{2028}", "big": 9_007_199_254_740_991_i64, "none": null, "deep": deep});
    let outcome = execute("return input", input.clone());
    // A result can have at most 100 levels.
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::InvalidOutput);
    let outcome = execute("return [input.text, input.big, input.none]", input);
    assert_eq!(outcome.result.unwrap(), json!(["ä \u{1F600} \u{2028}", 9_007_199_254_740_991_i64, null]));
}

#[test]
fn values_that_json_converts_are_accepted() {
    assert_eq!(value("return new Date(0)"), json!("1970-01-01T00:00:00.000Z"));
    assert_eq!(value("class P { constructor() { this.x = 1 } }; return new P()"), json!({"x": 1}));
    assert_eq!(value("return { toJSON() { return { y: 2 } } }"), json!({"y": 2}));
    assert_eq!(value("return { a: 1, b: undefined }"), json!({"a": 1}));
    assert_eq!(value("return new URL('https://example.org/x')"), json!("https://example.org/x"));
    assert_eq!(value("const o = Object.create(null); o.z = 3; return o"), json!({"z": 3}));
    assert_eq!(value("const same = { n: 1 }; return { a: same, b: same }"), json!({"a": {"n": 1}, "b": {"n": 1}}));
}

#[test]
fn values_that_json_cannot_represent_are_refused_with_their_path() {
    let cases = [
        ("return undefined", "$"),
        ("", "$"),
        ("return () => 1", "$"),
        ("return Symbol('s')", "$"),
        ("return 10n", "$"),
        ("return NaN", "$"),
        ("return { a: { b: [1, Infinity] } }", "$.a.b[1]"),
        ("return { 'odd key': [undefined] }", "$[\"odd key\"][0]"),
        ("return { f() {} }", "$.f"),
        ("return { deep: [{ big: 1n }] }", "$.deep[0].big"),
        ("const o = { list: [] }; o.list.push(o); return o", "$.list[0]"),
        ("return new Map([[1, 2]])", "$"),
        ("return { s: new Set() }", "$.s"),
        ("return { p: Promise.resolve(1) }", "$.p"),
        ("return { bytes: new Uint8Array(2) }", "$.bytes"),
        ("return [new Error('x')]", "$[0]"),
        ("return { a: [{ ok: 1 }, { bad: /x/ }] }", "$.a[1].bad"),
        ("return { h: new Headers({ a: 'b' }) }", "$.h"),
        ("return [new Response('text')]", "$[0]"),
        ("return { f: new FormData() }", "$.f"),
        ("return { w: new WeakRef({}) }", "$.w"),
        ("return { at: [new Date(NaN)] }", "$.at[0]"),
        ("return { s: 'a\\ud800b' }", "$.s"),
        ("return ['ok', 'a\\u0000b']", "$[1]"),
        ("return { 'a\\u0000b': 1 }", "$[\"a\\u0000b\"]"),
    ];
    for (body, path) in cases {
        let failure = execute(body, Value::Null).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::InvalidOutput, "{body}: {failure}");
        assert_eq!(failure.details.unwrap()["path"], path, "{body}");
        assert!(path == "$" || failure.message.starts_with(path), "{body}: {}", failure.message);
    }
}

#[test]
fn deeply_nested_results_are_refused() {
    for depth in [101, 5_000] {
        let body = format!("let o = null; for (let i = 0; i < {depth}; i++) o = [o]; return o");
        let failure = execute(&body, Value::Null).result.unwrap_err();
        assert_eq!(failure.code, ErrorCode::InvalidOutput, "{depth}: {failure}");
        assert!(failure.message.contains("nested too deeply"), "{failure}");
    }
    assert!(value("let o = null; for (let i = 0; i < 100; i++) o = [o]; return o").is_array());
    assert_eq!(value("return [new Number(1), new String(''), new (class extends Array {})()]"), json!([1, "", []]));
}

#[test]
fn lone_surrogates_and_too_large_values_are_typed_errors() {
    let failure = execute("return '\\ud800'", Value::Null).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidOutput);
    let failure = execute("return 'x'.repeat(5_000_000)", Value::Null).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
    let failure = execute("return 1", json!("x".repeat(9_000_000))).result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
    assert_eq!(value("return 'x'.repeat(4_000_000).length"), json!(4_000_000));
}

#[test]
fn the_context_is_complete_and_frozen() {
    let mut call = invocation(
        &function(
            "'use strict'; const tries = [() => { context.x = 1 }, () => { context.secrets.KEY = 'z' },
               () => { context.request.id = 'z' }, () => { context.request.trigger_event.a.b = 1 },
               () => { context.api.getBreadcrumb = 1 }];
             const refused = tries.map((t) => { try { t(); return false } catch (e) { return e instanceof TypeError } });
             return { refused, keys: Object.keys(context), secret: context.secrets.KEY, request: context.request,
                      api: Object.keys(context.api) };",
        ),
        Value::Null,
    );
    call.secrets.insert("KEY".into(), "v".into());
    call.request.workspace = Some("workspace:w".into());
    call.request.agent_id = Some("agent".into());
    call.request.trigger_event = TriggerEvent::new(&json!({"a": {"b": 0}})).ok();
    let found = block_on(run_in(shared(), call)).result.unwrap();
    assert_eq!(found["refused"], json!([true, true, true, true, true]));
    assert_eq!(found["keys"], json!(["secrets", "api", "request", "progress", "utils"]));
    assert_eq!(found["secret"], "v");
    assert_eq!(
        found["request"],
        json!({"id": "r1", "workspace": "workspace:w", "agentId": "agent", "trigger_event": {"a": {"b": 0}}})
    );
    assert_eq!(
        found["api"],
        json!([
            "getBreadcrumb",
            "viewBreadcrumb",
            "createBreadcrumb",
            "updateBreadcrumb",
            "deleteBreadcrumb",
            "searchBreadcrumbs",
            "vectorSearch",
            "callTool",
            "getSecret",
            "decryptSecret"
        ])
    );
}

#[test]
fn console_lines_are_returned_with_their_levels() {
    let outcome = execute(
        "console.log('a', 1, {x: [1]}); console.info('b'); console.warn('c'); console.error('d'); console.debug('e');
         console.log('%s is %d', 'it', 5); return 1",
        Value::Null,
    );
    let lines: Vec<Value> = outcome.console.iter().map(|line| serde_json::to_value(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            json!({"level": "log", "message": "a 1 { x: [ 1 ] }"}),
            json!({"level": "info", "message": "b"}),
            json!({"level": "warn", "message": "c"}),
            json!({"level": "error", "message": "d"}),
            json!({"level": "debug", "message": "e"}),
            json!({"level": "log", "message": "it is 5"}),
        ]
    );
    assert!(!outcome.console_truncated);
}

#[test]
fn console_output_is_truncated() {
    let outcome = execute("for (let i = 0; i < 5000; i++) console.log('line', i); return 1", Value::Null);
    assert_eq!(outcome.result.unwrap(), json!(1));
    assert_eq!(outcome.console.len(), 1000);
    assert!(outcome.console_truncated);
    let outcome = execute("console.log('x'.repeat(100_000)); return 1", Value::Null);
    assert!(outcome.console.is_empty() && outcome.console_truncated);
}

#[test]
fn synchronous_and_reexported_functions_count_as_execute() {
    let run = |code: &str| block_on(run_in(shared(), invocation(code, json!(2)))).result;
    assert_eq!(run("export function execute(n) { return n + 1 }").unwrap(), json!(3));
    assert_eq!(run("const f = async (n) => n * 2; export { f as execute }").unwrap(), json!(4));
    assert_eq!(run("await Promise.resolve(); export const execute = (n) => n").unwrap(), json!(2));
    drop(script(""));
}

#[test]
fn setters_on_arrays_do_not_disable_the_checks() {
    let setters = "for (let i = 0; i < 120; i++) Object.defineProperty(Array.prototype, i, { configurable: true, set() {}, get: () => undefined });";
    for (result, expected) in [
        ("let o = 'bottom'; for (let i = 0; i < 3000; i++) o = { o }; return o", "nested too deeply"),
        ("const o = {}; o.o = { o }; return o", "cycle"),
        ("return { a: { b: new Map() } }", "a Map"),
    ] {
        let failure = execute(&format!("{setters} {result}"), Value::Null).result.expect_err(result);
        assert_eq!(failure.code, ErrorCode::InvalidOutput, "{result}: {failure}");
        assert!(failure.message.contains(expected), "{result}: {failure}");
    }
    let outcome = execute(&format!("{setters} console.log('a', 'b', {{ c: 1 }}); return 1"), Value::Null);
    assert!(outcome.console[0].message.starts_with("a b {"), "{:?}", outcome.console);
}

#[test]
fn thrown_proxies_are_ordinary_failures() {
    for body in [
        "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy",
        "const { proxy, revoke } = Proxy.revocable(function () {}, {}); revoke(); throw proxy",
        "const angry = new Proxy({}, { get() { return () => { throw angry } } }); throw new Proxy({}, angry)",
        "const angry = new Proxy({}, { get() { return () => { throw angry } } }); throw new Proxy(function () {}, angry)",
    ] {
        let failure = execute(body, Value::Null).result.expect_err(body);
        assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{body}: {failure}");
        assert!(
            !failure.message.contains("Uncaught") && !failure.message.contains("getPrototypeOf"),
            "{body}: {failure}"
        );
    }
}
