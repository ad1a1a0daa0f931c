//! fetch, with a host whose response depends on the URL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError, Redirect};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fixture::{block_on, function, invocation, shared};

#[derive(Default)]
struct Net {
    dropped: Arc<Notify>,
    pulled: Arc<AtomicUsize>,
}

/// Notifies when a stream or a request is dropped.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn response(status: u16, body: BodyStream) -> FetchResponse {
    FetchResponse {
        status,
        status_text: "As sent".into(),
        headers: vec![("content-type".into(), "text/plain".into()), ("x-latin".into(), "é".into())],
        url: "https://final.example/".into(),
        redirected: false,
        body,
    }
}

fn text(body: impl Into<Bytes>) -> BodyStream {
    let body = body.into();
    futures::stream::once(async move { Ok(body) }).boxed()
}

#[async_trait]
impl HostOps for Net {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        let path = request.url.split("://h").nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/echo" => {
                let mut size = 0;
                let mut pieces = 0;
                let mut body = body;
                while let Some(piece) = match body.as_mut() {
                    Some(body) => body.next().await,
                    None => None,
                } {
                    size += piece?.len();
                    pieces += 1;
                }
                let seen = json!({"request": request, "size": size, "many": pieces > 1, "body": body.is_some()});
                Ok(response(200, text(seen.to_string())))
            }
            "/upper" => {
                let body = body.unwrap().map(|piece| piece.map(|piece| piece.to_ascii_uppercase().into()));
                Ok(response(200, body.boxed()))
            }
            "/big" => {
                let pulled = self.pulled.clone();
                let guard = NotifyOnDrop(self.dropped.clone());
                let body = futures::stream::iter(0..1000).map(move |_| {
                    let _ = &guard;
                    pulled.fetch_add(1, Ordering::SeqCst);
                    Ok(Bytes::from(vec![b'x'; 16 * 1024]))
                });
                Ok(response(200, body.boxed()))
            }
            "/broken" => {
                let pieces = [Ok(Bytes::from("part")), Err(OpError::new("TypeError", "the connection was closed"))];
                Ok(response(200, futures::stream::iter(pieces).boxed()))
            }
            "/endless" => {
                let pieces = [Ok(Bytes::from("part")), Err(OpError::new("ResourceExhausted", "more than 10 bytes"))];
                Ok(response(200, futures::stream::iter(pieces).boxed()))
            }
            "/hang" => {
                let _guard = NotifyOnDrop(self.dropped.clone());
                std::future::pending().await
            }
            "/trickle" => {
                let guard = NotifyOnDrop(self.dropped.clone());
                let first = text("first");
                let rest = futures::stream::once(async move {
                    let _guard = guard;
                    std::future::pending().await
                });
                Ok(response(200, first.chain(rest).boxed()))
            }
            "/moved" => Ok(FetchResponse { redirected: true, ..response(200, text("there")) }),
            "/none" => Ok(response(204, futures::stream::empty().boxed())),
            "/denied" => Err(OpError::new("PermissionDenied", "h is not in permissions.net")),
            _ => Err(OpError::new("TypeError", "no such host")),
        }
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        Err(OpError::new("Unavailable", "no store"))
    }
}

fn run_with(net: Arc<Net>, body: &str) -> Result<Value, rcrt_breadcrumb::ToolFailure> {
    let call = invocation(&function(body), Value::Null);
    block_on(shared().run(call, net, CancellationToken::new())).result
}

fn run(body: &str) -> Result<Value, rcrt_breadcrumb::ToolFailure> {
    run_with(Arc::default(), body)
}

#[test]
fn a_body_above_its_limit_is_resource_exhausted() {
    for body in [
        "return await (await fetch('https://h/endless')).text()",
        "const all = []; for await (const piece of (await fetch('https://h/endless')).body) all.push(piece.length)",
    ] {
        let failure = run(body).unwrap_err();
        assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{body}: {failure}");
        assert!(failure.message.contains("more than 10 bytes"), "{failure}");
    }
}

#[test]
fn requests_and_responses_are_transferred_completely() {
    let found = run("const r = await fetch('https://h/echo#part', { headers: { 'X-A': 'é' }, redirect: 'manual' });
         return { r: [r.status, r.statusText, r.ok, r.url, r.redirected, r.headers.get('x-latin')], seen: await r.json() }")
    .unwrap();
    assert_eq!(found["r"], json!([200, "As sent", true, "https://final.example/", false, "é"]));
    let request: FetchRequest = serde_json::from_value(found["seen"]["request"].clone()).unwrap();
    assert_eq!((request.method.as_str(), request.url.as_str()), ("GET", "https://h/echo"));
    assert_eq!(request.redirect, Redirect::Manual);
    assert!(
        request.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("x-a") && value == "é"),
        "{request:?}"
    );
    assert_eq!(found["seen"]["body"], false);
    assert_eq!(
        run("const r = await fetch('https://h/moved'); return [r.redirected, await r.text()]").unwrap(),
        json!([true, "there"])
    );
    assert_eq!(run("const r = await fetch('https://h/none'); return [r.status, r.body]").unwrap(), json!([204, null]));
    assert_eq!(
        run("return (await fetch(new Request('https://h/echo', { method: 'HEAD' }))).body").unwrap(),
        json!(null)
    );
}

