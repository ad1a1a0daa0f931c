//! Row-level security, tested on raw connections below the store.

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, Identity, NewBreadcrumb, NewSecret, Role, Tenancy, ToolRequest, Visibility,
    schema_names,
};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{claim_of, note, request};
use rcrt_conformance::runners::report_of;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::harness::StoreHarness;
use crate::schema::SHARED;

/// All tables with rows of tenants, each without its partitions.
async fn tables(admin: &mut PgConnection) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class c WHERE relkind IN ('r', 'p') AND NOT relispartition
        AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1) ORDER BY relname";
    sqlx::query_scalar(sql).bind(SHARED.map(str::to_owned).to_vec()).fetch_all(admin).await.unwrap()
}

const NONE: [Uuid; 0] = [];

async fn fill(harness: &StoreHarness) -> Uuid {
    let agent = harness.alone().await;
    let id = agent.create(request(), Some("key")).await.unwrap().id;
    agent.claim(&claim_of(1)).await.unwrap();
    agent.cancel(id).await.unwrap();
    let queued = ToolRequest::record("other", serde_json::json!({}), None, None);
    let queued = agent.create(queued, None).await.unwrap().id;
    agent.cancel(queued).await.unwrap();
    harness.store.count_calls().await.unwrap();
    let secret = agent.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), ..note("a tool") };
    let tool = agent.create(tool, None).await.unwrap().id;
    agent.grant_secret(secret, tool).await.unwrap();
    let elsewhere = harness.tenant().await;
    agent.grant(&AclChange::tenant(id, elsewhere, Action::ALL)).await.unwrap();
    let shared = agent.create(note("shared"), None).await.unwrap().id;
    agent.grant(&AclChange::tenant(shared, elsewhere, Action::ALL)).await.unwrap();
    agent.update(shared, 1, BreadcrumbChanges::default()).await.unwrap();
    let Identity { owner_id, agent_id, .. } = agent.identity;
    crate::tokens::fill(&harness.store, owner_id, agent_id).await;
    agent.report_runner(&report_of(Uuid::new_v4())).await.unwrap();
    agent.log_egress(vec![crate::egress_log::record("a.example", 1)]).await.unwrap();
    owner_id
}

