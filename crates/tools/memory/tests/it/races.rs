//! Concurrent saves.

use std::sync::Arc;

use rcrt_breadcrumb::{BreadcrumbQuery, schema_names::MEMORY_ENTRY};
use rcrt_large_results::{EntryKey, NewEntry};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, key};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_saves_all_succeed_and_one_is_last() {
    let fixture = Fixture::new().await;
    for round in 0..5 {
        let key: EntryKey = key(&format!("race/{round}"));
        let (memory, barrier) = (fixture.memory(), Arc::new(Barrier::new(12)));
        let mut saves = JoinSet::new();
        for writer in 0..12 {
            let (memory, barrier, key) = (memory.clone(), barrier.clone(), key.clone());
            saves.spawn(async move {
                barrier.wait().await;
                for turn in 0..3 {
                    let entry = NewEntry::new(key.clone(), json!({"writer": writer, "turn": turn}));
                    memory.save(&entry).await.unwrap();
                    assert!(memory.get(&key).await.unwrap().is_some(), "a saved entry never disappears");
                }
            });
        }
        while let Some(saved) = saves.join_next().await {
            saved.unwrap();
        }
        let query = BreadcrumbQuery { limit: 100, ..BreadcrumbQuery::tagged(format!("memory:race/{round}")) };
        let records = fixture.tenant.breadcrumbs.list(&query).await.unwrap();
        assert_eq!(records.len(), 1, "one record remains");
        assert_eq!(records[0].schema_name.as_deref(), Some(MEMORY_ENTRY));
        // The stored value is the last one that its writer saved.
        assert_eq!(records[0].context.as_ref().unwrap()["value"]["turn"], 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_saves_and_deletes_leave_at_most_one_entry() {
    let fixture = Fixture::new().await;
    for round in 0..40 {
        let key: EntryKey = key(&format!("race/{round}"));
        let (memory, barrier) = (fixture.memory(), Arc::new(Barrier::new(8)));
        let mut all = JoinSet::new();
        for number in 0..8 {
            let (memory, barrier, key) = (memory.clone(), barrier.clone(), key.clone());
            all.spawn(async move {
                barrier.wait().await;
                if number % 2 == 0 {
                    memory.save(&NewEntry::new(key, json!(number))).await.map(|_| ())
                } else {
                    memory.delete(&key).await.map(|_| ())
                }
            });
        }
        while let Some(done) = all.join_next().await {
            done.unwrap().unwrap();
        }
        let query = BreadcrumbQuery::tagged(format!("memory:race/{round}"));
        assert!(fixture.tenant.breadcrumbs.list(&query).await.unwrap().len() <= 1);
    }
}
