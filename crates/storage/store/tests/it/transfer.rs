//! Export and import of records, into another tenant or another store.

use std::io::Cursor;

use futures::StreamExt;
use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb, Sensitivity, Tenancy};
use rcrt_conformance::harness::PATIENCE;
use rcrt_conformance::{Agent, Harness};
use rcrt_store::{Export, Imported, OnConflict, TransferError, export_records, import_lines};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::StoreHarness;

fn note(title: &str) -> NewBreadcrumb {
    NewBreadcrumb {
        title: title.into(),
        context: json!({"z": 1, "a": {"text": "one\ntwo"}}).as_object().unwrap().clone(),
        tags: vec!["note".into(), "workspace:x".into()],
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    }
}

async fn create(agent: &Agent, record: NewBreadcrumb) -> Uuid {
    agent.create(record, None).await.unwrap().id
}

async fn name_of(harness: &StoreHarness, tenant: Uuid) -> String {
    harness.store.tenants().await.unwrap().into_iter().find(|one| one.id == tenant).unwrap().name
}

async fn export(harness: &StoreHarness, tenant: Uuid, with_secret: bool) -> (String, (u64, u64)) {
    let what = Export {
        tenant: name_of(harness, tenant).await,
        schema_names: Vec::new(),
        with_versions: true,
        with_secret,
        program: "0.0.0".into(),
    };
    let mut lines = Vec::new();
    let counts = export_records(&harness.database.admin_url, &what, &mut lines).await.unwrap();
    (String::from_utf8(lines).unwrap(), counts)
}

