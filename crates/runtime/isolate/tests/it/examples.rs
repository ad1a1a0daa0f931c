//! Examples run as tests, each in its own world.

#![allow(clippy::needless_pass_by_value)]

use std::sync::{Arc, LazyLock};

use rcrt_breadcrumb::ToolDefinition;
use rcrt_egress::{Egress, EgressOptions};
use rcrt_examples::{ExampleReport, ExampleRunner, ExampleStatus, MissingField, has_failed};
use rcrt_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fixture::{block_on, start};

static RUNNER: LazyLock<ExampleRunner> = LazyLock::new(|| {
    let sandbox: Arc<Sandbox> = Arc::new(block_on(start(|_| {})));
    let egress = block_on(async { Arc::new(Egress::new(EgressOptions::default()).unwrap()) });
    ExampleRunner::new(sandbox, egress)
});

/// A tool whose `execute` has this body, with these examples and changes of its context.
fn tool(body: &str, examples: Value, changes: Value) -> Arc<ToolDefinition> {
    let mut context = json!({
        "name": "tried",
        "description": "d",
        "code": {"language": "typescript", "source": format!("export async function execute(input: any, context: any) {{ {body} }}")},
        "input_schema": {"type": "object"},
        "output_schema": {},
        "examples": examples,
    });
    context.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    Arc::new(ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None).unwrap())
}

fn run(tool: &Arc<ToolDefinition>) -> Vec<ExampleReport> {
    block_on(RUNNER.run(Uuid::from_u128(1), tool, &CancellationToken::new())).unwrap()
}

fn run_one(body: &str, example: Value, changes: Value) -> ExampleReport {
    run(&tool(body, json!([example]), changes)).remove(0)
}

#[test]
fn outputs_are_compared_exactly_or_by_matchers() {
    let body = "console.log('at work'); return {sum: input.a + input.b, at: '2026-01-01', list: [1, 2]};";
    let same = json!({"sum": 3, "at": "2026-01-01", "list": [1, 2]});
    let reports = run(&tool(
        body,
        json!([
            {"description": "exact", "input": {"a": 1, "b": 2}, "output": same},
            {"description": "matched", "input": {"a": 1, "b": 2}, "output": {"sum": {"$near": [3.01, 0.1]}, "at": {"$regex": "^\\d{4}-"}, "list": {"$type": "array"}}},
            {"description": "wrong", "input": {"a": 1, "b": 2}, "output": {"sum": 4, "at": "2026-01-01", "list": [1]}},
            {"description": "any output", "input": {"a": 1, "b": 2}},
        ]),
        json!({}),
    ));
    let statuses: Vec<ExampleStatus> = reports.iter().map(|report| report.status).collect();
    let (passed, failed) = (ExampleStatus::Passed, ExampleStatus::Failed);
    assert_eq!(statuses, [passed, passed, failed, passed]);
    let wrong = &reports[2];
    let places: Vec<&str> = wrong.differences.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(places, ["$.sum", "$.list[1]"]);
    assert_eq!(wrong.actual, Some(same));
    assert_eq!(wrong.console[0].message, "at work");
    assert!(has_failed(&reports) && !wrong.passed);
}

