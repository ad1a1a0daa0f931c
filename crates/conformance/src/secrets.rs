//! Secrets.

use breadcrumb::{NewSecret, StoreError};
use uuid::Uuid;

use crate::harness::{Harness, alone, assert_not_found, fields};

fn secret(name: &str, value: &str) -> NewSecret {
    NewSecret { name: name.into(), value: value.into() }
}

pub async fn a_secret_opens_for_a_reason_and_rotates(harness: &impl Harness) {
    let agent = alone(harness).await;
    let made = agent.create_secret(secret("API_KEY", "first ä")).await.unwrap();
    assert_eq!((made.name.as_str(), made.version), ("API_KEY", 1));
    assert_eq!(agent.decrypt_secret(made.id, "a test").await.unwrap(), "first ä");
    let rotated = agent.rotate_secret(made.id, "second".into()).await.unwrap();
    assert_eq!((rotated.id, rotated.version, rotated.created_at), (made.id, 2, made.created_at));
    assert_eq!(agent.decrypt_secret(made.id, "a test").await.unwrap(), "second");
    assert_eq!(fields(agent.decrypt_secret(made.id, " ").await), ["reason"]);
}

pub async fn secrets_are_listed_by_name_without_values(harness: &impl Harness) {
    let agent = alone(harness).await;
    for name in ["B", "A", "_c"] {
        agent.create_secret(secret(name, "value")).await.unwrap();
    }
    let names: Vec<String> = agent.secrets().await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["A", "B", "_c"]);
}

pub async fn a_secret_that_cannot_be_kept_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    agent.create_secret(secret("TAKEN", "value")).await.unwrap();
    assert_eq!(fields(agent.create_secret(secret("TAKEN", "other")).await), ["name"]);
    assert_eq!(fields(agent.create_secret(secret("1st", "value")).await), ["name"]);
    assert_eq!(fields(agent.create_secret(secret("EMPTY", "")).await), ["value"]);
    let id = agent.secrets().await.unwrap()[0].id;
    assert_eq!(fields(agent.rotate_secret(id, "x".repeat(65_537)).await), ["value"]);
}

pub async fn a_deleted_secret_is_gone(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create_secret(secret("GONE", "value")).await.unwrap().id;
    agent.delete_secret(id).await.unwrap();
    assert_not_found(agent.decrypt_secret(id, "a test").await);
    assert_not_found(agent.rotate_secret(id, "new".into()).await);
    assert_not_found(agent.delete_secret(id).await);
    assert!(agent.secrets().await.unwrap().is_empty());
}

pub async fn another_tenants_secret_is_not_there(harness: &impl Harness) {
    let (agent, stranger) = (alone(harness).await, alone(harness).await);
    let id = agent.create_secret(secret("MINE", "value")).await.unwrap().id;
    for id in [id, Uuid::new_v4()] {
        let error = stranger.decrypt_secret(id, "a test").await.unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{error:?}");
        assert_not_found(stranger.delete_secret(id).await);
    }
    assert!(stranger.secrets().await.unwrap().is_empty());
    stranger.create_secret(secret("MINE", "other")).await.unwrap();
    assert_eq!(agent.decrypt_secret(id, "a test").await.unwrap(), "value");
}
