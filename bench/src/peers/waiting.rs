//! Calls that wait for results which arrive on another channel than the request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::oneshot;

/// A call of a bench takes longer only if something is broken.
const PATIENCE: Duration = Duration::from_mins(1);

type Result = std::result::Result<f64, String>;

/// The waiting calls by number.
#[derive(Default)]
pub struct Waiting {
    numbered: AtomicU64,
    calls: Mutex<HashMap<u64, oneshot::Sender<Result>>>,
}

/// What a peer reports about a call.
#[derive(Deserialize)]
struct Said {
    call: u64,
    sum: Option<f64>,
    failed: Option<String>,
}

/// One call that waits.
pub struct Call {
    /// Its number, unique among all calls of a peer in all runs.
    pub number: u64,
    answer: oneshot::Receiver<Result>,
    waiting: Arc<Waiting>,
}

impl Waiting {
    pub fn begin(self: &Arc<Self>) -> Call {
        let number = self.numbered.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.calls.lock().insert(number, sender);
        Call { number, answer, waiting: self.clone() }
    }

    /// Delivers `{"call": …, "sum": …}` or `{"call": …, "failed": …}`. Other lines are ignored.
    pub fn on_line(&self, text: &str) {
        let Ok(said) = serde_json::from_str::<Said>(text) else { return };
        if let Some(sender) = self.calls.lock().remove(&said.call) {
            let answer = said.sum.ok_or_else(|| said.failed.unwrap_or_else(|| "no sum".into()));
            // The caller can have given up.
            let _ = sender.send(answer);
        }
    }

    /// No more results will come.
    pub fn close(&self) {
        self.calls.lock().clear();
    }
}

impl Call {
    pub async fn answer(mut self) -> Result {
        match tokio::time::timeout(PATIENCE, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("the peer exited".into()),
            Err(_) => Err(format!("no result within {} s", PATIENCE.as_secs())),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.waiting.calls.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_call_gets_its_own_result() {
        let waiting = Arc::new(Waiting::default());
        let (first, second) = (waiting.begin(), waiting.begin());
        let (a, b) = (first.number, second.number);
        waiting.on_line("Worker connected");
        waiting.on_line(&format!(r#"{{"call":{b},"failed":"no"}}"#));
        waiting.on_line(&format!(r#"{{"call":{a},"sum":3}}"#));
        assert_eq!(first.answer().await, Ok(3.0));
        assert_eq!(second.answer().await, Err("no".into()));
        assert!(waiting.calls.lock().is_empty());
    }

    #[tokio::test]
    async fn waiting_calls_fail_when_the_peer_exits() {
        let waiting = Arc::new(Waiting::default());
        let call = waiting.begin();
        waiting.close();
        assert_eq!(call.answer().await, Err("the peer exited".into()));
    }
}
