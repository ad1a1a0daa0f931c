//! TLS with a certificate for `api.test`, `other.test`, `*.wild.test`, 127.0.0.1 and the names of
//! the services that tests replace (see `certificates/make`), and HTTP/2 over it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::Router;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::network::LOOPBACK;
use crate::raw;

/// The authority that signed the certificate, in PEM.
pub const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");

pub fn authority() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(AUTHORITY).unwrap()
}

fn acceptor(protocol: &str) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("certificates/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certificates/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Calls `talk` for each TLS connection with this protocol (`h2` or `http/1.1`). Returns the port
/// and the number of connections so far.
pub async fn serve<F, T>(protocol: &str, talk: F) -> (u16, Arc<AtomicUsize>)
where
    F: Fn(TlsStream<TcpStream>) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = io::Result<()>> + Send + 'static,
{
    let acceptor = acceptor(protocol);
    raw::serve(move |stream| {
        let (acceptor, talk) = (acceptor.clone(), talk.clone());
        async move { talk(acceptor.accept(stream).await?).await }
    })
    .await
}

/// HTTP/1 over TLS, until the test finishes. Returns the port.
pub async fn serve_router(router: Router) -> u16 {
    let listener = TcpListener::bind(SocketAddr::new(LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let listener = TlsListener { listener, acceptor: acceptor("http/1.1") };
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// HTTP/2: calls `answer` for each request.
pub async fn serve_h2<F, T>(answer: F) -> (u16, Arc<AtomicUsize>)
where
    F: Fn(axum::http::Request<h2::RecvStream>, h2::server::SendResponse<bytes::Bytes>) -> T
        + Clone
        + Send
        + Sync
        + 'static,
    T: Future<Output = Result<(), h2::Error>> + Send + 'static,
{
    serve("h2", move |stream| {
        let answer = answer.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.map_err(io::Error::other)?;
            while let Some(request) = connection.accept().await {
                let (request, respond) = request.map_err(io::Error::other)?;
                tokio::spawn(answer(request, respond));
            }
            Ok(())
        }
    })
    .await
}
