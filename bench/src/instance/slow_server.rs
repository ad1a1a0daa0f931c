//! A server on loopback that holds all requests until it is released.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct SlowServer {
    address: SocketAddr,
    held: watch::Sender<usize>,
    open: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl SlowServer {
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (held, open) = (watch::Sender::new(0), watch::Sender::new(false));
        let (counter, gate) = (held.clone(), open.clone());
        let answer = async move || {
            counter.send_modify(|held| *held += 1);
            // An error means that this server is gone, and so is the caller.
            let _ = gate.subscribe().wait_for(|open| *open).await;
            counter.send_modify(|held| *held -= 1);
            "{}"
        };
        let app = Router::new().route("/slow", get(answer));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, held, open, serving })
    }

    /// As `--allow-private-host` and a tool's permissions name it.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self) -> String {
        format!("http://{}/slow", self.address)
    }

    /// How many requests it holds.
    pub fn held(&self) -> usize {
        *self.held.borrow()
    }

    /// Waits until it holds `requests` requests, at most for `patience`. Returns how many it holds
    /// then.
    pub async fn wait_for(&self, requests: usize, patience: Duration) -> usize {
        let mut held = self.held.subscribe();
        let reached = held.wait_for(|held| *held >= requests);
        let _ = tokio::time::timeout(patience, reached).await;
        self.held()
    }

    /// Answers all requests that it holds, and all later ones.
    pub fn lift_cpu_limit(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_held_until_they_are_released() {
        let slow = SlowServer::start().await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let asked: Vec<_> = (0..3).map(|_| tokio::spawn(http.get(slow.url()).send())).collect();
        assert_eq!(slow.wait_for(3, Duration::from_mins(1)).await, 3);
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        slow.lift_cpu_limit();
        for asked in asked {
            assert!(asked.await.unwrap().unwrap().status().is_success());
        }
    }
}