async fn import(
    harness: &StoreHarness,
    tenant: Uuid,
    lines: &str,
    on_conflict: OnConflict,
) -> Result<Imported, TransferError> {
    let name = name_of(harness, tenant).await;
    import_lines(&harness.database.admin_url, &name, &mut Cursor::new(lines), on_conflict, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exported_records_are_imported_unchanged() {
    let from = StoreHarness::start().await;
    let agent = from.alone().await;
    let mut ids = Vec::new();
    // More than one transaction's lines.
    for n in 0..130 {
        ids.push(create(&agent, note(&format!("note {n}"))).await);
    }
    let changes = BreadcrumbChanges { title: Some("changed".into()), ..BreadcrumbChanges::default() };
    agent.update(ids[0], 1, changes).await.unwrap();
    create(&from.alone().await, note("another tenant's")).await;
    let (lines, counts) = export(&from, agent.identity.owner_id, false).await;
    assert_eq!(counts, (130, 1));
    assert_eq!(lines.lines().count(), 133);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["export"]["format"], 1);

    let to = StoreHarness::start().await;
    let reader = to.alone().await;
    let mut events = reader.events(None).await.unwrap();
    let imported = import(&to, reader.identity.owner_id, &lines, OnConflict::Fail).await.unwrap();
    assert_eq!(imported, Imported { created: 130, replaced: 0, skipped: 0, versions: 1 });
    for id in &ids {
        let (mut was, is) = (agent.get(*id).await.unwrap(), reader.get(*id).await.unwrap());
        was.owner_id = is.owner_id;
        assert_eq!(is, was);
    }
    assert_eq!(reader.history(ids[0]).await.unwrap().len(), agent.history(ids[0]).await.unwrap().len());
    let tagged = serde_json::from_value(json!({"all_tags": ["note", "workspace:x"]})).unwrap();
    let query = BreadcrumbQuery { selector: tagged, limit: 1000, ..BreadcrumbQuery::default() };
    assert_eq!(reader.list(&query).await.unwrap().len(), 130);
    let heard = tokio::time::timeout(PATIENCE, events.next()).await.expect("a subscriber gets the event");
    assert_eq!(heard.unwrap().unwrap().breadcrumb_id, ids[0]);

    let again = import(&to, reader.identity.owner_id, &lines, OnConflict::Replace).await.unwrap();
    assert_eq!(again, Imported { skipped: 130, ..Imported::default() }, "a repetition changes nothing");
    from.close().await;
    to.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_beyond_64_bits_is_refused_with_its_path() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    create(&agent, NewBreadcrumb { context: rcrt_conformance::harness::object(json!({"n": "big"})), ..note("a note") })
        .await;
    let (lines, _) = export(&harness, tenant, false).await;
    let changed = lines.replace("\"big\"", "123456789012345678901234567890");
    let refused = import(&harness, tenant, &changed, OnConflict::Replace).await.unwrap_err();
    assert!(refused.to_string().contains("123456789012345678901234567890"), "{refused}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_existing_record_is_skipped_replaced_or_refused() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    let id = create(&agent, note("as exported")).await;
    let (lines, _) = export(&harness, tenant, false).await;
    let changes = BreadcrumbChanges { title: Some("changed since".into()), ..BreadcrumbChanges::default() };
    agent.update(id, 1, changes).await.unwrap();

    let refused = import(&harness, tenant, &lines, OnConflict::Fail).await.unwrap_err();
    assert!(matches!(refused, TransferError::Line { line: 2, .. }), "{refused}");
    assert_eq!(import(&harness, tenant, &lines, OnConflict::Skip).await.unwrap().skipped, 1);
    assert_eq!(agent.get(id).await.unwrap().title, "changed since");
    assert_eq!(import(&harness, tenant, &lines, OnConflict::Replace).await.unwrap().replaced, 1);
    let now = agent.get(id).await.unwrap();
    assert_eq!((now.title.as_str(), now.version), ("as exported", 3));
    let titles: Vec<String> = agent.history(id).await.unwrap().into_iter().map(|version| version.title).collect();
    assert!(titles.contains(&"changed since".to_owned()), "{titles:?}");

    // A record of another tenant cannot be overwritten by its id.
    let other = harness.alone().await;
    let foreign = import(&harness, other.identity.owner_id, &lines, OnConflict::Replace).await.unwrap_err();
    assert!(matches!(&foreign, TransferError::Line { line: 2, what } if what.contains("another tenant")), "{foreign}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_records_are_exported_only_on_request() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..note("hidden") };
    create(&agent, secret).await;
    create(&agent, note("open")).await;
    let (lines, counts) = export(&harness, agent.identity.owner_id, false).await;
    assert_eq!(counts.0, 1);
    assert!(!lines.contains("hidden"));
    assert!(export(&harness, agent.identity.owner_id, true).await.0.contains("hidden"));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_lines_and_incomplete_files_are_reported() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    create(&agent, note("one")).await;
    let (lines, _) = export(&harness, tenant, false).await;
    let target = harness.tenant().await;
    let lines: Vec<&str> = lines.lines().collect();
    let untitled = lines[1].replace("\"title\":\"one\"", "\"title\":\"\"");
    for (text, line, about) in [
        ("no json".to_owned(), 1, "is not valid JSON: expected"),
        (lines[1].to_owned(), 1, "export"),
        (lines[0].replace("\"format\":1", "\"format\":9"), 1, "format 9"),
        (format!("{}\n\n{{\"record\": {{}}}}", lines[0]), 3, "is required"),
        (format!("{}\n{{\"note\": {{}}}}", lines[0]), 2, "must be one of export, record, version, event, end"),
        (format!("{}\n{untitled}", lines[0]), 2, "title"),
        (format!("{}\n{}", lines[0], lines[0]), 2, "second"),
        (format!("{}\n{}\n{}", lines[0], lines[2], lines[2]), 3, "nothing may follow"),
    ] {
        match import(&harness, target, &text, OnConflict::Skip).await.unwrap_err() {
            TransferError::Line { line: at, what } => {
                assert_eq!(at, line, "{what}");
                assert!(what.contains(about), "{what}");
            }
            other => panic!("{other}: {text}"),
        }
    }
    let cut = import(&harness, target, lines[0], OnConflict::Skip).await.unwrap_err();
    assert!(matches!(cut, TransferError::CutOff), "{cut}");
    let nobody =
        import_lines(&harness.database.admin_url, "nobody", &mut Cursor::new(""), OnConflict::Skip, false).await;
    assert!(matches!(nobody, Err(TransferError::NoTenant(_))));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runner_records_are_neither_exported_nor_imported() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    create(&agent, NewBreadcrumb { schema_name: Some("tool.runner.v1".into()), ..note("a runner at work") }).await;
    create(&agent, note("kept")).await;
    let (lines, counts) = export(&harness, agent.identity.owner_id, false).await;
    assert_eq!((counts, lines.contains("a runner at work")), ((1, 0), false));

    // A file of an older program that still exported them.
    let to = StoreHarness::start().await;
    let reader = to.alone().await;
    let lines = lines.replace("note.v1", "tool.runner.v1");
    let imported = import(&to, reader.identity.owner_id, &lines, OnConflict::Fail).await.unwrap();
    assert_eq!(imported, Imported { skipped: 1, ..Imported::default() });
    harness.close().await;
    to.close().await;
}

/// The operator imports, so the tag on a curator's tool is trusted, unless the exporting store did
/// not check it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_keeps_the_curators_tag_only_from_a_store_that_reserves_it() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    let curator = harness.agent(tenant).await;
    let tool = NewBreadcrumb {
        schema_name: Some("tool.code.v1".into()),
        context: json!({"name": "echo", "code": {"language": "javascript", "source": ""}}).as_object().unwrap().clone(),
        ..note("a curator's tool")
    };
    let tool = create(&curator, tool).await;
    let changes = BreadcrumbChanges { title: Some("changed".into()), ..BreadcrumbChanges::default() };
    curator.update(tool, 1, changes).await.unwrap();
    let tagged = NewBreadcrumb { tags: vec!["author:curator".into()], ..note("a note") };
    let noted = create(&curator, tagged).await;
    let (lines, _) = export(&harness, tenant, false).await;
    let from_before = lines.replacen(",\"reserves_curators_tag\":true", "", 1);
    assert_ne!(lines, from_before);

    for (lines, expected) in [(&lines, true), (&from_before, false)] {
        let to = StoreHarness::start().await;
        let reader = to.alone().await;
        import(&to, reader.identity.owner_id, lines, OnConflict::Fail).await.unwrap();
        let is_tagged = |tags: &[String]| tags.iter().any(|tag| tag == "author:curator");
        let versions = reader.history(tool).await.unwrap();
        assert_eq!(versions.iter().map(|one| is_tagged(&one.tags)).collect::<Vec<_>>(), [expected, expected]);
        let all = reader.list(&BreadcrumbQuery::tagged("author:curator")).await.unwrap();
        assert_eq!(all.len(), usize::from(expected), "the index of tags says the same");
        let log = to.store.audit_log(reader.identity.owner_id, 1).await.unwrap();
        let line = (log[0].action.as_str(), log[0].agent_id, log[0].subject, log[0].subject_name.as_str());
        assert_eq!((line, log[0].reason.as_deref()), (("tool.imported", None, tool, "echo"), Some("version 2")));
        assert!(!is_tagged(&reader.get(noted).await.unwrap().tags), "only tools have it");
        to.close().await;
    }
    harness.close().await;
}
