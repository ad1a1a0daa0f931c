//! Which secrets a call receives.

use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, NewSecret, SecretChanges, SecretInfo, ToolResponse};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, code_context};

/// A fixture with the tool `secretive`, which needs `API_KEY` and returns what it sees of it.
async fn tool_with_secret() -> (Fixture, Arc<Fake>, Uuid) {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    fake.does("secretive", |call, _| async move { Ok(json!(call.secrets.shown())) });
    (fixture, fake, tool)
}

async fn keep(fixture: &Fixture, secret: NewSecret) -> SecretInfo {
    fixture.person.create_secret(secret).await.unwrap()
}

fn bound(value: &str) -> NewSecret {
    NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", value) }
}

/// The one missing requirement of a refused call: its code, and the command that fixes it.
fn lack(response: &ToolResponse) -> (String, String) {
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{response:?}");
    let details = response.error_details.as_ref().unwrap();
    let [lack] = details["secrets"].as_array().unwrap().as_slice() else { panic!("{details}") };
    let text = |key: &str| lack[key].as_str().unwrap().to_owned();
    assert_eq!(text("secret"), "API_KEY");
    assert!(response.error.as_ref().unwrap().contains(&text("fix")), "{response:?}");
    (text("problem"), text("fix"))
}

#[tokio::test]
async fn each_missing_step_of_a_secret_is_reported() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let runner = fixture.start(&fake);
    let (problem, fix) = lack(&fixture.call("secretive", json!({})).await);
    assert_eq!(problem, "missing");
    assert_eq!(fix, format!("rcrt secret set API_KEY --readable && rcrt secret grant API_KEY {tool}"));

    let secret = keep(&fixture, NewSecret::new("API_KEY", "hunter2hunter2")).await.id;
    let (problem, fix) = lack(&fixture.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), fix), ("not_granted", format!("rcrt secret grant API_KEY {tool}")));

    fixture.person.grant_secret(secret, tool).await.unwrap();
    let (problem, fix) = lack(&fixture.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), fix.as_str()), ("unbound", "rcrt secret set API_KEY --keep-value --readable"));

    let hosts = Some(vec!["api.example.com".into()]);
    fixture.person.update_secret(secret, SecretChanges { hosts, ..SecretChanges::default() }).await.unwrap();
    let shown = fixture.call("secretive", json!({})).await.output.unwrap();
    let handle = shown["API_KEY"].as_str().unwrap();
    assert!(handle.starts_with("rcrt_secret_API_KEY_"), "{handle}");
    let again = fixture.call("secretive", json!({})).await.output.unwrap();
    assert_ne!(again, shown, "each call has its own handle");
    runner.stop().await;
}

#[tokio::test]
async fn a_refused_call_never_runs_and_lists_all_missing_secrets() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let needs = json!({"required_secrets": ["ONE", "TWO", "THREE"]});
    let tool = fixture.create(code("needy", needs)).await;
    fake.does("needy", |_, _| async move { panic!("must not run") });
    let one = fixture.person.create_secret(NewSecret::new("ONE", "a long value")).await.unwrap().id;
    fixture.person.grant_secret(one, tool).await.unwrap();
    fixture.person.create_secret(NewSecret::new("TWO", "a long value")).await.unwrap();
    let runner = fixture.start(&fake);
    let response = fixture.call("needy", json!({})).await;
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
    let audit = fixture.store.audit_log(fixture.owner, 100).await.unwrap();
    assert!(audit.iter().all(|entry| entry.action != "secret.decrypted"));
    runner.stop().await;
}

#[tokio::test]
async fn a_readable_secret_is_plain_text_and_needs_no_host() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let secret = keep(&fixture, NewSecret { readable: true, ..NewSecret::new("API_KEY", "hunter2") }).await.id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    fake.does("secretive", |call, _| async move { Ok(json!(call.secrets.shown()["API_KEY"].len())) });
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("secretive", json!({})).await.output, Some(json!(7)));
    runner.stop().await;
}

#[tokio::test]
async fn each_decryption_is_audited_with_tool_and_request() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    let runner = fixture.start(&fake);
    let request = fixture.ask("secretive", json!({})).await;
    fixture.answer(request).await.output.unwrap();
    let audit = fixture.store.audit_log(fixture.owner, 100).await.unwrap();
    let entries: Vec<_> = audit.iter().filter(|entry| entry.action == "secret.decrypted").collect();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.subject, entry.tool_id), (secret, Some(tool)));
    assert_eq!(entry.reason.as_deref(), Some(&*format!("tool secretive, request {request}")));
    runner.stop().await;
}

#[tokio::test]
async fn a_grant_belongs_to_the_record_and_not_to_the_name() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    let runner = fixture.start(&fake);
    fixture.call("secretive", json!({})).await.output.unwrap();

    // Deleted and created again: another record.
    fixture.person.delete(tool, None).await.unwrap();
    let recreated = fixture.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let response = loop {
        let response = fixture.call("secretive", json!({})).await;
        // Until the runner has received both events: the deleted one has no grant any more, either.
        if response.error_details.as_ref().is_some_and(|details| details["tool_id"] == json!(recreated)) {
            break response;
        }
        assert!(response.error_code.is_some(), "{response:?}");
    };
    assert_eq!(lack(&response), ("not_granted".into(), format!("rcrt secret grant API_KEY {recreated}")));
    fixture.person.grant_secret(secret, recreated).await.unwrap();
    fixture.call("secretive", json!({})).await.output.unwrap();
    runner.stop().await;
}

