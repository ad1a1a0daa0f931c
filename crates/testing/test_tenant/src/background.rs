//! Work that runs beside a test, such as a scheduler or a follower.

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct Background {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Background {
    /// Starts the work. It ends when the token is cancelled that it gets.
    pub fn start<W>(work: impl FnOnce(CancellationToken) -> W) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(work(stop.clone())), stop }
    }

    /// Stops it and waits until its present work is done.
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// As if its process were killed.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}
