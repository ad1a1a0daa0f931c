//! `context.api`, on the tool's side and on the host's.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{block_on, function, invocation, shared};

#[derive(Default)]
struct Records {
    seen: Mutex<Vec<ApiCall>>,
    /// Cancelled when the host's fetch is dropped; until then calls for `later` wait.
    later: CancellationToken,
}

#[async_trait]
impl HostOps for Records {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        let _opens = self.later.clone().drop_guard();
        std::future::pending().await
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        self.seen.lock().unwrap().push(call.clone());
        match call {
            ApiCall::GetBreadcrumb { id } if id == "missing" => Err(OpError::new("NotFound", "no such breadcrumb")),
            ApiCall::GetBreadcrumb { id } if id == "away" => {
                Err(OpError::new("Unavailable", "the store is not available"))
            }
            ApiCall::GetBreadcrumb { id } if id == "later" => {
                self.later.cancelled().await;
                Ok(json!(1))
            }
            ApiCall::GetSecret { id, .. } if id == "KEY" => Ok(json!("a handle")),
            ApiCall::GetSecret { .. } => Err(OpError::new("PermissionDenied", "not among required_secrets")),
            ApiCall::CallTool { tool, .. } if tool == "failing" => Ok(json!({"failure": {
                "code": "Timeout", "message": "too slow", "tool": tool, "requestId": "r2", "details": {"limit": "timeout_ms"},
                "is_retryable": true,
            }})),
            ApiCall::CallTool { tool, .. } if tool == "denied" => Err(OpError::new("PermissionDenied", "not allowed")),
            ApiCall::CallTool { input, options, .. } => Ok(json!({"output": [input, options]})),
            other => Ok(json!({ "got": other })),
        }
    }
}

fn run(body: &str) -> (Result<Value, rcrt_breadcrumb::ToolFailure>, Vec<ApiCall>) {
    let host = Arc::new(Records::default());
    let call = invocation(&function(body), Value::Null);
    let outcome = block_on(shared().run(call, host.clone(), CancellationToken::new()));
    let calls = host.seen.lock().unwrap().clone();
    (outcome.result, calls)
}

#[test]
fn every_method_reaches_the_host() {
    let (result, calls) = run("const { api } = context; await api.getBreadcrumb('a'); await api.viewBreadcrumb('a');
         await api.createBreadcrumb({ title: 't' });
         await api.updateBreadcrumb('a', 3, { title: 'u' }); await api.deleteBreadcrumb('a');
         await api.searchBreadcrumbs({ tag: 'x' }); await api.searchBreadcrumbs();
         return await api.vectorSearch({ q: 'words' })");
    assert_eq!(result.unwrap()["got"]["query"], json!({"q": "words"}));
    assert_eq!(
        calls,
        [
            ApiCall::GetBreadcrumb { id: "a".into() },
            ApiCall::ViewBreadcrumb { id: "a".into() },
            ApiCall::CreateBreadcrumb { record: json!({"title": "t"}) },
            ApiCall::UpdateBreadcrumb { id: "a".into(), version: 3, changes: json!({"title": "u"}) },
            ApiCall::DeleteBreadcrumb { id: "a".into() },
            ApiCall::SearchBreadcrumbs { query: json!({"tag": "x"}) },
            ApiCall::SearchBreadcrumbs { query: json!({}) },
            ApiCall::VectorSearch { query: json!({"q": "words"}) },
        ]
    );
}

#[test]
fn a_tool_gets_the_output_of_another_or_an_error_that_names_it() {
    let (result, _) = run("const { callTool } = context.api;
         const caught = async (name) => { try { await callTool(name); } catch (e) { return [e instanceof Error, { ...e }, e.name, e.message]; } };
         return [await callTool('fine', [1], { timeout_ms: 5 }), await callTool('fine'), await caught('failing'), await caught('denied')]");
    let failed = json!({"code": "Timeout", "reason": "too slow", "tool": "failing", "requestId": "r2", "details": {"limit": "timeout_ms"}, "retryable": true});
    assert_eq!(
        result.unwrap(),
        json!([
            [[1], {"timeout_ms": 5}],
            [{}, {}],
            [true, failed, "Error", "the tool failing failed with Timeout: too slow"],
            [true, {}, "PermissionDenied", "not allowed"],
        ])
    );
    let (result, _) = run("await context.api.callTool('failing')");
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ErrorCode::ExecutionFailed, "the tool failing failed with Timeout: too slow")
    );
    for (call, expected) in [
        ("callTool(1)", "callTool: tool must be a string"),
        ("callTool('a', () => 1)", "callTool: input is not valid JSON"),
        ("callTool('a', {}, 'soon')", "callTool: options must be an object"),
    ] {
        let (result, calls) = run(&format!("await context.api.{call}"));
        assert!(result.unwrap_err().message.contains(expected), "{call}");
        assert!(calls.is_empty(), "{call}");
    }
}

