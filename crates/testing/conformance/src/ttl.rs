//! When records expire: by reads, by time, or by whichever comes first.

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbQuery, EventKind, NewBreadcrumb, Role, Search, TtlType,
};
use serde_json::{Value, json};

use crate::harness::{Agent, Harness, alone, assert_not_found, fields, next, note};

fn read_often(kind: TtlType, config: Value) -> NewBreadcrumb {
    NewBreadcrumb { ttl_type: Some(kind), ttl_config: Some(config), ..note("Readable") }
}

fn left(record: &Breadcrumb) -> (Option<i64>, Option<i64>) {
    (record.read_count, record.reads_left)
}

async fn listed(agent: &Agent) -> usize {
    agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().len()
}

async fn found(agent: &Agent) -> usize {
    let search = Search { include_context: true, ..Search::of("readable") };
    agent.search(&search).await.unwrap().items.len()
}

pub async fn a_record_expires_with_its_last_read(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    let id = agent.create(read_often(TtlType::Usage, json!({"max_reads": 3})), None).await.unwrap().id;
    assert_eq!(left(&agent.get(id).await.unwrap()), (Some(1), Some(2)));
    // None of these counts as a read.
    assert_eq!((listed(&agent).await, found(&agent).await, agent.history(id).await.unwrap().len()), (1, 1, 1));
    assert_eq!(agent.view(id).await.unwrap().title, "Readable");
    let last = agent.get(id).await.unwrap();
    assert_eq!((left(&last), last.context.len()), ((Some(3), Some(0)), 1));

    assert_not_found(agent.get(id).await);
    assert_not_found(agent.view(id).await);
    assert_not_found(agent.history(id).await);
    assert_not_found(agent.update(id, 1, BreadcrumbChanges::default()).await);
    assert_not_found(agent.delete(id, None).await);
    assert_eq!((listed(&agent).await, found(&agent).await), (0, 0));
    assert_eq!(next(&mut events).await.kind, EventKind::Created);
    let gone = next(&mut events).await;
    assert_eq!((gone.kind, gone.breadcrumb_id), (EventKind::Deleted, id));
}

pub async fn concurrent_readers_do_not_exceed_the_limit_of_reads(harness: &impl Harness) {
    const MOST_READS: usize = 7;
    let agent = alone(harness).await;
    for kind in [TtlType::Usage, TtlType::Hybrid] {
        let config = match kind {
            TtlType::Usage => json!({"max_reads": MOST_READS}),
            _ => json!({"max_reads": MOST_READS, "duration": "1h"}),
        };
        let id = agent.create(read_often(kind, config), None).await.unwrap().id;
        let readers: Vec<_> = (0..50)
            .map(|_| {
                let agent = agent.clone();
                tokio::spawn(async move { agent.get(id).await })
            })
            .collect();
        let mut counts = Vec::new();
        for reader in readers {
            match reader.await.unwrap() {
                Ok(record) => counts.push(record.read_count.unwrap()),
                refused => assert_not_found(refused),
            }
        }
        counts.sort_unstable();
        assert_eq!(counts, (1..=MOST_READS as i64).collect::<Vec<_>>());
    }
}

pub async fn a_hybrid_record_also_expires_by_time(harness: &impl Harness) {
    let agent = alone(harness).await;
    let ending = |ttl| NewBreadcrumb { ttl: Some(ttl), ..read_often(TtlType::Hybrid, json!({"max_reads": 100})) };
    let past = agent.create(ending(Utc::now() - TimeDelta::seconds(1)), None).await.unwrap().id;
    assert_not_found(agent.get(past).await);

    let hybrid = read_often(TtlType::Hybrid, json!({"max_reads": 1, "duration": "2h"}));
    let id = agent.create(hybrid, None).await.unwrap().id;
    let read = agent.get(id).await.unwrap();
    let minutes = (read.ttl.unwrap() - read.created_at).num_minutes();
    assert!((119..=120).contains(&minutes), "{minutes}");
    assert_not_found(agent.get(id).await);
}

