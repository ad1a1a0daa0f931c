//! Open mode trusts whoever reaches the loopback address. A browser reaches it on behalf of any web site that points
//! its own name there, but the `Host` header still tells that name; so in open mode only loopback names are answered.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::Request,
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::problem::Problem;

/// The middleware of open mode.
pub async fn refuse(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback(host) { next.run(request).await } else { Problem::foreign_host().into_response() }
}

fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address.is_loopback();
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_loopback_names_and_addresses_pass() {
        for host in ["localhost", "localhost:8081", "LocalHost", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8081"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "example.com", "example.com:8081", "localhost.example.com", "10.0.0.1:8081", "[fe80::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
