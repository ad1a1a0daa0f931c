//! A subscriber that records every event it sees, across reconnects.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use rcrt_breadcrumb::{Breadcrumbs, Event, EventKind, EventNumber};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::process::PATIENCE;

#[derive(Default)]
pub struct SeenEvents {
    pub numbers: Vec<EventNumber>,
    /// How often each change was received: (record, version, kind).
    pub changes: HashMap<(Uuid, i64, &'static str), u32>,
    /// The ids of the test's own requests that have a response.
    pub answered: HashSet<String>,
}

pub struct Watcher {
    seen: Arc<Mutex<SeenEvents>>,
    answered: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Watcher {
    pub async fn start(store: Arc<dyn Breadcrumbs>) -> Self {
        let mut stream = store.events(Some(EventNumber(0))).await.unwrap();
        let seen = Arc::new(Mutex::new(SeenEvents::default()));
        let (tell, answered) = watch::channel(0);
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                let event = event.expect("the stream continues");
                let count = note(&mut noted.lock().unwrap(), &event);
                tell.send_if_modified(|answered| std::mem::replace(answered, count) != count);
            }
            panic!("the stream must not close");
        });
        Self { seen, answered, task }
    }

    /// Waits until this many requests have a response, as long as responses come.
    pub async fn answered(&mut self, count: usize) {
        loop {
            let answered = *self.answered.borrow_and_update();
            if answered >= count {
                return;
            }
            let next = tokio::time::timeout(PATIENCE, self.answered.changed()).await;
            assert!(matches!(next, Ok(Ok(()))), "{answered} of {count} requests have responses, and no more come");
        }
    }

    pub fn stop(self) -> SeenEvents {
        self.task.abort();
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

fn note(seen: &mut SeenEvents, event: &Event) -> usize {
    seen.numbers.push(event.number);
    *seen.changes.entry((event.breadcrumb_id, event.version, event.kind.as_str())).or_default() += 1;
    if event.kind == EventKind::Created && event.schema_name.as_deref() == Some("tool.response.v1") {
        let text = |key: &str| event.context.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        // `rcrt up` calls the calculator itself at each start.
        if text("tool") != "calculator" {
            seen.answered.insert(text("request_id").to_owned());
        }
    }
    seen.answered.len()
}

impl SeenEvents {
    /// Numbers only grow, and no change was received twice.
    pub fn check(&self) {
        assert!(self.numbers.windows(2).all(|pair| pair[0] < pair[1]), "numbers grow");
        let twice: Vec<_> = self.changes.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "received more than once: {twice:?}");
    }

    pub fn created(&self, id: Uuid) -> bool {
        self.changes.contains_key(&(id, 1, EventKind::Created.as_str()))
    }
}
