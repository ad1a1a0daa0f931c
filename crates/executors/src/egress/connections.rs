//! The HTTP clients of one call. Each call has its own connection pool, so calls never share a
//! connection: what one tool does to it (a login for the connection, bytes that a later response
//! would be read from) cannot reach another tool, and neither can one tool's rights.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::Resumption;
use sandbox::OpError;

use super::address_check::AddressScope;
use super::body::BufferedBytes;
use super::resolver::CheckedResolver;
use super::{Egress, EgressError, EgressOptions, type_error};

/// The connections of one call; the idle ones are closed when this is dropped.
#[derive(Default)]
pub struct Connections {
    public: OnceLock<reqwest::Client>,
    /// For the hosts that the operator allowed this tool, alone: a connection to the inside is never found in the pool
    /// of the other.
    inside: OnceLock<reqwest::Client>,
    /// Bytes of request bodies that the gate keeps for the call's fetches.
    held: AtomicUsize,
}

impl Connections {
    pub(super) fn held<'a>(&'a self, gate: &'a Egress) -> BufferedBytes<'a> {
        BufferedBytes::new(&self.held, &gate.held, &gate.options)
    }

    pub(super) fn client(&self, gate: &Egress, reach: AddressScope) -> Result<reqwest::Client, OpError> {
        let kept = match reach {
            AddressScope::Public => &self.public,
            AddressScope::Private => &self.inside,
        };
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let client = build(gate, reach).map_err(|error| type_error(format!("there is no HTTP client: {error}")))?;
        Ok(kept.get_or_init(|| client).clone())
    }
}

fn build(gate: &Egress, reach: AddressScope) -> reqwest::Result<reqwest::Client> {
    let options = &gate.options;
    let mut tls = gate.tls.clone();
    // A ticket of one call would tell the server that the next is of the same runner.
    tls.resumption = Resumption::in_memory_sessions(16);
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(CheckedResolver {
            resolver: gate.resolver.clone(),
            reach,
            machine: options.interfaces.clone(),
            denied: options.denied.clone(),
            timeout: options.lookup_timeout,
        }))
        // Neither the environment nor the system names a proxy that would dial in the gate's place.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        // The gate decodes by itself, so that it counts both sides.
        .no_gzip()
        .no_brotli()
        // What a server may send before anybody reads it, of one body and of one connection.
        .http2_initial_stream_window_size(512 * 1024)
        .http2_initial_connection_window_size(1024 * 1024)
        .http1_max_headers(options.max_header_fields)
        .http2_max_header_list_size(options.max_header_bytes as u32)
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(8)
        .user_agent(concat!("rcrt/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// What every call's TLS starts from: the certificate authorities, read once.
pub(super) fn tls(options: &EgressOptions) -> Result<rustls::ClientConfig, EgressError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let more = options.more_authorities.iter().cloned();
    let mut config = match rustls_platform_verifier::Verifier::new_with_extra_roots(more, provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth(),
        Err(error) => {
            // A machine without certificate authorities still has http, and https fails with the reason.
            tracing::warn!(%error, "no certificate authorities were found; tools cannot use https");
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
