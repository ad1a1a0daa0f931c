//! Calls in one round trip.

use std::{sync::Arc, time::Duration};

use chrono::Utc;
use futures::{StreamExt, future::join_all};
use rcrt_breadcrumb::{
    Breadcrumbs, Claim, ClaimRequest, ErrorCode, EventStream, LeaseStatus, Role, ToolFailure, ToolFormat, ToolRequest,
    ToolResponse,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::harness::{Answer, World, answer};

/// A runner that a test controls step by step.
pub struct Hand {
    store: Arc<dyn Breadcrumbs>,
    events: EventStream,
}

impl Hand {
    pub async fn of(world: &World, tenant: Uuid) -> Self {
        let store = world.runner(tenant);
        let events = store.events(None).await.unwrap();
        Self { store, events }
    }

    /// The next call, as soon as one is queued.
    pub async fn claim(&mut self) -> Claim {
        let one = ClaimRequest::new(Uuid::new_v4(), 1, 60_000);
        loop {
            if let Some(claim) = self.store.claim(&one).await.unwrap().pop() {
                self.store.start(claim.lease, 1).await.unwrap();
                return claim;
            }
            self.events.next().await.unwrap().unwrap();
        }
    }

    pub async fn answer(&self, claim: &Claim, result: Result<Value, ToolFailure>) -> Value {
        self.answer_with(claim, result, Map::new()).await
    }

    /// Like a runner: the response names its request.
    async fn answer_by_name(&self, claim: &Claim, result: Result<Value, ToolFailure>) -> Value {
        let named = Map::from_iter([("request".to_owned(), json!(claim.request.id))]);
        self.answer_with(claim, result, named).await
    }

    async fn answer_with(
        &self,
        claim: &Claim,
        result: Result<Value, ToolFailure>,
        metadata: Map<String, Value>,
    ) -> Value {
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap();
        let response = ToolResponse::new(&request, result, 3, metadata, Utc::now()).record(&request);
        let context = Value::Object(response.context.clone());
        self.store.complete(claim.lease, response).await.unwrap();
        context
    }
}

pub struct Scene {
    pub world: World,
    pub tenant: Uuid,
    pub token: String,
    pub hand: Hand,
}

impl Scene {
    pub async fn start() -> Self {
        Self::of(Box::pin(World::start()).await).await
    }

    async fn of(world: World) -> Self {
        let tenant = world.tenant().await;
        let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
        let hand = Hand::of(&world, tenant).await;
        Self { world, tenant, token, hand }
    }

    /// `path` follows `/tools/`.
    pub fn invoke_at(&self, path: &str, body: &Value) -> impl Future<Output = Answer> + 'static {
        answer(self.world.request("POST", &format!("/tools/{path}"), &self.token).json(body))
    }

    pub fn invoke(
        &self,
        tool: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Value>,
    ) -> impl Future<Output = Answer> + 'static {
        let mut request = self.world.request("POST", &format!("/tools/{tool}/invoke"), &self.token).json(&body.into());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request)
    }
}

#[tokio::test]
async fn a_call_gets_its_response_in_one_round_trip() {
    let mut scene = Scene::start().await;
    let asking = tokio::spawn(scene.invoke("echo", &[], json!({"input": {"say": "hi"}})));
    let claim = scene.hand.claim().await;
    assert_eq!(
        (&claim.request.context["tool"], &claim.request.context["input"]),
        (&json!("echo"), &json!({"say": "hi"}))
    );
    let given = scene.hand.answer(&claim, Ok(json!({"said": "hi"}))).await;
    let answer = asking.await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.json()), (200, given));
    assert_eq!(answer.header("preference-applied"), "", "no preference was sent");

    // A failure of a tool is a response with status 200; its `status` field says so.
    let asking = tokio::spawn(scene.invoke("echo", &[("Prefer", "wait=60")], json!({})));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({}));
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, "no luck");
    let given = scene.hand.answer(&claim, Err(failure)).await;
    let answer = asking.await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.json()), (200, given));
    assert_eq!((&answer.json()["status"], answer.header("preference-applied")), (&json!("error"), "wait=60"));
    scene.world.close().await;
}