/// Rows of tables that only background work fills, or only one of many settings.
async fn fill_directly(harness: &StoreHarness, tenant: Uuid) {
    let sql = "
        INSERT INTO tokens (owner_id, id, agent_id, roles, profile, issued_at, expires_at)
            VALUES ('TENANT', gen_random_uuid(), gen_random_uuid(), '{}', 'main', now(), now() + interval '1 hour');
        INSERT INTO agent_selectors VALUES ('TENANT', 'TENANT', 1, now());
        INSERT INTO selectors (owner_id, id, agent_id, selector) VALUES ('TENANT', gen_random_uuid(), 'TENANT', '{}');
        INSERT INTO webhooks (owner_id, id, agent_id, url, after)
            VALUES ('TENANT', 'TENANT', 'TENANT', 'https://example.org', 0);
        INSERT INTO webhook_secrets (owner_id, agent_id, version, key_id, wrapped_key, sealed_value)
            VALUES ('TENANT', 'TENANT', 1, 'key', '', '');
        INSERT INTO deliveries (owner_id, id, webhook_id, event, breadcrumb_id, version, payload, size_bytes)
            SELECT owner_id, gen_random_uuid(), owner_id, number, breadcrumb_id, 1, '{}', 2 FROM events
            WHERE owner_id = 'TENANT' LIMIT 1;
        INSERT INTO event_cursors (owner_id, follower, number) VALUES ('TENANT', 'test', 0);
        INSERT INTO pruned_events VALUES ('TENANT', 0);
        INSERT INTO event_archives (owner_id, number) VALUES ('TENANT', 0);
        INSERT INTO call_archives (owner_id, file, records) VALUES ('TENANT', 'file', '{}');
        INSERT INTO call_outcomes (owner_id, tool, finished_at, total_us) VALUES ('TENANT', 'echo', now(), 1);
        INSERT INTO breadcrumb_reads SELECT owner_id, id, 1 FROM breadcrumbs WHERE owner_id = 'TENANT' LIMIT 1;
        INSERT INTO hygiene VALUES ('TENANT', 1, 0, now(), 0, 0, 0);
        INSERT INTO embedding_models (name, dimensions) VALUES ('test', 2) ON CONFLICT DO NOTHING;
        INSERT INTO breadcrumb_embeddings
            SELECT owner_id, id, (SELECT id FROM embedding_models), '', '[1,0]' FROM breadcrumbs
            WHERE owner_id = 'TENANT';
        INSERT INTO embedding_queue SELECT owner_id, id FROM breadcrumbs WHERE owner_id = 'TENANT';
        INSERT INTO embedding_backfills (owner_id, model) VALUES ('TENANT', (SELECT id FROM embedding_models));
    ";
    let sql = sql.replace("TENANT", &tenant.to_string());
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut harness.admin().await).await.unwrap();
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}"))).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raw_connection_of_the_role_sees_only_its_tenant() {
    let harness = StoreHarness::without_sweeps().await;
    let (mine, theirs) = (fill(&harness).await, fill(&harness).await);
    for tenant in [mine, theirs] {
        fill_directly(&harness, tenant).await;
    }
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    let tables = tables(&mut harness.admin().await).await;
    for table in &tables {
        assert_eq!(count(&mut raw, table).await, 0, "{table} without a tenant");
    }
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false), set_config('rcrt.agent', '*', false)")
        .bind(mine.to_string())
        .execute(&mut raw)
        .await
        .unwrap();
    for table in &tables {
        let of_tenant = async |connection: &mut PgConnection, tenant: Uuid| -> i64 {
            let sql = format!("SELECT count(*) FROM {table} WHERE owner_id = $1");
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(tenant).fetch_one(connection).await.unwrap()
        };
        // Without foreign rows the test would show nothing.
        assert!(of_tenant(&mut harness.admin().await, theirs).await > 0, "fill_directly leaves {table} empty");
        assert!(of_tenant(&mut raw, mine).await > 0, "{table} with a tenant");
        let foreign: i64 =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE owner_id <> $1")))
                .bind(mine)
                .fetch_one(&mut raw)
                .await
                .unwrap();
        assert_eq!(foreign, 0, "{table}");
        let moved = sqlx::query(AssertSqlSafe(format!("UPDATE {table} SET owner_id = $1")))
            .bind(theirs)
            .execute(&mut raw)
            .await
            .unwrap_err();
        assert_eq!(moved.as_database_error().unwrap().code().unwrap(), "42501", "{table}");
        let deleted = sqlx::query(AssertSqlSafe(format!("DELETE FROM {table} WHERE owner_id = $1")))
            .bind(theirs)
            .execute(&mut raw)
            .await;
        let is_refused = |error: sqlx::Error| error.as_database_error().unwrap().code().unwrap() == "42501";
        assert!(deleted.map_or_else(is_refused, |done| done.rows_affected() == 0), "{table}");
    }
    // A row cannot be inserted into another tenant.
    let smuggled = sqlx::query("INSERT INTO breadcrumb_tags VALUES ($1, 'tag', $2)")
        .bind(theirs)
        .bind(Uuid::new_v4())
        .execute(&mut raw)
        .await
        .unwrap_err();
    assert_eq!(smuggled.as_database_error().unwrap().code().unwrap(), "42501");
    sqlx::query("SELECT set_config('rcrt.agent', '', false)").execute(&mut raw).await.unwrap();
    let found: Vec<Uuid> = sqlx::query_scalar(
        "SELECT unnest(ids) FROM matching_breadcrumbs(ARRAY['echo'], '', '{}', '{}', NULL, false, 10)",
    )
    .fetch_all(&mut raw)
    .await
    .unwrap();
    assert_eq!(found.len(), 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_role_has_no_unneeded_rights() {
    let harness = StoreHarness::start().await;
    let tenant = fill(&harness).await;
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false)")
        .bind(tenant.to_string())
        .execute(&mut raw)
        .await
        .unwrap();
    for statement in [
        "SELECT * FROM tenants",
        "UPDATE audit SET reason = 'nothing happened'",
        "DELETE FROM audit",
        "UPDATE secret_grants SET tool_id = tool_id",
        "DELETE FROM agents",
        "TRUNCATE breadcrumbs",
        "ALTER TABLE breadcrumbs DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON breadcrumbs",
        "CREATE TABLE mine (id int)",
        "SELECT * FROM _sqlx_migrations",
        "SET row_security = off; SELECT * FROM breadcrumbs",
    ] {
        let refused = sqlx::raw_sql(statement).execute(&mut raw).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501", "{statement}");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_is_under_row_level_security() {
    let harness = StoreHarness::start().await;
    let open: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace
         AND NOT relrowsecurity ORDER BY relname",
    )
    .fetch_all(&mut harness.admin().await)
    .await
    .unwrap();
    assert_eq!(open, ["_sqlx_migrations", "tenants"]);
    // All others belong to a tenant, or give the role no rights.
    let mut admin = harness.admin().await;
    let without_owner: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class c WHERE relkind IN ('r', 'p')
         AND relnamespace = 'public'::regnamespace AND NOT EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'owner_id' AND a.attnotnull)
         ORDER BY relname",
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(without_owner, SHARED);
    for table in SHARED {
        let rights: Vec<String> = sqlx::query_scalar(
            "SELECT privilege FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) privilege
             WHERE has_table_privilege('rcrt_app', $1, privilege)",
        )
        .bind(table)
        .fetch_all(&mut admin)
        .await
        .unwrap();
        let expected: &[&str] = if table == "embedding_models" { &["SELECT"] } else { &[] };
        assert_eq!(rights, expected, "{table}");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooled_connection_has_no_tenant_left() {
    let harness = StoreHarness::start().await;
    let (one, other) = (harness.alone().await, harness.alone().await);
    for _ in 0..40 {
        let id = one.create(note("Mine"), None).await.unwrap().id;
        other.get(id).await.unwrap_err();
        one.get(id).await.unwrap();
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raw_connection_of_the_role_sees_the_rows_of_its_agent() {
    let harness = StoreHarness::start().await;
    let (author, other) = (harness.alone().await, harness.alone().await);
    let colleague = harness.agent_with(author.identity.owner_id, &[Role::Emitter]).await;
    let closed = NewBreadcrumb { visibility: Visibility::Private, ..note("Private") };
    let private = author.create(closed, None).await.unwrap().id;
    author.update(private, 1, BreadcrumbChanges::default()).await.unwrap();
    let team = author.create(note("Team"), None).await.unwrap().id;
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    let mut seen = async |tenant: Uuid, agent: &str, guest: &str, actions: &str| {
        sqlx::query(
            "SELECT set_config('rcrt.tenant', $1, false), set_config('rcrt.agent', $2, false),
                set_config('rcrt.guest', $3, false), set_config('rcrt.actions', $4, false)",
        )
        .bind(tenant.to_string())
        .bind(agent)
        .bind(guest)
        .bind(actions)
        .execute(&mut raw)
        .await
        .unwrap();
        let ids: Vec<Uuid> =
            sqlx::query_scalar("SELECT id FROM breadcrumbs ORDER BY id").fetch_all(&mut raw).await.unwrap();
        // Rows that are not visible cannot be changed, and neither are their older versions
        // visible.
        let changed = sqlx::query("UPDATE breadcrumbs SET title = title").execute(&mut raw).await.unwrap();
        assert_eq!(changed.rows_affected() as usize, ids.len());
        let versions = count(&mut raw, "breadcrumb_versions").await;
        assert_eq!(versions == 1, ids.contains(&private), "{agent} {guest} {actions}");
        ids
    };
    let tenant = author.identity.owner_id;
    let (own, colleagues) = (author.identity.agent_id.to_string(), colleague.identity.agent_id.to_string());
    let (stranger, other_tenant) = (other.identity.agent_id.to_string(), other.identity.owner_id.to_string());
    assert_eq!(seen(tenant, "*", "", "").await, [private, team]);
    assert_eq!(seen(tenant, &own, "", "").await, [private, team]);
    assert_eq!(seen(tenant, &colleagues, "", "{read_full}").await, [team]);
    // Without an agent nothing private is visible, and an agent of another tenant sees nothing.
    assert_eq!(seen(tenant, "", "", "{read_full}").await, [team]);
    assert_eq!(seen(tenant, &stranger, &other_tenant, "{read_full}").await, NONE);
    assert_eq!(seen(other.identity.owner_id, "*", "", "").await, NONE);
    author.grant(&AclChange::agent(private, colleague.identity.agent_id, [Action::ReadFull])).await.unwrap();
    author.grant(&AclChange::tenant(private, other.identity.owner_id, [Action::Update])).await.unwrap();
    assert_eq!(seen(tenant, &colleagues, "", "{read_full}").await, [private, team]);
    assert_eq!(seen(tenant, &colleagues, "", "{update}").await, [team]);
    assert_eq!(seen(tenant, &stranger, &other_tenant, "{update}").await, [private]);
    assert_eq!(seen(tenant, &stranger, &other_tenant, "{read_full}").await, NONE);
    // The grant applies only in the record's tenant.
    assert_eq!(seen(other.identity.owner_id, &stranger, "", "{update}").await, NONE);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_grant_change_is_in_the_audit_log() {
    let harness = StoreHarness::start().await;
    let (author, other) = (harness.alone().await, harness.alone().await);
    let id = author.create(note("Shared"), None).await.unwrap().id;
    let change = AclChange::tenant(id, other.identity.owner_id, [Action::Update, Action::ReadFull]);
    author.grant(&change).await.unwrap();
    author.revoke(&change).await.unwrap();
    author.revoke(&change).await.unwrap();
    let log = harness.store.audit_log(author.identity.owner_id, 2).await.unwrap();
    let changes: Vec<_> = log.iter().map(|line| (line.action.as_str(), line.subject, line.agent_id)).collect();
    let by = Some(author.identity.agent_id);
    assert_eq!(changes, [("acl.revoked", id, by), ("acl.granted", id, by)]);
    let reason = format!("read_full, update: tenant {}", other.identity.owner_id);
    assert_eq!(log[0].reason.as_deref(), Some(reason.as_str()));
    harness.close().await;
}

/// Tables whose rows are about records, each with the column that names the record.
const ABOUT_RECORDS: [(&str, &str); 8] = [
    ("breadcrumbs", "id"),
    ("breadcrumb_versions", "breadcrumb_id"),
    ("breadcrumb_tags", "breadcrumb_id"),
    ("breadcrumb_embeddings", "breadcrumb_id"),
    ("embedding_queue", "breadcrumb_id"),
    ("deliveries", "breadcrumb_id"),
    ("events", "breadcrumb_id"),
    ("calls", "request"),
];

/// The tables in which the role sees rows about the record.
async fn seen_in(raw: &mut PgConnection, tenant: Uuid, agent: &str, record: Uuid) -> Vec<&'static str> {
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false), set_config('rcrt.agent', $2, false)")
        .bind(tenant.to_string())
        .bind(agent)
        .execute(&mut *raw)
        .await
        .unwrap();
    let mut tables = Vec::new();
    for (table, column) in ABOUT_RECORDS {
        let sql = format!("SELECT EXISTS (SELECT FROM {table} WHERE {column} = $1)");
        if sqlx::query_scalar(AssertSqlSafe(sql)).bind(record).fetch_one(&mut *raw).await.unwrap() {
            tables.push(table);
        }
    }
    tables
}

/// The table in SECURITY.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_about_a_record_are_visible_to_those_who_see_the_record() {
    let harness = StoreHarness::start().await;
    let author = harness.alone().await;
    let tenant = author.identity.owner_id;
    let colleague = harness.agent_with(tenant, &[Role::Emitter, Role::Subscriber]).await.identity.agent_id.to_string();
    let own = author.identity.agent_id.to_string();
    let private = author.create(NewBreadcrumb { visibility: Visibility::Private, ..request() }, None).await.unwrap().id;
    let open = author.create(request(), None).await.unwrap().id;
    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "INSERT INTO embedding_models (name, dimensions) VALUES ('test', 2);
         INSERT INTO breadcrumb_embeddings SELECT owner_id, id, (SELECT id FROM embedding_models), '', '[1,0]' FROM breadcrumbs;
         INSERT INTO embedding_queue SELECT owner_id, id FROM breadcrumbs;
         INSERT INTO webhooks (id, owner_id, agent_id, url, after)
         SELECT gen_random_uuid(), owner_id, created_by, 'https://example.org', 0 FROM breadcrumbs LIMIT 1;
         INSERT INTO deliveries (id, owner_id, webhook_id, event, breadcrumb_id, version, payload, size_bytes)
         SELECT gen_random_uuid(), e.owner_id, w.id, e.number, e.breadcrumb_id, 1, '{}', 2 FROM events e, webhooks w",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    for id in [private, open] {
        author.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    }
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    let all: Vec<&str> = ABOUT_RECORDS.iter().map(|(table, _)| *table).collect();
    let of_agents =
        ["breadcrumbs", "breadcrumb_versions", "breadcrumb_tags", "breadcrumb_embeddings", "events", "calls"];
    for id in [private, open] {
        assert_eq!(seen_in(&mut raw, tenant, "*", id).await, all);
        assert_eq!(seen_in(&mut raw, tenant, &own, id).await, of_agents);
    }
    for agent in [colleague.as_str(), ""] {
        assert_eq!(seen_in(&mut raw, tenant, agent, open).await, of_agents);
        // Rows of `events` and `calls` depend on the tenant alone, as SECURITY.md says.
        assert_eq!(seen_in(&mut raw, tenant, agent, private).await, ["events", "calls"]);
    }
    // Their other content depends on the record, and no method of the store returns it.
    let read = harness.store.acting_as(rcrt_breadcrumb::Identity {
        owner_id: tenant,
        agent_id: colleague.parse().unwrap(),
        roles: vec![Role::Emitter, Role::Subscriber],
        profile: rcrt_breadcrumb::Profile::Main,
    });
    rcrt_conformance::harness::assert_not_found(read.call(private).await);
    rcrt_conformance::harness::assert_not_found(read.cancel(private).await);
    harness.close().await;
}

