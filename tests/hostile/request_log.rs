//! The requests that the tests' servers received.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;

#[derive(Default)]
pub struct RequestLog {
    requests: Mutex<Vec<Request>>,
    news: Notify,
}

/// One request: its path without the query, and the whole request as text.
struct Request {
    path: String,
    text: String,
}

impl RequestLog {
    pub fn add(&self, path: &str, text: String) {
        self.requests.lock().unwrap().push(Request { path: path.to_owned(), text });
        self.news.notify_waiters();
    }

    /// The requests for this path, or for paths under it.
    pub fn at(&self, path: &str) -> Vec<String> {
        let under = format!("{}/", path.trim_end_matches('/'));
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.path == path || request.path.starts_with(&under))
            .map(|request| request.text.clone())
            .collect()
    }

    /// Requests that contain this text, outside of these paths.
    pub fn holding(&self, text: &str, outside_of: &[String]) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let holds = |request: &&Request| request.text.contains(text) && !outside_of.contains(&request.path);
        requests.iter().filter(holds).map(|request| request.path.clone()).collect()
    }

    /// Waits until this path was requested.
    pub async fn reached(&self, path: &str, patience: Duration) -> bool {
        let waited = async {
            loop {
                let news = self.news.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                if !self.at(path).is_empty() {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(patience, waited).await.is_ok()
    }
}
