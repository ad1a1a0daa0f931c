//! What a call gets of the secrets that its tool needs.

use std::sync::Arc;

use breadcrumb::{ErrorCode, NewSecret, SecretChanges, SecretInfo, ToolResponse};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::Fake;
use crate::place::{Place, code, code_context};

/// A place with the tool `secretive`, which needs `API_KEY` and gives what it is shown of it.
async fn secretive() -> (Place, Arc<Fake>, Uuid) {
    let (place, fake) = (Place::new().await, Fake::new());
    let tool = place.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    fake.does("secretive", |call, _| async move { Ok(json!(call.secrets.shown())) });
    (place, fake, tool)
}

async fn keep(place: &Place, secret: NewSecret) -> SecretInfo {
    place.person.create_secret(secret).await.unwrap()
}

fn bound(value: &str) -> NewSecret {
    NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", value) }
}

/// The one thing that a refused call lacks: its word, and the command that mends it.
fn lack(response: &ToolResponse) -> (String, String) {
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{response:?}");
    let details = response.error_details.as_ref().unwrap();
    let [lack] = details["secrets"].as_array().unwrap().as_slice() else { panic!("{details}") };
    let text = |key: &str| lack[key].as_str().unwrap().to_owned();
    assert_eq!(text("secret"), "API_KEY");
    assert!(response.error.as_ref().unwrap().contains(&text("mend")), "{response:?}");
    (text("problem"), text("mend"))
}

#[tokio::test]
async fn a_tool_gets_what_it_needs_step_by_step() {
    let (place, fake, tool) = secretive().await;
    let runner = place.start(&fake);
    let (problem, mend) = lack(&place.call("secretive", json!({})).await);
    assert_eq!(problem, "missing");
    assert_eq!(mend, format!("rcrt secret set API_KEY --host HOST && rcrt secret grant API_KEY {tool}"));

    let secret = keep(&place, NewSecret::new("API_KEY", "hunter2hunter2")).await.id;
    let (problem, mend) = lack(&place.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), mend), ("not_granted", format!("rcrt secret grant API_KEY {tool}")));

    place.person.grant_secret(secret, tool).await.unwrap();
    let (problem, mend) = lack(&place.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), mend.as_str()), ("unbound", "rcrt secret set API_KEY --keep-value --host HOST"));

    let hosts = Some(vec!["api.example.com".into()]);
    place.person.update_secret(secret, SecretChanges { hosts, ..SecretChanges::default() }).await.unwrap();
    let shown = place.call("secretive", json!({})).await.output.unwrap();
    let handle = shown["API_KEY"].as_str().unwrap();
    assert!(handle.starts_with("rcrt_secret_API_KEY_"), "{handle}");
    let again = place.call("secretive", json!({})).await.output.unwrap();
    assert_ne!(again, shown, "a handle is of one call");
    runner.stop().await;
}

