//! The HTTP server as a task of this process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use rcrt_breadcrumb::Tenancy;
use rcrt_server::{Server, ServerOptions};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::port_holder;

/// Listens on the address, or returns an error that names the process that uses the port.
pub async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let holder = port_holder::holder(address).unwrap_or_else(|| "another program".into());
            anyhow::anyhow!(
                "the address {address} is in use by {holder}; stop it, or choose another address with --listen"
            )
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

/// A running server.
pub struct HttpServer {
    draining: CancellationToken,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl HttpServer {
    pub fn open(options: ServerOptions, tenancy: Arc<dyn Tenancy>) -> anyhow::Result<Self> {
        let server = Server::new(options, tenancy)?;
        let draining = server.draining();
        let stop = CancellationToken::new();
        let task = tokio::spawn(server.run(stop.clone()));
        Ok(Self { draining, stop, task })
    }

    /// Returns if the server stops by itself.
    pub async fn lost(&mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the HTTP server failed");
        }
    }

    /// Stops accepting new work, and reports that in the health. Current requests continue.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Waits for current requests, unless `hurry` is cancelled.
    pub async fn close(mut self, hurry: &CancellationToken) {
        self.stop.cancel();
        if self.task.is_finished() {
            return;
        }
        tokio::select! {
            () = self.lost() => {}
            () = hurry.cancelled() => self.task.abort(),
        }
    }
}

/// Returns the URL of a listener for this machine.
pub fn base_url(listener: &TcpListener) -> anyhow::Result<Url> {
    let mut address = listener.local_addr().context("the address of the listener is not known")?;
    if address.ip().is_unspecified() {
        match &mut address {
            SocketAddr::V4(v4) => v4.set_ip(std::net::Ipv4Addr::LOCALHOST),
            SocketAddr::V6(v6) => v6.set_ip(std::net::Ipv6Addr::LOCALHOST),
        }
    }
    Ok(Url::parse(&format!("http://{address}"))?)
}