#[test]
fn request_bodies_of_all_kinds_are_sent() {
    let seen = |init: &str| {
        run(&format!("const r = await fetch('https://h/echo', {{ method: 'POST', ...{init} }}); return await r.json()"))
            .unwrap()
    };
    let sent = seen("{ body: 'text' }");
    assert_eq!(sent["size"], 4);
    assert!(sent["request"]["headers"].to_string().contains("text/plain;charset=UTF-8"), "{sent}");
    assert_eq!(seen("{ body: new Uint8Array(3_000_000) }")["size"], 3_000_000);
    assert_eq!(seen("{ body: new URLSearchParams({ a: 'b' }) }")["size"], 3);
    assert_eq!(seen("{ body: new Blob(['abc']) }")["size"], 3);
    let form = seen("(() => { const f = new FormData(); f.set('k', new File(['12345'], 'n')); return { body: f } })()");
    assert!(form["request"]["headers"].to_string().contains("multipart/form-data"), "{form}");
    let streamed = seen(
        "{ body: new ReadableStream({ n: 0, pull(c) { if (this.n++ === 100) c.close(); else c.enqueue(new Uint8Array(10_000)) } }) }",
    );
    assert_eq!((&streamed["size"], &streamed["many"]), (&json!(1_000_000), &json!(true)));
    assert_eq!(seen("{ body: '' }")["size"], 0);
}

#[test]
fn both_bodies_stream_at_the_same_time() {
    let found = run("const { readable, writable } = new TransformStream(); const out = writable.getWriter();
         const asked = fetch('https://h/upper', { method: 'POST', body: readable, duplex: 'half' });
         out.write(new TextEncoder().encode('one'));
         const reader = (await asked).body.getReader(); const text = new TextDecoder();
         const first = text.decode((await reader.read()).value);
         out.write(new TextEncoder().encode('two')); out.close();
         const second = text.decode((await reader.read()).value);
         return [first, second, (await reader.read()).done]")
    .unwrap();
    assert_eq!(found, json!(["ONE", "TWO", true]));
}

#[test]
fn a_large_response_is_complete_and_read_with_backpressure() {
    let size = run("return (await (await fetch('https://h/big')).arrayBuffer()).byteLength").unwrap();
    assert_eq!(size, json!(1000 * 16 * 1024));
    let net = Arc::new(Net::default());
    let first = run_with(
        net.clone(),
        "const reader = (await fetch('https://h/big')).body.getReader(); await reader.read();
         await new Promise((r) => setTimeout(r, 100)); reader.cancel(); return 'enough'",
    );
    assert_eq!(first.unwrap(), "enough");
    let pulled = net.pulled.load(Ordering::SeqCst);
    assert!(pulled < 40, "{pulled} pieces of 16 KiB were pulled for one that was read");
    block_on(net.dropped.notified());
}

#[test]
fn failures_follow_the_standard() {
    let failed = |body: &str| {
        run(&format!("try {{ {body} }} catch (e) {{ return [e.name, e.message, e instanceof TypeError] }}")).unwrap()
    };
    assert_eq!(failed("await fetch('https://h/nowhere')"), json!(["TypeError", "no such host", true]));
    assert_eq!(
        failed("await fetch('https://h/denied')"),
        json!(["PermissionDenied", "h is not in permissions.net", false])
    );
    assert_eq!(
        failed("await (await fetch('https://h/broken')).text()"),
        json!(["TypeError", "the connection was closed", true])
    );
    for scheme in ["file:///etc/passwd", "ftp://h/", "data:text/plain,x", "about:blank"] {
        assert_eq!(failed(&format!("await fetch('{scheme}')"))[0], "TypeError", "{scheme}");
    }
    assert_eq!(failed("await fetch('/relative')")[0], "TypeError");
    let denied = run("await fetch('https://h/denied')").unwrap_err();
    assert_eq!((denied.code, denied.message.as_str()), (ErrorCode::PermissionDenied, "h is not in permissions.net"));
    let failing_upload = failed(
        "await fetch('https://h/echo', { method: 'POST', body: new ReadableStream({ pull() { throw new Error('source') } }) })",
    );
    assert_eq!(failing_upload[0], "TypeError");
}

#[test]
fn an_abort_reaches_the_host() {
    let net = Arc::new(Net::default());
    let found = run_with(
        net.clone(),
        "const c = new AbortController(); setTimeout(() => context.api.getBreadcrumb('x').catch(() => c.abort()), 1);
         try { await fetch('https://h/hang', { signal: c.signal }) } catch (e) { return e.name }",
    );
    assert_eq!(found.unwrap(), "AbortError");
    block_on(net.dropped.notified());

    let net = Arc::new(Net::default());
    let found = run_with(
        net.clone(),
        "const c = new AbortController(); const r = await fetch('https://h/trickle', { signal: c.signal });
         const reader = r.body.getReader(); const first = new TextDecoder().decode((await reader.read()).value);
         setTimeout(() => c.abort(new Error('mine')), 5);
         try { await reader.read() } catch (e) { return [first, e.message] }",
    );
    assert_eq!(found.unwrap(), json!(["first", "mine"]));
    block_on(net.dropped.notified());

    let found =
        run("try { await fetch('https://h/hang', { signal: AbortSignal.timeout(5) }) } catch (e) { return e.name }");
    assert_eq!(found.unwrap(), "TimeoutError");
    let found =
        run("try { await fetch('https://h/hang', { signal: AbortSignal.abort() }) } catch (e) { return e.name }");
    assert_eq!(found.unwrap(), "AbortError");
}

#[test]
fn pending_requests_are_dropped_when_the_call_ends() {
    let net = Arc::new(Net::default());
    assert_eq!(
        run_with(
            net.clone(),
            "fetch('https://h/hang').catch(() => {}); await context.api.getBreadcrumb('x').catch(() => {}); return 1"
        )
        .unwrap(),
        1
    );
    block_on(net.dropped.notified());
}