#[tokio::test]
async fn a_grant_is_not_inherited_by_the_next_tool_of_the_name() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let needs = json!({"required_secrets": ["API_KEY"]});
    let first = fixture.create(crate::fixture::native("secretive", needs.clone())).await;
    fake.does("secretive", |call, _| async move { Ok(json!(call.tool_id)) });
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    fixture.person.grant_secret(secret, first).await.unwrap();
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("secretive", json!({})).await.output, Some(json!(first)));
    // An untrusted tool of the same name gets no call, and no secret once it owns the name.
    let (_, agent) = crate::rights::emitter(&fixture).await;
    let stranger = agent.create(code("secretive", needs), None).await.unwrap().id;
    fixture.tool_error(stranger, |_| true).await;
    assert_eq!(fixture.call("secretive", json!({})).await.output, Some(json!(first)));
    fixture.person.delete(first, None).await.unwrap();
    let response = loop {
        let response = fixture.call("secretive", json!({})).await;
        // Until the runner has received the deletion: the deleted one has no grant any more,
        // either.
        if response.error_details.as_ref().is_some_and(|details| details["tool_id"] == json!(stranger)) {
            break response;
        }
        assert!(response.error_code.is_some() || response.output == Some(json!(first)), "{response:?}");
    };
    assert_eq!(lack(&response), ("not_granted".into(), format!("rcrt secret grant API_KEY {stranger}")));
    runner.stop().await;
}

#[tokio::test]
async fn an_optional_secret_is_passed_only_if_it_is_granted() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("choosy", json!({}))).await;
    fake.does("choosy", |call, _| async move { Ok(json!(call.secrets.shown().contains_key("EXTRA_KEY"))) });
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("choosy", json!({})).await.output, Some(json!(false)));
    let key = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("EXTRA_KEY", "hunter2hunter2") };
    let secret = keep(&fixture, key).await.id;
    assert_eq!(fixture.call("choosy", json!({})).await.output, Some(json!(false)));
    fixture.person.grant_secret(secret, tool).await.unwrap();
    assert_eq!(fixture.call("choosy", json!({})).await.output, Some(json!(true)));
    runner.stop().await;
}

#[tokio::test]
async fn a_revocation_affects_the_next_call_and_not_running_ones() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
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
    let runner = fixture.start(&fake);
    let running = fixture.ask("secretive", json!({})).await;
    began.notified().await;
    fixture.person.revoke_secret(secret, tool).await.unwrap();
    assert_eq!(lack(&fixture.call("secretive", json!({})).await).0, "not_granted");
    go.notify_one();
    assert!(fixture.answer(running).await.output.unwrap()["API_KEY"].is_string());
    runner.stop().await;
}

/// An untrusted agent writes a malicious version, then a harmless-looking one that does not work. A
/// curator grants the secret to the version that they see.
#[tokio::test]
async fn an_older_running_version_gets_no_secret_granted_to_a_newer_one() {
    let (fixture, fake, tool) = tool_with_secret().await;
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    let runner = fixture.start(&fake);
    lack(&fixture.call("secretive", json!({})).await);
    let needs = json!({"required_secrets": ["API_KEY"], "code": {"language": "typescript", "source": "broken("}});
    fixture.change(tool, 1, code_context("secretive", needs)).await;
    fixture.tool_error(tool, |report| report["version"] == 2 && report["running_version"] == 1).await;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    let (problem, fix) = lack(&fixture.call("secretive", json!({})).await);
    assert_eq!((problem.as_str(), fix.as_str()), ("newer_only", "rcrt crumb list --schema tool.error.v1"));

    // Once fixed, it is the granted version, or a curator's version of it.
    let fixed = fixture.change(tool, 2, code_context("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let response = loop {
        let response = fixture.call("secretive", json!({})).await;
        if response.error_code.is_none() {
            break response;
        }
    };
    assert_eq!(response.metadata["tool_version"], fixed.version);
    runner.stop().await;
}

/// RCRT's model tools read the id of their key from a configuration record, and name no secret.
#[tokio::test]
async fn in_compat_code_that_reads_secrets_by_id_gets_its_granted_ones() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let asks = |method: &str| {
        let source =
            format!("export async function execute(i: any, c: any) {{ return await c.api.{method}(i.id, ''); }}");
        json!({"code": {"language": "typescript", "source": source}})
    };
    let (asking, other) = ("decryptSecret", "getBreadcrumb");
    let tools = [fixture.create(code("asking", asks(asking))).await, fixture.create(code("other", asks(other))).await];
    for tool in ["asking", "other"] {
        fake.does(tool, |call, _| async move { Ok(json!(call.secrets.shown().keys().collect::<Vec<_>>())) });
    }
    let secret = keep(&fixture, bound("hunter2hunter2")).await.id;
    let unbound = keep(&fixture, NewSecret::new("UNGRANTED", "hunter3hunter3")).await.id;
    for tool in tools {
        fixture.person.grant_secret(secret, tool).await.unwrap();
    }
    let compat = rcrt_runner::RunnerOptions { rcrt_compat: true, ..crate::fixture::options() };
    for (options, expected) in [(crate::fixture::options(), json!([])), (compat, json!(["API_KEY"]))] {
        let runner = fixture.start_with(&fake, options);
        assert_eq!(fixture.call("asking", json!({"id": secret})).await.output, Some(expected));
        assert_eq!(fixture.call("other", json!({"id": unbound})).await.output, Some(json!([])));
        runner.stop().await;
    }
}
