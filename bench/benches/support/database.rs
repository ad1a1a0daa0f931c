//! A store on a database of its own.

use std::sync::Arc;

use rcrt_breadcrumb::Tenancy;
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use uuid::Uuid;

/// The store, and its tenant.
pub async fn open_store() -> (Arc<Store>, Uuid) {
    let database = TestDatabase::new().await;
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([7; 32]))
    };
    let store = Store::open(options, &|_| {}).await.expect("a store");
    let owner_id = store.ensure_tenant("bench").await.expect("a tenant").id;
    (store, owner_id)
}
