//! An error arrives over HTTP as the error that the store returned.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AgentStatus, BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, CallQueue,
    ClaimRequest, HygieneRun, HygieneStats, Identity, Lease, NewAgent, NewAgentKey, NewSecret, Records, Release, Role,
    Search, SearchMode, SecretChanges, Secrets, StoreError, Tenancy, TenantInfo, TenantQuotas, TenantUsage,
    TokenRevocation, Violation, Violations, Webhooks,
};
use rcrt_client::{Client, Credentials};
use rcrt_server::{AuthMode, Server, ServerOptions, TokenKey};
use rcrt_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{ClientHarness, note, response};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_error_arrives_unchanged() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    let id = store.create(note("a"), Some("key")).await.unwrap().id;
    let none = Uuid::new_v4();
    let lease = Lease { request: none, fence: 3 };
    let secret = |name: &str, value: &str| NewSecret { readable: true, ..NewSecret::new(name, value) };
    store.create_secret(secret("TAKEN", "v")).await.unwrap();
    let changes = BreadcrumbChanges::default;
    let claim = ClaimRequest { runner_id: none, limit: 0, lease_ms: 5, except_tools: Vec::new() };

    macro_rules! same {
        ($($call:ident($($argument:expr),*)),* $(,)?) => {$({
            let over_the_wire = client.$call($($argument),*).await.err().expect(stringify!($call));
            let directly = store.$call($($argument),*).await.err().expect(stringify!($call));
            assert_eq!(over_the_wire, directly, stringify!($call));
        })*};
    }
    same!(
        get(none),
        history(none),
        update(none, 1, changes()),
        update(id, 9, changes()),
        update(id, 1, BreadcrumbChanges { title: Some("\0".into()), ..changes() }),
        delete(none, None),
        delete(id, Some(9)),
        create(note("b"), Some("key")),
        create(note(""), None),
        create(note("x".repeat(501)), None),
        list(&BreadcrumbQuery { limit: 5000, ..BreadcrumbQuery::default() }),
        list(&BreadcrumbQuery::tagged("")),
        search(&Search { selector: BreadcrumbQuery::tagged("\0").selector, ..Search::of("x") }),
        search(&Search { qvec: Some(vec![0.5, -1.0]), ..Search::default() }),
        search(&Search { mode: Some(SearchMode::Vector), ..Search::of("x") }),
        claim(&claim),
        start(lease, 1),
        complete(lease, response("x")),
        release(lease, Release::Unstarted),
        call(none),
        cancel(none),
        create_secret(secret("TAKEN", "w")),
        create_secret(secret("no name!", "")),
        update_secret(none, SecretChanges::value("v")),
        delete_secret(none),
        grant_secret(none, none),
        grant_secret(none, id),
        revoke_secret(none, none),
        decrypt_secret(none, "why", None),
        decrypt_secret(none, "why", Some(none)),
    );
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_unavailable() {
    let harness = ClientHarness::start().await;
    let (client, _store, _proxy) = harness.behind_proxy().await;
    client.secrets().await.unwrap();
    harness.store.close().await;
    let gone = client.secrets().await;
    assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
    harness.close().await;
}

/// The real store, except that its agents cannot be listed, for a reason that the test sets.
struct Refusing {
    store: Arc<Store>,
    reason: Mutex<StoreError>,
}

#[async_trait]
impl Tenancy for Refusing {
    async fn agents(&self, _: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        Err(self.reason.lock().unwrap().clone())
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        self.store.acting_as(identity)
    }

    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError> {
        self.store.ensure_tenant(name).await
    }

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        self.store.tenants().await
    }

    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>, StoreError> {
        self.store.tenant(id).await
    }

    async fn put_tenant(&self, id: Uuid, name: &str) -> Result<(TenantInfo, bool), StoreError> {
        self.store.put_tenant(id, name).await
    }

    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<(), StoreError> {
        self.store.set_quotas(id, quotas).await
    }

    async fn usage(&self, id: Uuid) -> Result<TenantUsage, StoreError> {
        self.store.usage(id).await
    }

    async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError> {
        self.store.delete_tenant(id).await
    }

    async fn put_agent(
        &self,
        owner_id: Uuid,
        id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError> {
        self.store.put_agent(owner_id, id, agent).await
    }

    async fn create_agent(&self, owner_id: Uuid, agent: NewAgent) -> Result<NewAgentKey, StoreError> {
        self.store.create_agent(owner_id, agent).await
    }

    async fn delete_agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<(), StoreError> {
        self.store.delete_agent(owner_id, agent_id).await
    }

    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError> {
        self.store.agent(owner_id, agent_id).await
    }

    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError> {
        self.store.agent_by_key(owner_id, agent_id, key).await
    }

    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError> {
        self.store.agent_status(owner_id, agent_id).await
    }

    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<(), StoreError> {
        self.store.revoke_tokens(owner_id, by, revocation).await
    }

    async fn freshly_revoked(&self) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
        self.store.freshly_revoked().await
    }

    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
        self.store.use_ticket(owner_id, ticket, until).await
    }

    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError> {
        self.store.hygiene(owner_id).await
    }

    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError> {
        self.store.run_hygiene(owner_id).await
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        unreachable!("this test uses no webhooks")
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_error_survives_http() {
    let harness = ClientHarness::start().await;
    let agent = harness.new_agent(rcrt_conformance::Harness::tenant(&harness).await, &[Role::Curator]).await;
    let refusing = Arc::new(Refusing { store: harness.store.clone(), reason: Mutex::new(StoreError::Full) });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let token_key = TokenKey::from_bytes(&[5; 32]).unwrap();
    let identity = crate::harness::identity(&agent);
    let token = token_key.issue(&identity, Duration::from_mins(5)).unwrap();
    let server = Server::new(ServerOptions::new(listener, AuthMode::Keys, token_key), refusing.clone()).unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.run(shutdown.clone()));
    let client = Client::new(url.parse().unwrap(), Credentials::Token(token));

    let id = Uuid::new_v4();
    let several = vec![Violation::new("a.b[3]", "is wrong"), Violation::new("", "is odd")];
    let mut kept = vec![
        StoreError::VersionConflict { expected: 3, actual: i64::MAX },
        StoreError::Invalid(Violations(several)),
        StoreError::IdempotencyMismatch,
        StoreError::LeaseLost { request: id },
        StoreError::Unauthorized("why".into()),
        StoreError::Forbidden("why".into()),
        StoreError::TooLarge { limit: 77 },
        StoreError::QuotaExceeded { quota: "records".into(), limit: 7, used: 9 },
        StoreError::Full,
    ];
    kept.extend(
        ["breadcrumb", "request", "secret", "grant", "tool", "agent"].map(|what| StoreError::NotFound { what, id }),
    );
    for error in kept {
        *refusing.reason.lock().unwrap() = error.clone();
        assert_eq!(client.agents().await, Err(error));
    }
    // Only the kind of these is sent: their texts are internal to the server.
    for error in [StoreError::Internal("db text".into()), StoreError::Unavailable("db text".into())] {
        *refusing.reason.lock().unwrap() = error.clone();
        let arrived = client.agents().await.unwrap_err();
        assert_eq!(std::mem::discriminant(&arrived), std::mem::discriminant(&error), "{arrived}");
        assert!(!arrived.to_string().contains("db text"));
    }
    shutdown.cancel();
    serving.await.unwrap();
    harness.close().await;
}