#[test]
fn an_output_must_fit_the_schema_even_if_none_is_stated() {
    let schema =
        json!({"output_schema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}});
    let report = run_one("return {n: 'one'};", json!({"input": {}}), schema);
    assert_eq!(report.status, ExampleStatus::Failed);
    assert!(report.reason.unwrap().contains("output.n: must be of type number"));
}

#[test]
fn stated_failures_are_compared() {
    let body = "if (input.n < 0) throw new Error('n is negative'); return input.n;";
    let failing = |error: Value| run_one(body, json!({"input": {"n": -1}, "error": error}), json!({}));
    assert!(failing(json!({"code": "ExecutionFailed"})).passed);
    assert!(failing(json!({"code": "ExecutionFailed", "message": {"$regex": "negative"}})).passed);
    assert!(!failing(json!({"code": "ExecutionFailed", "message": "something else"})).passed);
    assert!(!failing(json!({"code": "Timeout"})).passed);
    let unexpected = run_one(body, json!({"input": {"n": -1}, "output": 1}), json!({}));
    assert!(unexpected.reason.unwrap().contains("n is negative"));
    let none = run_one(body, json!({"input": {"n": 1}, "error": {"code": "ExecutionFailed"}}), json!({}));
    assert!(none.reason.unwrap().contains("returned an output"));
    let schema = json!({"input_schema": {"type": "object", "required": ["n"]}});
    let invalid = run_one(body, json!({"input": {}, "error": {"code": "InvalidArguments"}}), schema.clone());
    assert!(invalid.passed, "{invalid:?}");
    assert!(!run_one(body, json!({"input": {}, "output": 1}), schema).passed);
}

const FETCHES: &str =
    "const r = await fetch(input.url, input.init ?? undefined); return {status: r.status, data: await r.json()};";

fn fetching(example: Value) -> ExampleReport {
    run_one(FETCHES, example, json!({"permissions": {"net": ["api.example.com"]}}))
}

#[test]
fn the_network_is_what_the_example_states() {
    let url = "https://api.example.com/v1/things?q=1";
    let report = fetching(json!({
        "input": {"url": url},
        "http": [{"request": {"url": url}, "response": {"status": 201, "body": {"ok": true}}}],
        "output": {"status": 201, "data": {"ok": true}},
    }));
    assert!(report.passed, "{report:?}");
    let posted = fetching(json!({
        "input": {"url": url, "init": {"method": "POST", "body": "{\"n\":1}", "headers": {"X-Key": "k"}}},
        "http": [{
            "request": {"method": "POST", "url": url, "headers": {"x-key": "k"}, "body": {"n": {"$type": "number"}}},
            "response": {"body": "[1]"}
        }],
        "output": {"status": 200, "data": [1]},
    }));
    assert!(posted.passed, "{posted:?}");
}

#[test]
fn responses_are_used_in_order_and_the_last_one_again() {
    let url = "https://api.example.com/";
    let body =
        format!("const n = []; for (let i = 0; i < 3; i++) n.push(await (await fetch('{url}')).text()); return n;");
    let exchange = |body: &str| json!({"request": {"url": url}, "response": {"body": body}});
    let example = json!({"input": {}, "http": [exchange("a"), exchange("b")], "output": ["a", "b", "b"]});
    let report = run_one(&body, example, json!({"permissions": {"net": ["api.example.com"]}}));
    assert!(report.passed, "{report:?}");
}

#[test]
fn a_request_that_is_not_stated_fails_and_shows_the_nearest() {
    let report = fetching(json!({
        "input": {"url": "https://api.example.com/v1/thing"},
        "http": [
            {"request": {"method": "POST", "url": "https://api.example.com/v2"}},
            {"request": {"url": "https://api.example.com/v1/things"}},
        ],
    }));
    let reason = report.reason.unwrap();
    assert_eq!(report.status, ExampleStatus::Failed);
    assert!(reason.contains("the nearest is GET https://api.example.com/v1/things"), "{reason}");
}

#[test]
fn a_stated_request_that_is_not_made_fails() {
    let example = json!({"input": {}, "http": [{"request": {"url": "https://api.example.com/"}}], "output": 1});
    let report = run_one("return 1;", example, json!({"permissions": {"net": ["api.example.com"]}}));
    assert_eq!(report.status, ExampleStatus::Failed);
    assert!(report.reason.unwrap().contains("did not make the stated request GET https://api.example.com/"));
}

#[test]
fn the_tools_permissions_apply() {
    let report = fetching(json!({
        "input": {"url": "https://other.example.com/"},
        "http": [{"request": {"url": "https://other.example.com/"}, "response": {"body": "{}"}}],
    }));
    assert!(report.reason.unwrap().contains("PermissionDenied"));
}

/// Examples of the original RCRT have no `http`.
#[test]
fn an_example_without_its_network_is_not_run_and_not_passed() {
    let example = json!({"input": {"url": "https://api.example.com/"}, "output": {"status": 200, "data": 1}});
    let report = fetching(example);
    assert_eq!((report.status, report.passed), (ExampleStatus::NotRun, false));
    assert_eq!(report.missing, Some(MissingField::Http));
    assert!(report.reason.unwrap().contains("no `http`"));
    // Also if the tool does not report that its request failed.
    let caught = run_one(
        "try { await fetch('https://api.example.com/') } catch {} return 1;",
        json!({"input": {}, "output": 1}),
        json!({"permissions": {"net": true}}),
    );
    assert_eq!(caught.status, ExampleStatus::NotRun);
}

const CALLS: &str = "
    const results = [];
    for (const [tool, args] of input.calls) {
      results.push(await context.api.callTool(tool, args).catch((error: any) => [error.code ?? error.name, error.reason ?? error.message]));
    }
    return results;";

fn calling(example: Value) -> ExampleReport {
    run_one(CALLS, example, json!({"permissions": {"tools": ["add", "broken"]}}))
}

#[test]
fn other_tools_return_what_the_example_states() {
    let calls = json!([
        {"tool": "add", "input": {"a": 1, "b": {"$type": "integer"}}, "output": 3},
        {"tool": "add", "output": "any input"},
        {"tool": "broken", "error": {"code": "Timeout", "message": "too slow", "details": {"n": 1}}},
    ]);
    let input = json!({"calls": [["broken", {}], ["add", {"a": 1, "b": 2}], ["add", {"a": 5}], ["add", {"a": 6}]]});
    let output = json!([["Timeout", "too slow"], 3, "any input", "any input"]);
    let report = calling(json!({"input": input, "calls": calls, "output": output}));
    assert!(report.passed, "{report:?}");

    let unused = calling(json!({"input": {"calls": []}, "calls": calls, "output": []}));
    assert!(unused.reason.unwrap().contains("did not make the stated request callTool(\"add\"), callTool"));
    let other = json!({"input": {"calls": [["add", {"a": 2, "b": 2}]]}, "calls": [calls[2], calls[0]]});
    let output = calling(other).actual.unwrap().to_string();
    assert!(output.contains("the nearest is a call of \\\"add\\\", where the input at $.a"), "{output}");
    let denied = calling(json!({"input": {"calls": [["delete", {}]]}, "calls": []})).actual.unwrap().to_string();
    assert!(denied.contains("permissions.tools"), "{denied}");
    // Written before examples could state calls.
    let none = calling(json!({"input": {"calls": [["add", {}]]}, "output": [1]}));
    assert_eq!((none.status, none.missing), (ExampleStatus::NotRun, Some(MissingField::Calls)));
    assert!(none.reason.unwrap().contains("no `calls`"));
}

#[test]
fn records_are_found_and_writes_are_compared_and_discarded() {
    let body = "
        const found = await context.api.searchBreadcrumbs({schema_name: 'note.v1', tag: 'mine', include_context: true});
        const id = found[0].id;
        await context.api.updateBreadcrumb(id, found[0].version, {context: {text: 'new'}});
        const made = await context.api.createBreadcrumb({title: 'Made', schema_name: 'note.v1', context: {n: 1}});
        const read = await context.api.getBreadcrumb(made.id);
        await context.api.deleteBreadcrumb(id);
        return {old: found[0].context.text, made: made.id, title: read.title, count: found.length};";
    let first = "00000000-0000-4000-8000-000000000001";
    let example = json!({
        "input": {},
        "breadcrumbs": [
            {"title": "Mine", "schema_name": "note.v1", "tags": ["mine"], "context": {"text": "old"}, "version": 4},
            {"title": "Another", "schema_name": "note.v1", "tags": [], "context": {}},
        ],
        "output": {"old": "old", "made": "00000000-0000-4000-8000-000000000003", "title": "Made", "count": 1},
        "writes": [
            {"update": {"id": first, "version": 4, "changes": {"context": {"text": "new"}}}},
            {"create": {"title": "Made", "schema_name": "note.v1", "context": {"n": {"$type": "integer"}}}},
            {"delete": {"id": first}},
        ],
    });
    for _ in 0..2 {
        let report = run_one(body, example.clone(), json!({}));
        assert!(report.passed, "{report:?}");
    }
    let mut fewer = example;
    fewer["writes"].as_array_mut().unwrap().pop();
    let report = run_one(body, fewer, json!({}));
    assert_eq!(report.differences[0].path, "$writes[2]");
}

#[test]
fn a_search_by_meaning_ranks_by_shared_words() {
    let body = "return (await context.api.vectorSearch({q: input.q, nn: 1})).map((one: any) => one.title);";
    let record = |title: &str| json!({"title": title, "context": {}});
    let example = json!({"input": {"q": "red apples"}, "breadcrumbs": [record("Green apples"), record("Red apples")], "output": ["Red apples"]});
    assert!(run_one(body, example, json!({})).passed);
}

#[test]
fn the_clock_and_random_numbers_are_seeded() {
    let body = "
        const at = new Date();
        return {
            at: at.toISOString(), later: Date.now() - at.getTime(), is: new Date(0).toISOString(), date: at instanceof Date,
            made: new at.constructor(5).getTime(), random: Math.random(), uuid: crypto.randomUUID(),
            bytes: [...crypto.getRandomValues(new Uint8Array(4))], text: typeof Date(), spent: performance.now(),
        };";
    let actual = |seed: Value| {
        run_one(body, json!({"input": {}, "now": "2030-05-06T07:08:09Z", "seed": seed}), json!({})).actual.unwrap()
    };
    let once = actual(json!(7));
    assert_eq!(once["at"], "2030-05-06T07:08:09.000Z");
    assert_eq!((&once["later"], &once["is"]), (&json!(1), &json!("1970-01-01T00:00:00.000Z")));
    assert_eq!((&once["date"], &once["made"], &once["text"]), (&json!(true), &json!(5), &json!("string")));
    let uuid: Uuid = once["uuid"].as_str().unwrap().parse().unwrap();
    assert_eq!(uuid.get_version_num(), 4);
    assert_eq!(once, actual(json!(7)));
    let other = actual(json!(8));
    for field in ["random", "uuid", "bytes"] {
        assert_ne!(once[field], other[field], "{field}");
    }
    // A call outside of an example is not seeded.
    let now = crate::fixture::value("return Date.now()").as_i64().unwrap();
    assert!(now > 1_767_225_600_000, "{now}");
}

#[test]
fn code_outside_of_execute_is_seeded_too() {
    let context = json!({
        "name": "tried", "description": "d", "input_schema": {"type": "object"}, "output_schema": {},
        "code": {"language": "javascript", "source": "const made = [Date.now(), Math.random()]; export async function execute() { return made; }"},
        "examples": [{"input": {}}],
    });
    let tool = Arc::new(ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None).unwrap());
    let once = run(&tool).remove(0).actual.unwrap();
    assert_eq!(once[0], json!(1_767_225_600_000_i64));
    assert_eq!(once, run(&tool).remove(0).actual.unwrap());
}

#[test]
fn a_loop_that_waits_for_a_time_ends() {
    let report = run_one(
        "const end = Date.now() + 50; while (Date.now() < end); return 1;",
        json!({"input": {}, "output": 1}),
        json!({}),
    );
    assert!(report.passed, "{report:?}");
}

#[test]
fn secrets_are_the_examples() {
    let body = "return [context.secrets.KEY, String(await context.api.getSecret('OTHER', 'why'))];";
    let changes = json!({"required_secrets": ["KEY", "OTHER"]});
    let example = json!({"input": {}, "secrets": {"KEY": "k-1"}, "output": ["k-1", "example-OTHER"]});
    assert!(run_one(body, example, changes).passed);
    let denied = run_one("return await context.api.getSecret('KEY');", json!({"input": {}}), json!({}));
    assert!(denied.reason.unwrap().contains("not among the tool's required_secrets"));
}

#[test]
fn the_tools_limits_apply() {
    let endless = run_one("while (true) {}", json!({"input": {}}), json!({"limits": {"timeout_ms": 300}}));
    assert!(endless.reason.unwrap().contains("Timeout"));
    let greedy = "const all = []; while (true) all.push(new Array(100000).fill(1.5));";
    let full = run_one(greedy, json!({"input": {}}), json!({"limits": {"memory_mb": 32}}));
    assert!(full.reason.unwrap().contains("ResourceExhausted"));
}

#[test]
fn examples_share_nothing() {
    let examples = json!([{"input": {}, "output": 1}, {"input": {}, "output": 1}]);
    let body = "globalThis.n = (globalThis.n ?? 0) + 1; return globalThis.n;";
    for isolation in ["call", "process", "tool"] {
        let reports = run(&tool(body, examples.clone(), json!({"isolation": isolation})));
        assert!(!has_failed(&reports), "{isolation}: {reports:?}");
    }
}

#[test]
fn code_that_cannot_be_compiled_is_reported_with_its_line() {
    let tool = tool("return 1 +;", json!([{"input": {}}]), json!({}));
    let failure = block_on(RUNNER.run(Uuid::from_u128(1), &tool, &CancellationToken::new())).unwrap_err();
    assert_eq!(failure.details.unwrap()["errors"][0]["line"], 1);
}