/// For our tools and for RCRT's.
#[test]
fn a_secret_is_a_string_with_a_value_property() {
    let (result, calls) = run(
        "const found = [];
         for (const method of ['getSecret', 'decryptSecret']) {
           const key = await context.api[method]('KEY', 'because');
           const headers = new Headers({ authorization: key, other: `Bearer ${key}` });
           found.push([key.value, `${key}`, key + '!', key.length, JSON.stringify({ key }), headers.get('authorization'),
             headers.get('other'), new TextEncoder().encode(key).length, new URLSearchParams({ key }).toString(), key]);
           try { 'use strict'; key.value = 'another'; } catch { /* as it should */ }
           found.push(key.value);
         }
         return [...found, context.utils];",
    );
    let one = json!([
        "a handle",
        "a handle",
        "a handle!",
        8,
        "{\"key\":\"a handle\"}",
        "a handle",
        "Bearer a handle",
        8,
        "key=a+handle",
        "a handle"
    ]);
    assert_eq!(result.unwrap(), json!([one, "a handle", one, "a handle", {"waitForEventSupported": false}]));
    let asked = || ApiCall::GetSecret { id: "KEY".into(), reason: "because".into() };
    assert_eq!(calls, [asked(), asked()]);
}

/// Even if a tool changes the prototype of strings.
#[test]
fn a_changed_prototype_does_not_hide_a_secrets_value() {
    let (result, _) =
        run("Object.defineProperty(String.prototype, 'value', { set() {}, get: () => 'hidden', configurable: true });
         globalThis.String = function () { return {} };
         const key = await context.api.getSecret('KEY');
         return [key.value, key.valueOf()];");
    assert_eq!(result.unwrap(), json!(["a handle", "a handle"]));
}

#[test]
fn refused_ops_are_errors_that_a_tool_can_catch() {
    let (result, _) = run(
        "try { await context.api.getBreadcrumb('missing') } catch (e) { return [e.name, e.message, e instanceof Error] }",
    );
    assert_eq!(result.unwrap(), json!(["NotFound", "no such breadcrumb", true]));
    let (result, _) = run("await context.api.getSecret('s', 'because')");
    let failure = result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    assert!(failure.message.contains("required_secrets"), "{failure}");
    let (result, _) = run("await context.api.getBreadcrumb('missing')");
    let failure = result.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, false));
}

#[test]
fn an_unavailable_store_is_a_retryable_failure() {
    let (result, _) = run("await context.api.getBreadcrumb('away')");
    let failure = result.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true));
    let (result, _) = run("throw Object.assign(new Error('the store is not available'), { name: 'Unavailable' })");
    assert!(!result.unwrap_err().is_retryable, "a tool cannot make its own error retryable");
}

#[test]
fn invalid_arguments_are_not_sent_to_the_host() {
    for body in [
        "await context.api.getBreadcrumb(5)",
        "await context.api.updateBreadcrumb('a', '1', {})",
        "await context.api.updateBreadcrumb('a', 1)",
        "await context.api.createBreadcrumb('text')",
        "await context.api.vectorSearch()",
    ] {
        let (result, calls) = run(body);
        assert!(result.unwrap_err().message.starts_with("TypeError:"), "{body}");
        assert!(calls.is_empty(), "{body}");
    }
}

#[test]
fn ops_in_flight_are_bounded() {
    let (result, calls) =
        run("const c = new AbortController(); fetch('https://h/', { signal: c.signal }).catch(() => {});
         const first = context.api.getBreadcrumb('first');
         const all = Array.from({ length: 200 }, () => context.api.getBreadcrumb('later'));
         await first; c.abort();
         const bad = (await Promise.allSettled(all)).filter((r) => r.status === 'rejected');
         return [bad.length, bad[0].reason.name]");
    // 64 at a time, including the fetch. The first call frees its slot only after the others were
    // refused.
    let found = result.unwrap();
    assert_eq!(found[1], "ResourceExhausted");
    let later = calls.iter().filter(|call| **call == ApiCall::GetBreadcrumb { id: "later".into() }).count();
    assert_eq!(found[0], json!(200 - later));
    assert!((62..=63).contains(&later), "{later}");

    let (result, calls) = run("for (let i = 0; i < 200; i++) await context.api.getBreadcrumb('a'); return 1");
    assert_eq!((result.unwrap(), calls.len()), (json!(1), 200));
}
