//! The catalog, and calls in one round trip.

use std::{sync::Arc, time::Duration};

use rcrt_breadcrumb::{
    Annotations, BreadcrumbQuery, Catalog, CatalogEntry, Events, NewAgent, Profile, Registration, Role, StoreError,
    ToolFormat, ToolSource, Waiting,
};
use rcrt_client::{Client, Credentials, Invocation, Invoked, TokenRequest};
use rcrt_conformance::{
    Harness,
    harness::{answer_to, claim_of, next},
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::ClientHarness;

fn catalog() -> Catalog {
    let tool = |name: &str| Registration {
        name: name.into(),
        description: "Does it.".into(),
        parameters: json!(true),
        output_schema: None,
        source: ToolSource::Sandbox,
        tags: Vec::new(),
        annotations: Annotations::default(),
        deprecated: None,
        tool_id: Uuid::from_u128(1),
        tool_version: 1,
    };
    let missing_requirements = vec!["Python is not there.".into()];
    let waiting = Waiting {
        name: "python".into(),
        source: ToolSource::Native,
        tags: Vec::new(),
        tool_id: Uuid::from_u128(2),
        missing_requirements,
    };
    Catalog::new(vec![tool("echo"), tool("cancel_scheduled_task")], vec![waiting])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalog_is_read_in_every_format_and_one_tool_by_name() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    assert_eq!(client.tools().await.unwrap(), Catalog::default());
    for record in catalog().records() {
        store.create(record, None).await.unwrap();
    }
    assert_eq!(client.tools().await.unwrap(), catalog());
    for format in ToolFormat::ALL {
        assert_eq!(client.tools_in(format, None).await.unwrap(), catalog().in_format(format));
        let seen = catalog().for_profile(Profile::Subagent).in_format(format);
        assert_eq!(client.tools_in(format, Some(Profile::Subagent)).await.unwrap(), seen);
    }
    assert!(matches!(client.tool("echo").await.unwrap(), CatalogEntry::Offered(tool) if tool.name == "echo"));
    assert!(matches!(client.tool("python").await.unwrap(), CatalogEntry::Waiting(tool) if tool.name == "python"));
    let Err(StoreError::Invalid(why)) = client.tool("ecko").await else { panic!("there is none") };
    assert!(why.to_string().contains("echo"), "{why}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_gets_its_response_despite_broken_connections() {
    let harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    let invocation = Invocation { input: json!({"say": "hi"}), workspace: Some("one".into()), ..Invocation::default() };
    client.latest_event().await.unwrap();

    let mut events = store.events(None).await.unwrap();
    proxy.drop_responses(1);
    let calling = tokio::spawn({
        let (client, invocation) = (client.clone(), invocation.clone());
        async move { client.invoke("echo", &invocation, Duration::from_mins(1), None).await }
    });
    next(&mut events).await;
    let claim = store.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_eq!(claim.request.workspace(), Some("workspace:one"));
    store.complete(claim.lease, answer_to(&claim, json!({"said": "hi"}))).await.unwrap();
    let Invoked::Answered(answer) = calling.await.unwrap().unwrap() else { panic!("no response") };
    assert_eq!(answer.output, Some(json!({"said": "hi"})));
    let requests = store.list(&BreadcrumbQuery::of_schema("tool.request.v1")).await.unwrap();
    assert_eq!(requests.len(), 1, "a lost response causes no second request");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_does_not_wait_can_wait_later() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    let invocation = Invocation {
        session: Some("s".into()),
        model: Some("m".into()),
        max_result_chars: Some(2_000),
        deadline_ms: Some(600_000),
        request_id: Some("mine".into()),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        ..Invocation::default()
    };
    let invoke =
        async |wait| client.invoke("echo", &invocation, Duration::from_secs(wait), Some("once")).await.unwrap();
    let Invoked::Waiting { request, request_id } = invoke(0).await else { panic!("no runner is running") };
    assert_eq!(request_id, "mine");
    assert_eq!(
        json!(store.get(request).await.unwrap().context),
        json!({"tool": "echo", "input": null, "requestId": "mine", "session": "s", "model": "m",
            "max_result_chars": 2_000, "deadline_ms": 600_000,
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    );
    let claim = store.claim(&claim_of(1)).await.unwrap().remove(0);
    store.complete(claim.lease, answer_to(&claim, json!(7))).await.unwrap();
    let Invoked::Answered(answer) = invoke(60).await else { panic!("no response") };
    assert_eq!((answer.request_id.as_str(), answer.output), ("mine", Some(json!(7))));
    let wrong = Invocation { deadline_ms: Some(0), ..Invocation::default() };
    let refused = client.invoke("echo", &wrong, Duration::ZERO, None).await;
    assert_eq!(rcrt_conformance::harness::fields(refused), ["deadline_ms"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_sees_the_tools_of_its_profile() {
    let harness = ClientHarness::start().await;
    let curator = harness.agent(harness.tenant().await).await;
    for record in catalog().records() {
        curator.create(record, None).await.unwrap();
    }
    let url: url::Url = format!("http://{}", harness.address).parse().unwrap();
    let asking = Client::new(url.clone(), Credentials::Token(String::new()));
    let made = Arc::clone(&harness.store);
    let new = NewAgent { name: "main".into(), roles: vec![Role::Emitter], profile: Profile::Main, tools: None };
    let made = rcrt_breadcrumb::Tenancy::create_agent(&*made, curator.identity.owner_id, None, new).await.unwrap();
    let token = asking
        .request_token(&TokenRequest {
            owner_id: made.agent.owner_id,
            agent_id: made.agent.id,
            agent_key: made.agent_key,
            roles: None,
            profile: Some(Profile::Subagent),
            ttl_sec: None,
        })
        .await
        .unwrap();
    assert_eq!(token.profile, Profile::Subagent);
    let subagent = Client::new(url, Credentials::Token(token.token));
    assert_eq!(subagent.tools().await.unwrap(), catalog().for_profile(Profile::Subagent));
    harness.close().await;
}