#[tokio::test]
async fn the_request_has_the_fields_of_the_invocation() {
    let mut scene = Scene::start().await;
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers = [("Prefer", "respond-async"), ("traceparent", traceparent)];
    let body = json!({"input": [1], "workspace": "one", "session": "s1", "model": "small", "max_result_chars": 5000,
        "deadline_ms": 600_000, "requestId": "mine", "debug": true});
    let accepted = scene.invoke("echo", &headers, body).await;
    assert_eq!((accepted.status.as_u16(), &accepted.json()["request_id"]), (202, &json!("mine")));
    let claim = scene.hand.claim().await;
    assert_eq!(
        Value::Object(claim.request.context.clone()),
        json!({"tool": "echo", "input": [1], "requestId": "mine", "session": "s1", "model": "small",
            "max_result_chars": 5000, "deadline_ms": 600_000, "debug": true, "traceparent": traceparent})
    );
    assert_eq!(claim.request.tags, ["tool:request", "workspace:one"]);
    assert!(claim.time_left_ms.is_some());
    let tagged = scene.invoke("echo", &headers[..1], json!({"workspace": "workspace:two", "input": null})).await;
    assert_eq!(tagged.status, 202);
    let claim = scene.hand.claim().await;
    assert_eq!((claim.request.workspace(), &claim.request.context["input"]), (Some("workspace:two"), &Value::Null));

    for (wrong, field) in [
        (json!({"session": ""}), "session"),
        (json!({"model": "m".repeat(201)}), "model"),
        (json!({"max_result_chars": 999}), "max_result_chars"),
        (json!({"deadline_ms": 0}), "deadline_ms"),
        (json!({"deadline_ms": "soon"}), "deadline_ms"),
        (json!({"debug": "yes"}), "debug"),
        (json!({"requestId": "r".repeat(181)}), "requestId"),
        (json!({"workspace": "w".repeat(200)}), "workspace"),
        (json!({"inputs": {}}), "inputs"),
    ] {
        let message = scene.invoke("echo", &[], wrong.clone()).await.violation(field);
        assert!(!message.is_empty(), "{wrong}");
    }
    scene.invoke("%20", &[], json!({})).await.violation("name");
    scene.invoke("echo", &[("Idempotency-Key", "")], json!({})).await.violation("Idempotency-Key");
    scene.world.close().await;
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_the_location_of_the_request() {
    let mut scene = Scene::start().await;
    for (prefer, applied) in [
        ("respond-async", "respond-async"),
        ("wait=0", "wait=0"),
        ("Wait=\"1\", respond-async", "respond-async, wait=1"),
    ] {
        let answer = scene.invoke("echo", &[("Prefer", prefer)], json!({})).await;
        assert_eq!((answer.status.as_u16(), answer.header("preference-applied")), (202, applied));
        let body = answer.json();
        assert_eq!(body["request"], body["request_id"]);
        let location = answer.header("location").to_owned();
        assert_eq!(location, format!("/calls/{}", body["request"].as_str().unwrap()));
        assert_eq!(scene.world.get(&location, &scene.token).await.ok().json()["state"], "queued");
        scene.hand.claim().await;
    }
    scene.world.close().await;
}

#[tokio::test]
async fn a_repeated_call_waits_for_the_first_response() {
    let mut scene = Scene::start().await;
    let key = ("Idempotency-Key", "once");
    let body = json!({"input": {"n": 1}});
    let first = scene.invoke("echo", &[key, ("Prefer", "respond-async")], body.clone()).await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (202, ""));
    // While it runs, and with another span of the caller's trace.
    let step = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01");
    let second = tokio::spawn(scene.invoke("echo", &[key, step], body.clone()));
    let claim = scene.hand.claim().await;
    let given = scene.hand.answer(&claim, Ok(json!(1))).await;
    // After the response was written.
    for answer in [second.await.unwrap(), scene.invoke("echo", &[key], body).await] {
        assert_eq!((answer.status.as_u16(), answer.json()), (200, given.clone()));
        assert_eq!(answer.header("idempotency-replayed"), "true");
    }
    scene.invoke("echo", &[key], json!({"input": {"n": 2}})).await.problem(422, "idempotency_mismatch");
    scene.world.close().await;
}

