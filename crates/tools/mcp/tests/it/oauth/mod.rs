//! Logins, and what runners do with the tokens.

mod issuer;

use std::sync::Arc;

use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, ErrorCode, FetchRequest, NewSecret, Redirect, SecretChanges, schema_names,
};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Vault};
use rcrt_mcp::oauth::{Gate, Login, LoginOptions, OAuthError, Tokens};
use rcrt_mcp::{Auth, ServerConfig, ServerState, Transport};
use rcrt_test_servers::network::{Network, listed};
use rcrt_test_servers::service::Service;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::fixture::{Fixture, Watch, http};
use crate::server::{Era, Server};
use issuer::{Fault, Issuer};

struct World {
    server: Server,
    issuer: Issuer,
    /// Must not be reached.
    inner: Service,
    network: Network,
    egress: Egress,
    url: Url,
}

impl World {
    async fn new(fault: Fault) -> Self {
        let (server, inner) = (Server::new(Era::Legacy).await, Service::ok().await);
        let issuer = Issuer::protecting(&server, fault, inner.port).await;
        let network =
            Network::new().inside(&format!("mcp.test:{}", server.port)).inside(&format!("as.test:{}", issuer.port));
        let url = Url::parse(&format!("http://mcp.test:{}/mcp", server.port)).unwrap();
        let egress = network.egress();
        Self { server, issuer, inner, network, egress, url }
    }

    /// A person logs in.
    async fn login(&self, options: &LoginOptions) -> Result<Tokens, OAuthError> {
        let gate = Gate { egress: &self.egress, server: "docs", url: &self.url, origin: None };
        let redirect = Url::parse("http://127.0.0.1:7777/callback").unwrap();
        let mut login = Login::begin(gate, redirect, options).await?;
        loop {
            let attempt = login.attempt();
            let response = self.browse(attempt.url.as_str()).await;
            let tokens = login.finish(&attempt, &response).await?;
            if login.is_accepted(&tokens).await? {
                return Ok(tokens);
            }
        }
    }

    /// What a browser is sent to.
    async fn browse(&self, url: &str) -> Url {
        let rules = listed(&[format!("as.test:{}", self.issuer.port)]);
        let (vault, connections) = (Vault::default(), Connections::default());
        let (rules, vault, connections): (&NetRules, &Vault, &Connections) = (&rules, &vault, &connections);
        let context = EgressContext { tool: "browser", rules, vault, connections, origin: None, observer: None };
        let request =
            FetchRequest { method: "GET".into(), url: url.into(), headers: Vec::new(), redirect: Redirect::Manual };
        let response = self.egress.fetch(context, request, None).await.unwrap();
        let location = response.headers.iter().find(|(name, _)| name == "location").expect("it redirects");
        Url::parse(&location.1).unwrap()
    }
}

/// Stores the tokens, as `rcrt mcp login` does, and waits until the server is connected.
async fn connect(fixture: &Fixture, port: u16, tokens: &Tokens) -> (Uuid, Uuid, Watch) {
    let mut watch = fixture.watch().await;
    let store = &fixture.tenant.breadcrumbs;
    let id = fixture.create(&with_oauth(port)).await;
    watch.status(|status| status.error.as_ref().is_some_and(|error| error.contains("rcrt mcp login docs"))).await;
    let secret = NewSecret { hosts: vec!["mcp.test".into()], ..NewSecret::new("TOKENS", tokens.value().unwrap()) };
    let secret = store.create_secret(secret).await.unwrap().id;
    store.grant_secret(secret, id).await.unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    (id, secret, watch)
}

fn with_oauth(port: u16) -> ServerConfig {
    let mut config = http("docs", port);
    if let Transport::Http { auth, .. } = &mut config.transport {
        *auth = Some(Auth::OAuth { secret: "TOKENS".into() });
    }
    config
}

async fn version_of(store: &Arc<dyn Breadcrumbs>, secret: Uuid) -> i64 {
    store.secrets().await.unwrap().into_iter().find(|known| known.id == secret).unwrap().version
}