#[tokio::test]
async fn a_refused_call_never_runs_and_names_all_that_it_lacks() {
    let (place, fake) = (Place::new().await, Fake::new());
    let needs = json!({"required_secrets": ["ONE", "TWO", "THREE"]});
    let tool = place.create(code("needy", needs)).await;
    fake.does("needy", |_, _| async move { panic!("must not run") });
    let one = place.person.create_secret(NewSecret::new("ONE", "a long value")).await.unwrap().id;
    place.person.grant_secret(one, tool).await.unwrap();
    place.person.create_secret(NewSecret::new("TWO", "a long value")).await.unwrap();
    let runner = place.start(&fake);
    let response = place.call("needy", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied));
    assert!(!response.is_retryable.unwrap_or_default());
    let details = response.error_details.unwrap();
    let lacks: Vec<(&Value, &Value)> =
        details["secrets"].as_array().unwrap().iter().map(|lack| (&lack["secret"], &lack["problem"])).collect();
    let expected =
        [("ONE", "unbound"), ("TWO", "not_granted"), ("THREE", "missing")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(lacks, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    assert_eq!(details["tool_id"], tool.to_string());
    // Nothing was decrypted for a call that did not run.
    let audit = place.store.audit_log(place.owner, 100).await.unwrap();
    assert!(audit.iter().all(|entry| entry.action != "secret.decrypted"));
    runner.stop().await;
}

#[tokio::test]
async fn a_readable_secret_is_shown_as_it_is_and_needs_no_host() {
    let (place, fake, tool) = secretive().await;
    let secret = keep(&place, NewSecret { readable: true, ..NewSecret::new("API_KEY", "hunter2") }).await.id;
    place.person.grant_secret(secret, tool).await.unwrap();
    fake.does("secretive", |call, _| async move { Ok(json!(call.secrets.shown()["API_KEY"].len())) });
    let runner = place.start(&fake);
    assert_eq!(place.call("secretive", json!({})).await.output, Some(json!(7)));
    runner.stop().await;
}

#[tokio::test]
async fn each_decryption_tells_the_tool_and_the_request() {
    let (place, fake, tool) = secretive().await;
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    place.person.grant_secret(secret, tool).await.unwrap();
    let runner = place.start(&fake);
    let request = place.ask("secretive", json!({})).await;
    place.answer(request).await.output.unwrap();
    let audit = place.store.audit_log(place.owner, 100).await.unwrap();
    let entries: Vec<_> = audit.iter().filter(|entry| entry.action == "secret.decrypted").collect();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.subject, entry.tool_id), (secret, Some(tool)));
    assert_eq!(entry.reason.as_deref(), Some(&*format!("tool secretive, request {request}")));
    runner.stop().await;
}

#[tokio::test]
async fn a_grant_is_of_the_record_and_not_of_the_name() {
    let (place, fake, tool) = secretive().await;
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    place.person.grant_secret(secret, tool).await.unwrap();
    let runner = place.start(&fake);
    place.call("secretive", json!({})).await.output.unwrap();

    // Deleted and written anew: another record.
    place.person.delete(tool, None).await.unwrap();
    let anew = place.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let response = loop {
        let response = place.call("secretive", json!({})).await;
        // Until the runner has heard of both: the one that is gone has no grant any more, either.
        if response.error_details.as_ref().is_some_and(|details| details["tool_id"] == json!(anew)) {
            break response;
        }
        assert!(response.error_code.is_some(), "{response:?}");
    };
    assert_eq!(lack(&response), ("not_granted".into(), format!("rcrt secret grant API_KEY {anew}")));
    place.person.grant_secret(secret, anew).await.unwrap();
    place.call("secretive", json!({})).await.output.unwrap();
    runner.stop().await;
}

#[tokio::test]
async fn a_tools_grant_is_not_its_successors() {
    let (place, fake) = (Place::new().await, Fake::new());
    let needs = json!({"required_secrets": ["API_KEY"]});
    let first = place.create(crate::place::native("secretive", needs.clone())).await;
    fake.does("secretive", |call, _| async move { Ok(json!(call.tool_id)) });
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    place.person.grant_secret(secret, first).await.unwrap();
    let runner = place.start(&fake);
    assert_eq!(place.call("secretive", json!({})).await.output, Some(json!(first)));
    // A stranger's tool of the same name gets no call, and when its turn comes, no secret.
    let (_, agent) = crate::rights::emitter(&place).await;
    let stranger = agent.create(code("secretive", needs), None).await.unwrap().id;
    place.tool_error(stranger, |_| true).await;
    assert_eq!(place.call("secretive", json!({})).await.output, Some(json!(first)));
    place.person.delete(first, None).await.unwrap();
    let response = loop {
        let response = place.call("secretive", json!({})).await;
        // Until the runner has heard of the end: the one that is gone has no grant any more, either.
        if response.error_details.as_ref().is_some_and(|details| details["tool_id"] == json!(stranger)) {
            break response;
        }
        assert!(response.error_code.is_some() || response.output == Some(json!(first)), "{response:?}");
    };
    assert_eq!(lack(&response), ("not_granted".into(), format!("rcrt secret grant API_KEY {stranger}")));
    runner.stop().await;
}