/// More callers than the store has connections, answered in another order, some with the same own
/// id.
#[tokio::test]
async fn each_of_many_callers_gets_its_own_response() {
    let mut scene = Scene::start().await;
    let asking: Vec<_> = (0..40)
        .map(|n| {
            let own = (n % 4 == 0).then(|| format!("shared {}", n % 8));
            let mut body = json!({"input": {"n": n}});
            if let Some(own) = own {
                body["requestId"] = json!(own);
            }
            tokio::spawn(scene.invoke("echo", &[("Prefer", "wait=60")], body))
        })
        .collect();
    let mut claims = Vec::new();
    for _ in 0..asking.len() {
        claims.push(scene.hand.claim().await);
    }
    for (n, claim) in claims.iter().rev().enumerate() {
        let output = Ok(claim.request.context["input"].clone());
        // Responses that name their request, and responses that make their callers query the store.
        if n % 3 == 0 {
            scene.hand.answer(claim, output).await;
        } else {
            scene.hand.answer_by_name(claim, output).await;
        }
    }
    for (n, answer) in join_all(asking).await.into_iter().enumerate() {
        let answer = answer.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.json()["output"]), (200, &json!({"n": n})), "{}", answer.text);
    }
    scene.world.close().await;
}

#[tokio::test]
async fn a_response_that_names_its_request_is_returned_unchanged() {
    let mut scene = Scene::start().await;
    let key = ("Idempotency-Key", "named");
    let asking = tokio::spawn(scene.invoke("echo", &[key], json!({"requestId": "mine"})));
    let claim = scene.hand.claim().await;
    let given = scene.hand.answer_by_name(&claim, Ok(json!({"large": "x".repeat(100_000)}))).await;
    assert_eq!(given["metadata"]["request"], json!(claim.request.id));
    assert_eq!(asking.await.unwrap().ok().json(), given);
    // A repeated call after the event queries the store.
    assert_eq!(scene.invoke("echo", &[key], json!({"requestId": "mine"})).await.ok().json(), given);
    scene.world.close().await;
}

#[tokio::test]
async fn deleting_the_request_cancels_it_and_its_waiting_caller_gets_the_response() {
    let mut scene = Scene::start().await;
    let delete = async |id: Uuid| {
        answer(scene.world.request("DELETE", &format!("/breadcrumbs/{id}"), &scene.token)).await.ok();
    };
    // While it is queued: the store writes the response.
    let mut events = scene.hand.store.events(None).await.unwrap();
    let asking = tokio::spawn(scene.invoke("echo", &[], json!({})));
    let request = events.next().await.unwrap().unwrap().breadcrumb_id;
    delete(request).await;
    let answer = asking.await.unwrap().ok().json();
    assert_eq!((&answer["status"], &answer["error_code"]), (&json!("error"), &json!("Cancelled")));

    // While it runs: the runner learns of it by an event and by its heartbeat, and writes the
    // response.
    let asking = tokio::spawn(scene.invoke("echo", &[], json!({})));
    let claim = scene.hand.claim().await;
    delete(claim.request.id).await;
    while events.next().await.unwrap().unwrap().breadcrumb_id != claim.request.id {}
    let deleted = events.next().await.unwrap().unwrap();
    assert_eq!((deleted.breadcrumb_id, deleted.kind), (claim.request.id, rcrt_breadcrumb::EventKind::Deleted));
    let held = scene.hand.store.heartbeat(&[claim.lease], 60_000).await.unwrap();
    assert_eq!(held[0].status, LeaseStatus::CancelRequested);
    assert!(!asking.is_finished());
    let failure = ToolFailure::new(ErrorCode::Cancelled, "stopped");
    let given = scene.hand.answer(&claim, Err(failure)).await;
    assert_eq!(asking.await.unwrap().ok().json(), given);
    scene.world.close().await;
}

#[tokio::test]
async fn a_deadline_that_passes_in_the_queue_is_the_response() {
    let scene = Scene::start().await;
    let answer = scene.invoke("echo", &[("Prefer", "wait=60")], json!({"deadline_ms": 1})).await.ok().json();
    assert_eq!((&answer["error_code"], &answer["is_retryable"]), (&json!("Timeout"), &json!(true)));
    assert_eq!(answer["error_details"], json!({"limit": "deadline_ms", "allowed": 1}));
    scene.world.close().await;
}

#[tokio::test]
async fn a_server_that_stops_waits_for_the_responses_of_open_calls() {
    let mut scene = Scene::start().await;
    let asking = tokio::spawn(scene.invoke("echo", &[("Prefer", "wait=60")], json!({})));
    let claim = scene.hand.claim().await;
    let (_, runner) = scene.world.agent(scene.tenant, &[Role::Runner]).await;
    scene.world.shutdown.cancel();
    // Runners can complete calls, and no other work is accepted.
    while scene.invoke("echo", &[("Prefer", "respond-async")], json!({})).await.status.as_u16() != 503 {}
    let lease = json!({"leases": [claim.lease], "lease_ms": 60_000});
    scene.world.post("/calls/heartbeat", &runner, lease).await.ok();
    let given = scene.hand.answer(&claim, Ok(json!(1))).await;
    assert_eq!(asking.await.unwrap().ok().json(), given);
    scene.world.close().await;
}