pub async fn a_new_time_to_live_resets_the_count(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(read_often(TtlType::Usage, json!({"max_reads": 2})), None).await.unwrap().id;
    agent.get(id).await.unwrap();
    // A change that does not name the time to live keeps the count.
    let titled = BreadcrumbChanges { title: Some("Still readable".into()), ..BreadcrumbChanges::default() };
    assert_eq!(left(&agent.update(id, 1, titled).await.unwrap()), (Some(1), Some(1)));
    let more = BreadcrumbChanges { ttl_config: Some(json!({"max_reads": 3})), ..BreadcrumbChanges::default() };
    assert_eq!(left(&agent.update(id, 2, more).await.unwrap()), (Some(0), Some(3)));
    assert_eq!(left(&agent.get(id).await.unwrap()), (Some(1), Some(2)));

    // The configuration of one kind does not remain for another.
    let never = BreadcrumbChanges { ttl_type: Some(TtlType::Never), ..BreadcrumbChanges::default() };
    let kept = agent.update(id, 3, never).await.unwrap();
    assert_eq!((left(&kept), kept.ttl_config), ((None, None), None));
    for _ in 0..5 {
        assert_eq!(left(&agent.get(id).await.unwrap()), (None, None));
    }
    let usage = BreadcrumbChanges { ttl_type: Some(TtlType::Usage), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(id, 4, usage).await), ["ttl_config.max_reads"]);
}

pub async fn the_runtimes_own_reads_do_not_count(harness: &impl Harness) {
    let agent = alone(harness).await;
    let owner = agent.identity.owner_id;
    let runner = harness.agent_with(owner, &[Role::Runner, Role::Emitter, Role::Subscriber]).await;
    let reader = harness.agent_with(owner, &[Role::Subscriber]).await;
    let id = agent.create(read_often(TtlType::Usage, json!({"max_reads": 2})), None).await.unwrap().id;
    for _ in 0..3 {
        assert_eq!(left(&runner.get(id).await.unwrap()), (Some(0), Some(2)));
        runner.view(id).await.unwrap();
    }
    // Reads by an agent that can only read count too.
    reader.get(id).await.unwrap();
    assert_eq!(left(&runner.get(id).await.unwrap()), (Some(1), Some(1)));
    reader.view(id).await.unwrap();
    assert_not_found(runner.get(id).await);
}

pub async fn an_invalid_time_to_live_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    let with = |kind, config: Value| NewBreadcrumb { ttl_type: kind, ttl_config: Some(config), ..note("x") };
    for (field, record) in [
        ("ttl_config.max_reads", with(Some(TtlType::Usage), json!({}))),
        ("ttl_config.max_reads", with(Some(TtlType::Usage), json!({"max_reads": 0}))),
        ("ttl_config.max_reads", with(Some(TtlType::Usage), json!({"max_reads": "3"}))),
        ("ttl_config.max_reads", with(Some(TtlType::Duration), json!({"duration": 5, "max_reads": 3}))),
        ("ttl_config.duration", with(Some(TtlType::Duration), json!({"duration": "soon"}))),
        ("ttl_config.duration", with(Some(TtlType::Hybrid), json!({"max_reads": 3}))),
        ("ttl_config.duration", with(None, json!({"duration": 60}))),
        (
            "ttl_config.hybrid_mode",
            with(Some(TtlType::Hybrid), json!({"max_reads": 1, "duration": 1, "hybrid_mode": "all"})),
        ),
        ("ttl_config", with(Some(TtlType::Usage), json!([3]))),
    ] {
        assert_eq!(fields(agent.create(record.clone(), None).await), [field], "{record:?}");
    }
    let ttl = Some(Utc::now() + TimeDelta::hours(1));
    for kind in [TtlType::Usage, TtlType::Never] {
        let config = (kind == TtlType::Usage).then(|| json!({"max_reads": 1}));
        let record = NewBreadcrumb { ttl, ttl_type: Some(kind), ttl_config: config, ..note("x") };
        assert_eq!(fields(agent.create(record, None).await), ["ttl"]);
    }
}
