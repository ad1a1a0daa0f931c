//! A small internet on loopback: servers, and names that resolve as a test configures.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use futures::TryStreamExt;
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, NetPermission, OpError, Redirect};
use rcrt_egress::{Connections, Egress, EgressContext, EgressOptions, NetRules, PrivateHost, Resolver, Vault};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The context of a request of the tool `tester`, which is not in a log.
pub fn context<'a>(rules: &'a NetRules, vault: &'a Vault, connections: &'a Connections) -> EgressContext<'a> {
    EgressContext { tool: "tester", rules, vault, connections, origin: None, observer: None }
}

/// A resolver: each name has a list of answers. Each lookup gets the next one, and the last one
/// repeats.
#[derive(Default)]
pub struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub fn set(&self, name: &str, answers: Vec<Vec<IpAddr>>) {
        self.answers.lock().unwrap().insert(name.to_owned(), answers);
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let Some(list) = answers.get_mut(name) else { return Ok(Vec::new()) };
        Ok(if list.len() > 1 { list.remove(0) } else { list[0].clone() })
    }
}

/// Serves on a free port until the test finishes.
pub async fn serve(router: Router) -> u16 {
    let listener = tokio::net::TcpListener::bind(SocketAddr::new(LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

#[derive(Default)]
pub struct Network {
    pub names: Arc<Names>,
    pub options: EgressOptions,
}

impl Network {
    pub fn new() -> Self {
        Self::default()
    }

    /// Resolves a name to loopback, and allows it as the operator would.
    #[must_use]
    pub fn inside(mut self, entry: &str) -> Self {
        let allowed: PrivateHost = entry.parse().unwrap();
        self.names.set(&allowed.entry.host.to_string(), vec![vec![LOOPBACK]]);
        self.options.allowed_private.push(allowed);
        self
    }

    pub fn egress(&self) -> Egress {
        let names: Arc<dyn Resolver> = self.names.clone();
        Egress::with_resolver(self.options.clone(), &names).unwrap()
    }

    pub fn gate(&self) -> TestEgress {
        TestEgress(self.egress())
    }
}

/// The egress gate as the tool `tester` sees it. Each fetch belongs to a separate call.
pub struct TestEgress(pub Egress);

impl TestEgress {
    pub async fn fetch(
        &self,
        rules: &NetRules,
        request: FetchRequest,
        body: Option<BodyStream>,
    ) -> Result<FetchResponse, OpError> {
        self.fetch_as("tester", rules, request, body).await
    }

    pub async fn fetch_as(
        &self,
        tool: &str,
        rules: &NetRules,
        request: FetchRequest,
        body: Option<BodyStream>,
    ) -> Result<FetchResponse, OpError> {
        let vault = Vault::default();
        self.0.fetch(EgressContext { tool, ..context(rules, &vault, &Connections::default()) }, request, body).await
    }
}

pub fn listed(entries: &[String]) -> NetRules {
    NetRules::read(&NetPermission::Listed(entries.to_vec())).unwrap()
}

pub fn get(url: impl Into<String>) -> FetchRequest {
    FetchRequest { method: "GET".into(), url: url.into(), headers: Vec::new(), redirect: Redirect::Follow }
}

pub async fn text(response: FetchResponse) -> Result<String, OpError> {
    let pieces: Vec<bytes::Bytes> = response.body.try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}