#[tokio::test]
async fn a_login_gets_tokens_that_runners_use_and_renew() {
    let world = World::new(Fault::None).await;
    let tokens = world.login(&LoginOptions::default()).await.unwrap();
    assert_eq!(tokens.scopes(), ["files:read", "offline_access"]);
    assert_eq!(world.issuer.registered()[0]["redirect_uris"], json!(["http://127.0.0.1:7777/callback"]));
    let fixture = Fixture::with(world.network).await;
    let (_, secret, mut watch) = connect(&fixture, world.server.port, &tokens).await;
    assert_eq!(fixture.run("docs__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    let sent = world.server.seen("tools/call").pop().unwrap().1;
    assert_eq!(sent.as_deref(), Some("Bearer the-access-token-1"));

    // The call whose token was revoked gets the result of its repetition with a new one.
    world.issuer.revoke();
    assert_eq!(fixture.run("docs__echo", json!({"text": "again"})).await.unwrap(), "again");
    let refreshes: Vec<_> =
        world.issuer.forms().into_iter().filter(|form| form["grant_type"] == "refresh_token").collect();
    assert_eq!(refreshes.len(), 1);
    assert_eq!(
        (refreshes[0]["client_id"].as_str(), refreshes[0]["refresh_token"].as_str()),
        ("registered", "the+refresh/token=1")
    );
    // Claimed, then renewed.
    assert_eq!(version_of(&fixture.tenant.breadcrumbs, secret).await, 3);
    let stored = fixture.tenant.breadcrumbs.decrypt_secret(secret, "a test", None).await.unwrap();
    assert_eq!(Tokens::read(&stored).unwrap().access_token(), "the-access-token-2");

    // A server that returns the token does not get it into a result or a record.
    let [access, refresh] = world.issuer.valid();
    let echoed = fixture.run("docs__echo", json!({"text": format!("{access} {refresh}")})).await.unwrap();
    assert_eq!(echoed, "[secret TOKENS] [secret TOKENS_0]");

    // Without a refresh token, a person must log in again.
    world.issuer.forget();
    let failure = fixture.run("docs__echo", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    assert!(failure.message.contains("rcrt mcp login"), "{failure}");
    let status = watch.status(|status| status.state == ServerState::Error).await;
    let error = status.error.unwrap();
    assert!(!error.contains("token=") && !error.contains("the-access-token"), "{error}");
    fixture.stop().await;
}

#[tokio::test]
async fn tokens_that_expired_are_renewed_before_they_are_used_and_by_one_runner() {
    let world = World::new(Fault::None).await;
    let tokens = world.login(&LoginOptions::default()).await.unwrap();
    let mut stored: serde_json::Value = serde_json::from_str(&tokens.value().unwrap()).unwrap();
    stored["expires_at"] = 1.into();
    let expired = Tokens::read(&stored.to_string()).unwrap();
    let fixture = Fixture::with(world.network).await;
    let (_, secret, _watch) = connect(&fixture, world.server.port, &expired).await;
    assert!(
        world.server.seen("initialize").iter().all(|(_, sent)| sent.as_deref() == Some("Bearer the-access-token-2"))
    );
    assert_eq!(version_of(&fixture.tenant.breadcrumbs, secret).await, 3);
    fixture.stop().await;
}

#[tokio::test]
async fn tokens_are_sent_to_no_other_server() {
    let world = World::new(Fault::None).await;
    let tokens = world.login(&LoginOptions::default()).await.unwrap();
    let other = Server::new(Era::Legacy).await;
    let fixture = Fixture::with(world.network.inside(&format!("mcp.test:{}", other.port))).await;
    let (id, _, mut watch) = connect(&fixture, world.server.port, &tokens).await;
    let record = fixture.tenant.breadcrumbs.get(id).await.unwrap();
    let changes = BreadcrumbChanges { context: Some(with_oauth(other.port).context()), ..BreadcrumbChanges::default() };
    fixture.tenant.breadcrumbs.update(id, record.version, changes).await.unwrap();
    let status = watch.status(|status| status.state == ServerState::Error).await;
    assert!(status.error.unwrap().contains("no tokens for this URL"));
    assert!(other.seen("initialize").is_empty() && other.seen("server/discover").is_empty());
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_that_needs_another_scope_says_which() {
    let world = World::new(Fault::None).await;
    let tokens = world.login(&LoginOptions::default()).await.unwrap();
    let fixture = Fixture::with(world.network).await;
    let (_, secret, _watch) = connect(&fixture, world.server.port, &tokens).await;
    let failure = fixture.run("docs__fail", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    assert!(failure.message.contains("files:write") && failure.message.contains("rcrt mcp login"), "{failure}");
    // The token is good, and is not renewed.
    assert_eq!(fixture.run("docs__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    assert_eq!(version_of(&fixture.tenant.breadcrumbs, secret).await, 1);
    fixture.stop().await;
}

#[tokio::test]
async fn another_login_replaces_the_tokens() {
    let world = World::new(Fault::None).await;
    let tokens = world.login(&LoginOptions::default()).await.unwrap();
    let more = LoginOptions { scopes: vec!["files:write".into()], ..LoginOptions::default() };
    let again = world.login(&more).await.unwrap();
    assert_eq!(again.scopes(), ["files:write", "offline_access"]);
    let fixture = Fixture::with(world.network).await;
    let store = &fixture.tenant.breadcrumbs;
    let mut watch = fixture.watch().await;
    let id = fixture.create(&with_oauth(world.server.port)).await;
    let secret = NewSecret::new("TOKENS", tokens.value().unwrap());
    let secret = store.create_secret(secret).await.unwrap().id;
    let changes =
        SecretChanges { hosts: Some(vec!["mcp.test".into()]), ..SecretChanges::value(again.value().unwrap()) };
    store.update_secret(secret, changes).await.unwrap();
    store.grant_secret(secret, id).await.unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    // The tool that needs the scope is reached, and fails by itself.
    assert_eq!(fixture.run("docs__fail", json!({"text": "it"})).await.unwrap_err().message, "cannot do it");
    let records = fixture.records(schema_names::MCP_STATUS).await;
    assert!(!json!(records).to_string().contains("the-access-token"), "{records:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn the_client_is_registered_by_a_person_by_a_document_or_by_itself() {
    let document = Url::parse("https://tools.example.com/client.json").unwrap();
    let own = LoginOptions {
        client_id: Some("own".into()),
        client_secret: Some("a client secret".into()),
        ..LoginOptions::default()
    };
    let by_document = LoginOptions { client_metadata: Some(document.clone()), ..LoginOptions::default() };
    for (options, client, registrations) in
        [(own, "own", 0), (by_document, document.as_str(), 0), (LoginOptions::default(), "registered", 1)]
    {
        let world = World::new(Fault::None).await;
        let tokens = world.login(&options).await.unwrap();
        assert_eq!(world.issuer.clients(), [client]);
        assert_eq!(world.issuer.registered().len(), registrations);
        // A secret goes into a header.
        assert_eq!(world.issuer.forms()[0].contains_key("client_id"), options.client_secret.is_none());
        assert!(!format!("{tokens:?}").contains("the-access-token"));
    }
}

#[tokio::test]
async fn a_server_that_misbehaves_gets_no_login() {
    for (fault, expected, forms) in [
        (Fault::OtherIssuer, "that of another one, http://other.test", 0),
        (Fault::OtherIss, "another authorization server", 0),
        (Fault::NoIss, "does not name its authorization server", 0),
        (Fault::TwiceIss, "iss more than once", 0),
        (Fault::OtherState, "not that of this login", 0),
        (Fault::NoPkce, "PKCE", 0),
        (Fault::PlainPkce, "PKCE", 0),
        (Fault::Huge, "more than 131072 bytes", 0),
        (Fault::Redirect, "publishes metadata", 0),
        (Fault::OtherResource, "another resource", 0),
        (Fault::PrivateEndpoint, "127.0.0.1", 0),
        (Fault::TokenRedirect, "HTTP 302", 1),
        (Fault::Script, "the authorization endpoint is javascript:", 0),
        (Fault::NoRegistration, "--client-id", 0),
        (Fault::ShortToken, "cannot be used", 1),
        (Fault::OtherTokenType, "another type than Bearer", 1),
        (Fault::Echo, "HTTP 400", 1),
        (Fault::Denied, "access_denied", 0),
        (Fault::Never, "does not accept the token", 1),
        (Fault::EndlessScopes, "asks again", 3),
        (Fault::SameScope, "asks again", 1),
    ] {
        let world = World::new(fault).await;
        let error = world.login(&LoginOptions::default()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{fault:?}: {error}");
        assert!(world.inner.seen().is_empty(), "{fault:?}");
        assert_eq!(world.issuer.forms().len(), forms, "{fault:?}");
        // Nothing that only the two know.
        for form in world.issuer.forms() {
            let secrets = ["code", "code_verifier"].map(|name| form[name].as_str());
            assert!(secrets.iter().all(|secret| !error.contains(secret)), "{fault:?}: {error}");
        }
    }
}

#[tokio::test]
async fn the_document_of_a_client_must_be_at_an_https_url() {
    let (egress, url) = (Network::new().egress(), Url::parse("https://mcp.test/mcp").unwrap());
    let gate = Gate { egress: &egress, server: "docs", url: &url, origin: None };
    let document = LoginOptions {
        client_metadata: Some(Url::parse("http://tools.example.com/client.json").unwrap()),
        ..LoginOptions::default()
    };
    let redirect = Url::parse("http://127.0.0.1:7777/callback").unwrap();
    let error = Login::begin(gate, redirect, &document).await.err().unwrap().to_string();
    assert!(error.contains("https URL with a path"), "{error}");
}