#[tokio::test]
async fn an_optional_secret_is_there_only_where_it_is_granted() {
    let (place, fake) = (Place::new().await, Fake::new());
    let tool = place.create(code("choosy", json!({}))).await;
    fake.does("choosy", |call, _| async move { Ok(json!(call.secrets.shown().contains_key("EXTRA_KEY"))) });
    let runner = place.start(&fake);
    assert_eq!(place.call("choosy", json!({})).await.output, Some(json!(false)));
    let key = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("EXTRA_KEY", "hunter2hunter2") };
    let secret = keep(&place, key).await.id;
    assert_eq!(place.call("choosy", json!({})).await.output, Some(json!(false)));
    place.person.grant_secret(secret, tool).await.unwrap();
    assert_eq!(place.call("choosy", json!({})).await.output, Some(json!(true)));
    runner.stop().await;
}

#[tokio::test]
async fn a_revocation_leaves_running_calls_alone_and_refuses_the_next() {
    let (place, fake, tool) = secretive().await;
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    place.person.grant_secret(secret, tool).await.unwrap();
    let (began, go) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (tell, wait) = (began.clone(), go.clone());
    fake.does("secretive", move |call, _| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok(json!(call.secrets.shown()))
        }
    });
    let runner = place.start(&fake);
    let running = place.ask("secretive", json!({})).await;
    began.notified().await;
    place.person.revoke_secret(secret, tool).await.unwrap();
    assert_eq!(lack(&place.call("secretive", json!({})).await).0, "not_granted");
    go.notify_one();
    assert!(place.answer(running).await.output.unwrap()["API_KEY"].is_string());
    runner.stop().await;
}

/// A stranger writes what is evil, and over it what looks good and does not work; a curator grants what they see.
#[tokio::test]
async fn an_older_version_that_runs_gets_nothing_of_what_a_newer_was_granted() {
    let (place, fake, tool) = secretive().await;
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    let runner = place.start(&fake);
    lack(&place.call("secretive", json!({})).await);
    let needs = json!({"required_secrets": ["API_KEY"], "code": {"language": "typescript", "source": "broken("}});
    place.change(tool, 1, code_context("secretive", needs)).await;
    place.tool_error(tool, |report| report["version"] == 2 && report["running_version"] == 1).await;
    place.person.grant_secret(secret, tool).await.unwrap();
    let (problem, mend) = lack(&place.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), mend.as_str()), ("newer_only", "rcrt crumb list --schema tool.error.v1"));

    // Mended, it is what was granted, or what a curator made of it.
    let mended = place.change(tool, 2, code_context("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let response = loop {
        let response = place.call("secretive", json!({})).await;
        if response.error_code.is_none() {
            break response;
        }
    };
    assert_eq!(response.metadata["tool_version"], mended.version);
    runner.stop().await;
}

/// RCRT's model tools are told the id of their key by a configuration record, and name no secret.
#[tokio::test]
async fn in_compat_code_that_asks_by_id_gets_what_was_granted_to_it() {
    let (place, fake) = (Place::new().await, Fake::new());
    let asks = |method: &str| {
        let source =
            format!("export async function execute(i: any, c: any) {{ return await c.api.{method}(i.id, ''); }}");
        json!({"code": {"language": "typescript", "source": source}})
    };
    let (asking, other) = ("decryptSecret", "getBreadcrumb");
    let tools = [place.create(code("asking", asks(asking))).await, place.create(code("other", asks(other))).await];
    for tool in ["asking", "other"] {
        fake.does(tool, |call, _| async move { Ok(json!(call.secrets.shown().keys().collect::<Vec<_>>())) });
    }
    let secret = keep(&place, bound("hunter2hunter2")).await.id;
    let unbound = keep(&place, NewSecret::new("UNGRANTED", "hunter3hunter3")).await.id;
    for tool in tools {
        place.person.grant_secret(secret, tool).await.unwrap();
    }
    let compat = runner::RunnerOptions { rcrt_compat: true, ..crate::place::options() };
    for (options, expected) in [(crate::place::options(), json!([])), (compat, json!(["API_KEY"]))] {
        let runner = place.start_with(&fake, options);
        assert_eq!(place.call("asking", json!({"id": secret})).await.output, Some(expected));
        assert_eq!(place.call("other", json!({"id": unbound})).await.output, Some(json!([])));
        runner.stop().await;
    }
}
