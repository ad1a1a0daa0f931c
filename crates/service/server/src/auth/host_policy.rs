//! In open mode, every caller that reaches the server is trusted. A web site can make a browser
//! reach it by pointing its own name to the server's address (DNS rebinding), but then the `Host`
//! header has that name. So only loopback names and names that the operator allowed are accepted.
//!
//! A server that listens beyond loopback accepts only addresses of private networks. With
//! `rcrt_compat` it also accepts names without a dot, such as `rcrt`, which containers use for each
//! other. No web site has such a name in the public DNS. The owner of the network's own DNS could
//! have one, so on loopback none is accepted.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rcrt_breadcrumb::{Purpose, is_localhost, special_purpose};

use crate::ServerError;
use crate::http::problem::Problem;
use crate::http::public_url::PublicUrl;
use crate::http::rate_limit::Peer;

/// Host names in addition to those of loopback: of a server with open auth, and of `/mcp` on a
/// loopback address. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Each a host name or an address, without a scheme or a port.
    pub fn new<T: AsRef<str>>(names: &[T]) -> Result<Self, ServerError> {
        let names = names.iter().map(|name| {
            let name = name.as_ref();
            let read = host_name(name).filter(|read| read.eq_ignore_ascii_case(name.trim_matches(['[', ']'])));
            read.ok_or_else(|| ServerError::NoHostName { text: name.chars().take(200).collect() })
        });
        Ok(Self(names.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, and the host of the URL by which clients reach the server through a proxy.
    pub(crate) fn with_public(mut self, url: Option<&PublicUrl>) -> Self {
        self.0.extend(url.and_then(|url| host_name(url.authority())));
        self
    }

    /// Whether a `Host` header has a name of loopback or one of these.
    pub(crate) fn include(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else { return false };
        let is_loopback = name.parse::<IpAddr>().map_or_else(|_| is_localhost(&name), |address| address.is_loopback());
        is_loopback || self.0.contains(&name)
    }
}

/// The `Host` header of a request. Empty if there is none.
pub(crate) fn host_of(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// The callers that are served in open mode.
#[derive(Debug, Clone)]
pub struct HostPolicy {
    pub hosts: AllowedHosts,
    /// Also accept names without a dot.
    pub dotless: bool,
    /// Serve only callers with an address of a private network.
    pub only_private: bool,
}

impl HostPolicy {
    fn has_name(&self, host: &str) -> bool {
        let is_dotless = |name: String| !name.contains('.') && name.parse::<IpAddr>().is_err();
        self.hosts.include(host) || (self.dotless && host_name(host).is_some_and(is_dotless))
    }

    fn has_peer(&self, peer: Option<Peer>) -> bool {
        let is_near = |purpose: Purpose| purpose.is_private_use() || purpose == Purpose::LinkLocal;
        !self.only_private || peer.and_then(|peer| special_purpose(peer.0)).is_some_and(is_near)
    }
}

/// The middleware of open mode.
pub async fn enforce(State(answered): State<Arc<HostPolicy>>, request: Request, next: Next) -> Response {
    if !answered.has_peer(request.extensions().get::<Peer>().copied()) {
        return Problem::forbidden(
            "this server issues tokens without a key, so it serves only callers with an address of a private network",
        )
        .into_response();
    }
    if answered.has_name(host_of(request.headers())) {
        return next.run(request).await;
    }
    Problem::foreign_host(
        "this server issues tokens without a key, so it accepts only requests to localhost, to a loopback address, or to \
         a name of --allow-host (this request may come from another web site)",
    )
    .into_response()
}

/// The name or the address in a `Host` header, without its port and in lower case.
fn host_name(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Some(address.ip().to_string());
    }
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = match host.split_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) => return None,
        None => host,
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn answered(names: &[&str], dotless: bool) -> HostPolicy {
        HostPolicy { hosts: AllowedHosts::new(names).unwrap(), dotless, only_private: true }
    }

    #[test]
    fn only_loopback_hosts_are_accepted_by_default() {
        let answered = answered(&[], false);
        for host in ["localhost", "localhost:8081", "LocalHost", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8081"] {
            assert!(answered.has_name(host), "{host}");
        }
        for host in [
            "",
            "rcrt",
            "rcrt:8080",
            "example.com",
            "example.com:8081",
            "localhost.example.com",
            "10.0.0.1:8081",
            "[fe80::1]",
            "localhost:x",
            "localhost:",
            "a b",
            "localhost@evil.example",
        ] {
            assert!(!answered.has_name(host), "{host}");
        }
    }

    #[test]
    fn allowed_names_are_accepted_on_any_port_and_similar_names_are_not() {
        let answered = answered(&["rcrt.internal", "10.0.0.1", "[fd00::1]"], false);
        for host in ["rcrt.internal", "RCRT.internal:8080", "10.0.0.1:8081", "[fd00::1]:80", "localhost"] {
            assert!(answered.has_name(host), "{host}");
        }
        for host in ["rcrt", "x.rcrt.internal", "rcrt.internal.evil.example", "10.0.0.2", "rcrt.internal."] {
            assert!(!answered.has_name(host), "{host}");
        }
        for bad in ["", "*", "http://rcrt", "rcrt:8080", "a b", "rcrt/"] {
            assert!(AllowedHosts::new(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_without_a_dot_are_accepted_only_with_rcrt_compat() {
        let answered = answered(&[], true);
        for host in ["rcrt", "rcrt:8080", "rcrt-server", "tools_runner:80"] {
            assert!(answered.has_name(host), "{host}");
        }
        for host in ["rcrt.evil.example", "evil.example:8080", "10.0.0.1", "2130706433.", "a..b"] {
            assert!(!answered.has_name(host), "{host}");
        }
    }

    #[test]
    fn beyond_loopback_only_private_addresses_are_served() {
        let answered = answered(&["rcrt"], false);
        let peer = |address: IpAddr| answered.has_peer(Some(Peer(address)));
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(172, 17, 0, 1)] {
            assert!(peer(address.into()) && peer(address.to_ipv6_mapped().into()), "{address}");
        }
        for address in [Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::new(172, 32, 0, 1)] {
            assert!(!peer(address.into()) && !peer(address.to_ipv6_mapped().into()), "{address}");
        }
        assert!(peer(Ipv6Addr::LOCALHOST.into()));
        assert!(!peer("2001:4860:4860::8888".parse().unwrap()));
        assert!(!answered.has_peer(None));
    }
}