/// An old version is a separate row, with the visibility and sensitivity that it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_version_is_visible_by_its_own_visibility() {
    let harness = StoreHarness::start().await;
    let author = harness.alone().await;
    let tenant = author.identity.owner_id;
    let colleague = harness.agent_with(tenant, &[Role::Emitter, Role::Subscriber]).await.identity.agent_id.to_string();
    let own = author.identity.agent_id.to_string();
    let closed = NewBreadcrumb { visibility: Visibility::Private, ..note("Private") };
    let id = author.create(closed, None).await.unwrap().id;
    let secret = BreadcrumbChanges {
        visibility: Some(Visibility::Team),
        sensitivity: Some(rcrt_breadcrumb::Sensitivity::Secret),
        ..BreadcrumbChanges::default()
    };
    author.update(id, 1, secret).await.unwrap();
    let open =
        BreadcrumbChanges { sensitivity: Some(rcrt_breadcrumb::Sensitivity::Low), ..BreadcrumbChanges::default() };
    author.update(id, 2, open).await.unwrap();
    author.update(id, 3, BreadcrumbChanges::default()).await.unwrap();
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    let mut versions = async |agent: &str| -> Vec<i64> {
        sqlx::query("SELECT set_config('rcrt.tenant', $1, false), set_config('rcrt.agent', $2, false)")
            .bind(tenant.to_string())
            .bind(agent)
            .execute(&mut raw)
            .await
            .unwrap();
        sqlx::query_scalar("SELECT version FROM breadcrumb_versions WHERE breadcrumb_id = $1 ORDER BY version")
            .bind(id)
            .fetch_all(&mut raw)
            .await
            .unwrap()
    };
    assert_eq!(versions("*").await, [1, 2, 3]);
    assert_eq!(versions(&own).await, [1, 2, 3]);
    assert_eq!(versions(&colleague).await, [3]);
    let mut admin = harness.admin().await;
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false)")
        .bind(tenant.to_string())
        .execute(&mut admin)
        .await
        .unwrap();
    // Events and webhooks leave out versions that were private. Of a secret version they report
    // that it existed.
    assert_eq!(visible_versions(&mut admin, &own, id).await, [1, 2, 3, 4]);
    assert_eq!(visible_versions(&mut admin, &colleague, id).await, [2, 3, 4]);
    assert_eq!(private_versions(&mut admin, tenant, id).await, [1]);
    // The visibility of a very old version is unknown, so it stays hidden.
    sqlx::query("UPDATE breadcrumb_versions SET visibility = NULL, sensitivity = NULL")
        .execute(&mut admin)
        .await
        .unwrap();
    assert_eq!(versions(&colleague).await, [0; 0]);
    assert_eq!(versions(&own).await, [1, 2, 3]);
    // The current version has a visibility, and stays visible.
    assert_eq!(visible_versions(&mut admin, &own, id).await, [1, 2, 3, 4]);
    assert_eq!(visible_versions(&mut admin, &colleague, id).await, [4]);
    assert_eq!(private_versions(&mut admin, tenant, id).await, [1, 2, 3]);
    // The same if only versions are left.
    author.delete(id, None).await.unwrap();
    assert_eq!(visible_versions(&mut admin, &own, id).await, [1, 2, 3, 4]);
    assert_eq!(visible_versions(&mut admin, &colleague, id).await, [4]);
    harness.close().await;
}

