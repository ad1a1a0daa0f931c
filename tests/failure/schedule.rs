use std::collections::BTreeSet;

use futures::StreamExt;
use rcrt_breadcrumb::{EventKind, Events, NewBreadcrumb, Records, ToolRequest, ToolResponse, schema_names};
use serde_json::json;

use super::runner::Apart;
use crate::process::PATIENCE;

const SEED: &str = include_str!("../../bootstrap-breadcrumbs/tools-native/schedule_task.json");

/// Of two runners one is killed as soon as a fire is seen, mostly between the fire's record and its
/// completion. In turns it is the one that fired and the other one.
#[tokio::test(flavor = "multi_thread")]
async fn each_time_of_a_task_fires_once_although_runners_are_killed() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store = apart.installation.client().await;
    let seed: NewBreadcrumb = serde_json::from_str(SEED).unwrap();
    store.create(seed, None).await.unwrap();
    let mut runners = vec![apart.runner(), apart.runner()];
    let mut events = store.events(None).await.unwrap();
    let input = json!({"name": "pulse", "cron": "*/10 * * * * *", "description": "Fires every ten seconds."});
    store.create(ToolRequest::record("schedule_task", input, Some("make"), None), None).await.unwrap();

    let (mut fires, mut kills) = (Vec::new(), 0);
    while fires.len() < 6 {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.expect("time passes").unwrap().unwrap();
        match (event.schema_name.as_deref(), event.kind) {
            (Some(schema_names::TOOL_RESPONSE), EventKind::Created) => {
                let response = ToolResponse::from_context(&event.context).unwrap();
                assert_eq!(response.error, None);
            }
            (Some(schema_names::SCHEDULE_FIRED), EventKind::Created) => {
                // `schedule-fire:<schedule>:<seconds since 1970>`.
                let tag = event.tags.iter().find(|tag| tag.starts_with("schedule-fire:")).unwrap();
                let at: i64 = tag.rsplit(':').next().unwrap().parse().unwrap();
                fires.push((at, event.context["missed"].as_i64().unwrap()));
                // No kill at the last fires.
                if kills < 3 {
                    runners.remove(kills % 2).kill().await;
                    runners.push(apart.runner());
                    kills += 1;
                }
            }
            _ => {}
        }
    }

    let times: BTreeSet<_> = fires.iter().map(|(at, _)| at).collect();
    assert_eq!(times.len(), fires.len(), "no time fires twice: {fires:?}");
    for pair in fires.windows(2) {
        let [(before, _), (at, missed)] = pair else { unreachable!() };
        assert_eq!(at - before, 10 * (missed + 1), "each time is accounted for: {fires:?}");
    }
}
