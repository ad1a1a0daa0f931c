//! A load balancer that knows nothing of HTTP.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

/// Sends each connection to the next server that accepts it. Stops when it goes out of scope.
pub struct Balancer {
    pub url: Url,
    task: JoinHandle<()>,
}

impl Balancer {
    pub async fn over(servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        Self { url, task: tokio::spawn(balance(listener, servers)) }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn balance(listener: TcpListener, servers: Vec<SocketAddr>) {
    let mut connections = JoinSet::new();
    for first in 0.. {
        let (client, _) = listener.accept().await.unwrap();
        let mut order = servers.clone();
        order.rotate_left(first % servers.len());
        connections.spawn(connect(client, order));
        while connections.try_join_next().is_some() {}
    }
}

/// Without a server, the connection is closed.
async fn connect(mut client: TcpStream, servers: Vec<SocketAddr>) {
    for server in servers {
        if let Ok(mut server) = TcpStream::connect(server).await {
            // A server that is killed ends the connection of its client.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}