/// Which of the first four versions a webhook of the agent can get the events of.
async fn visible_versions(admin: &mut PgConnection, agent: &str, id: Uuid) -> Vec<i64> {
    sqlx::query_scalar(
        "SELECT n FROM generate_series(1::bigint, 4) n WHERE agent_can_see_version($1::uuid, $2, n) ORDER BY n",
    )
    .bind(agent)
    .bind(id)
    .fetch_all(admin)
    .await
    .unwrap()
}

/// The versions that the event feed marks as private, once older transactions let it return them.
async fn private_versions(admin: &mut PgConnection, tenant: Uuid, id: Uuid) -> Vec<i64> {
    loop {
        let rows: Vec<(i64, bool)> = sqlx::query_as(
            "SELECT version, is_private FROM read_events($1, 0, 256, 1000000, '{}')
             WHERE breadcrumb_id = $2 AND number IS NOT NULL ORDER BY number",
        )
        .bind(tenant)
        .bind(id)
        .fetch_all(&mut *admin)
        .await
        .unwrap();
        if rows.len() == 4 {
            return rows.into_iter().filter_map(|(version, is_private)| is_private.then_some(version)).collect();
        }
        tokio::task::yield_now().await;
    }
}

/// For autoscaling: a role that can only execute the function.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_scales_runners_learns_the_depth_of_the_queue_and_nothing_else() {
    let harness = StoreHarness::without_sweeps().await;
    for _ in 0..2 {
        let agent = harness.alone().await;
        agent.create(request(), None).await.unwrap();
        agent.create(request(), None).await.unwrap();
        assert_eq!(agent.claim(&claim_of(1)).await.unwrap().len(), 1);
    }
    let mut admin = harness.admin().await;
    // Other tests use the same cluster. The transaction is rolled back, and with it the role.
    sqlx::raw_sql("BEGIN; CREATE ROLE scaler_of_a_test; GRANT EXECUTE ON FUNCTION queue_depth() TO scaler_of_a_test; SET LOCAL ROLE scaler_of_a_test")
        .execute(&mut admin)
        .await
        .unwrap();
    let depth: i64 = sqlx::query_scalar("SELECT queue_depth()").fetch_one(&mut admin).await.unwrap();
    assert_eq!(depth, 2, "the claimed calls do not wait");
    for sql in [
        "SELECT 1 FROM calls",
        "SELECT * FROM unfinished_calls()",
        "SELECT 1 FROM breadcrumbs",
        "SELECT * FROM all_tenants()",
    ] {
        sqlx::raw_sql("SAVEPOINT here").execute(&mut admin).await.unwrap();
        let refused = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut admin).await.unwrap_err();
        assert!(refused.to_string().contains("permission denied"), "{sql}: {refused}");
        sqlx::raw_sql("ROLLBACK TO here").execute(&mut admin).await.unwrap();
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut admin).await.unwrap();
    // Not even the server's own role has it.
    let mut app = PgConnection::connect(&harness.database.app_url).await.unwrap();
    assert!(sqlx::query("SELECT queue_depth()").fetch_one(&mut app).await.is_err());
}
