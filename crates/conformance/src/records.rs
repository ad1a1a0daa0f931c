//! Writing, reading, changing and deleting records.

use breadcrumb::NewBreadcrumb;
use serde_json::json;

use crate::harness::{Harness, alone};

pub async fn a_record_comes_back_as_it_was_written(harness: &impl Harness) {
    let agent = alone(harness).await;
    let record = NewBreadcrumb {
        title: "Notes".into(),
        context: json!({"z": 1, "a": {"deep": [true, null, "ä 😀"]}, "m": 1.50}).as_object().unwrap().clone(),
        tags: vec!["workspace:one".into(), "note".into()],
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    };
    let created = agent.create(record.clone(), None).await.unwrap();
    assert_eq!((created.version, created.replayed), (1, false));
    let read = agent.get(created.id).await.unwrap();
    assert_eq!(read.title, record.title);
    assert_eq!(serde_json::to_string(&read.context).unwrap(), serde_json::to_string(&record.context).unwrap());
    assert_eq!(read.tags, record.tags);
    assert_eq!(read.schema_name, record.schema_name);
    assert_eq!(read.owner_id, agent.identity.owner_id);
    assert_eq!(read.created_by, Some(agent.identity.agent_id));
}
