//! The HTTP clients of one call. Each call has its own connection pool, so calls never share a
//! connection. What one tool does to a connection (a login, bytes that a later response would be
//! read from) cannot affect another tool, and neither can its rights.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcrt_breadcrumb::OpError;
use rustls::client::Resumption;

use super::address_check::AddressScope;
use super::body::BufferedBytes;
use super::resolver::CheckedResolver;
use super::{Egress, EgressError, EgressOptions, type_error};

/// The connections of one call. Idle ones are closed on drop.
#[derive(Default)]
pub struct Connections {
    public: OnceLock<reqwest::Client>,
    /// For the private hosts that the operator allowed this tool. Separate, so that the public
    /// client never reuses a connection to an internal host.
    inside: OnceLock<reqwest::Client>,
    /// Bytes of request bodies that are buffered for the call's fetches.
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
        let client =
            build(gate, reach).map_err(|error| type_error(format!("the HTTP client cannot be created: {error}")))?;
        Ok(kept.get_or_init(|| client).clone())
    }
}

fn build(gate: &Egress, reach: AddressScope) -> reqwest::Result<reqwest::Client> {
    let options = &gate.options;
    let mut tls = gate.tls.clone();
    // A shared session ticket would tell the server that two calls come from the same runner.
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
        // A proxy from the environment or the system would connect instead of the gate.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        // The gate decodes, so that it can count encoded and decoded bytes.
        .no_gzip()
        .no_brotli()
        // What a server can send before it is read, for one body and for one connection.
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

/// The TLS configuration that every call starts from. The certificate authorities are read once.
pub(super) fn tls(options: &EgressOptions) -> Result<rustls::ClientConfig, EgressError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let more = options.more_authorities.iter().cloned();
    let mut config = match rustls_platform_verifier::Verifier::new_with_extra_roots(more, provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth(),
        Err(error) => {
            // Without certificate authorities http still works, and https fails with the reason.
            tracing::warn!(%error, "no certificate authorities were found; tools cannot use https");
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