#[tokio::test]
async fn a_server_that_stops_releases_callers_after_the_drain_time() {
    let drain_time = |options: &mut rcrt_server::ServerOptions| options.limits.drain_time = Duration::from_secs(1);
    let mut scene = Scene::of(Box::pin(World::start_as(drain_time)).await).await;
    let asking = tokio::spawn(scene.invoke("echo", &[("Prefer", "wait=60")], json!({})));
    let claim = scene.hand.claim().await;
    scene.world.shutdown.cancel();
    let answer = asking.await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.json()["request"]), (202, &json!(claim.request.id)));
    assert_eq!(answer.json()["cancel"], format!("/calls/{}/cancel", claim.request.id));
    scene.world.close().await;
}

#[tokio::test]
async fn a_caller_that_disconnects_affects_no_other() {
    let mut scene = Scene::start().await;
    let asking = tokio::spawn(scene.invoke("echo", &[], json!({})));
    let claim = scene.hand.claim().await;
    asking.abort();
    assert!(asking.await.err().unwrap().is_cancelled());
    scene.hand.answer(&claim, Ok(json!(1))).await;
    let path = format!("/calls/{}", claim.request.id);
    assert_eq!(scene.world.get(&path, &scene.token).await.ok().json()["state"], "finished");
    // The next caller still gets its response.
    let asking = tokio::spawn(scene.invoke("echo", &[], json!({})));
    let claim = scene.hand.claim().await;
    let given = scene.hand.answer(&claim, Ok(json!(2))).await;
    assert_eq!(asking.await.unwrap().ok().json(), given);
    scene.world.close().await;
}

#[tokio::test]
async fn a_tool_can_be_called_by_its_name_in_a_format() {
    let mut scene = Scene::start().await;
    crate::tools::offer(&scene.world, scene.tenant).await;
    let prefer = ("Prefer", "respond-async");
    for (called, tool) in [
        (ToolFormat::OpenAi.name("weather.now"), "weather.now"),
        // Names that only look like it are used unchanged, and the runner says whether the tool
        // exists.
        ("weather_now_00000000".into(), "weather_now_00000000"),
        ("weather.now".into(), "weather.now"),
    ] {
        assert_eq!(scene.invoke(&called, &[prefer], json!({})).await.status, 202);
        assert_eq!(scene.hand.claim().await.request.context["tool"], tool);
    }
    scene.world.close().await;
}

#[tokio::test]
async fn a_trace_context_is_copied_into_a_request_without_one() {
    let scene = Scene::start().await;
    let (ours, theirs) = (
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00",
    );
    let written = async |header: &[&str], record: Value| {
        let mut request = scene.world.request("POST", "/breadcrumbs", &scene.token).json(&record);
        for line in header {
            request = request.header("traceparent", *line);
        }
        let id = answer(request).await.ok().json()["id"].clone();
        let path = format!("/breadcrumbs/{}", id.as_str().unwrap());
        scene.world.get(&path, &scene.token).await.ok().json()["context"]["traceparent"].clone()
    };
    let request = || crate::harness::request_for("echo");
    assert_eq!(written(&[ours], request()).await, ours);
    let mut own = request();
    own["context"]["traceparent"] = json!(theirs);
    assert_eq!(written(&[ours], own).await, theirs);
    assert_eq!(written(&["nonsense"], request()).await, Value::Null);
    assert_eq!(written(&[ours, theirs], request()).await, Value::Null);
    assert_eq!(written(&[ours], crate::harness::note("no request")).await, Value::Null);
    scene.world.close().await;
}

#[tokio::test]
async fn a_long_wait_ends_when_its_time_is_up() {
    let scene = Scene::start().await;
    let began = std::time::Instant::now();
    let answer = scene.invoke("echo", &[("Prefer", "wait=1")], json!({})).await;
    assert_eq!(answer.status, 202);
    assert!(began.elapsed() >= Duration::from_secs(1));
    scene.world.close().await;
}
