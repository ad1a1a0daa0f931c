//! A network that misbehaves on request.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

pub struct Proxy {
    pub address: SocketAddr,
    lose: Arc<AtomicUsize>,
    cut: watch::Sender<u64>,
    serving: JoinHandle<()>,
}

impl Proxy {
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lose = Arc::new(AtomicUsize::new(0));
        let (cut, cuts) = watch::channel(0);
        let losing = lose.clone();
        let serving = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (lose, mut cuts) = (losing.clone(), cuts.clone());
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        () = pass(near, far, lose) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { address, lose, cut, serving }
    }

    /// Drops the next `count` responses and closes their connections.
    pub fn drop_responses(&self, count: usize) {
        self.lose.store(count, Ordering::SeqCst);
    }

    /// Closes every connection.
    pub fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn pass(mut near: TcpStream, mut far: TcpStream, lose: Arc<AtomicUsize>) {
    let (mut sent, mut answered) = ([0; 16384], [0; 16384]);
    loop {
        let passed = tokio::select! {
            read = near.read(&mut sent) => match read {
                Ok(read @ 1..) => far.write_all(&sent[..read]).await,
                _ => return,
            },
            read = far.read(&mut answered) => match read {
                Ok(read @ 1..) => {
                    if lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                        return;
                    }
                    near.write_all(&answered[..read]).await
                }
                _ => return,
            },
        };
        if passed.is_err() {
            return;
        }
    }
}
