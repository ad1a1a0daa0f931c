//! Semantic search: what is embedded and when, with an observable embedder, and how well the real
//! one finds.

mod fake;
mod indexing;
mod quality;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{
    Breadcrumbs, Embedder, Identity, NewAgent, NewBreadcrumb, Profile, Role, Search, SearchResults, Tenancy,
};
use rcrt_store::{EmbeddingOptions, SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

/// A store with an embedder, and one agent in a tenant.
struct World {
    database: TestDatabase,
    store: Arc<Store>,
    agent: Arc<dyn Breadcrumbs>,
    identity: Identity,
}

async fn open(database: &TestDatabase, options: EmbeddingOptions) -> Arc<Store> {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: Duration::from_mins(2),
        embedding: Some(options),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    Store::open(options, &|_| {}).await.unwrap()
}

fn options(embedder: Arc<dyn Embedder>) -> EmbeddingOptions {
    EmbeddingOptions::new(embedder)
}

impl World {
    async fn with(options: EmbeddingOptions) -> Self {
        let database = TestDatabase::new().await;
        let store = open(&database, options).await;
        let owner_id = store.ensure_tenant("one").await.unwrap().id;
        let agent =
            NewAgent { name: "agent".into(), roles: vec![Role::Curator], profile: Profile::default(), tools: None };
        let made = store.create_agent(owner_id, None, agent).await.unwrap().agent;
        let identity = Identity { owner_id, agent_id: made.id, roles: made.roles, profile: made.profile };
        let agent = store.acting_as(identity.clone());
        Self { database, store, agent, identity }
    }

    /// The same database with another store.
    async fn again(self, options: EmbeddingOptions) -> Self {
        self.store.close().await;
        let store = open(&self.database, options).await;
        Self { agent: store.acting_as(self.identity.clone()), store, ..self }
    }

    async fn write(&self, title: &str) -> uuid::Uuid {
        self.agent.create(note(title), None).await.unwrap().id
    }

    async fn search(&self, search: Search) -> SearchResults {
        self.agent.search(&search).await.unwrap()
    }

    async fn count(&self, sql: &'static str) -> i64 {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query_scalar(sql).fetch_one(&mut admin).await.unwrap()
    }

    /// Waits until the query returns `wanted`, and looks each time the store reports work. Gives up
    /// when its result does not change for five minutes: a batch that was lost waits for two.
    async fn until(&self, sql: &'static str, wanted: i64) {
        let mut changes = self.store.embedding_changes().unwrap();
        let mut count = self.count(sql).await;
        while count != wanted {
            let before = count;
            let changed = async {
                while count == before {
                    changes.changed().await.unwrap();
                    count = self.count(sql).await;
                }
            };
            let waited = tokio::time::timeout(Duration::from_mins(5), changed).await;
            assert!(waited.is_ok(), "{sql} is {before}, not {wanted}, and does not change");
        }
    }

    async fn until_embedded(&self, wanted: i64) {
        self.until(EMBEDDED, wanted).await;
    }
}

const EMBEDDED: &str =
    "SELECT count(*) FROM breadcrumb_embeddings e JOIN embedding_models m ON m.id = e.model WHERE m.is_current";

fn note(title: &str) -> NewBreadcrumb {
    NewBreadcrumb { title: title.into(), ..NewBreadcrumb::default() }
}

fn titles(found: &SearchResults) -> Vec<&str> {
    found.items.iter().map(|item| item.title.as_str()).collect()
}
