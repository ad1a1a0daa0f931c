//! `rcrt mcp login`: gets tokens for an MCP server from its authorization server, and keeps them as
//! a secret.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{BreadcrumbChanges, Breadcrumbs, NewSecret, SecretChanges};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_mcp::oauth::{Attempt, Gate, Login as Flow, LoginOptions, OAuthError, Tokens};
use rcrt_mcp::{Auth, ServerConfig, Transport};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;
use uuid::Uuid;

use super::mcp::find;
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::host_options::{DeniedHosts, PrivateHosts};
use crate::output::Output;

/// How long a person has to log in.
const PERSON: Duration = Duration::from_mins(10);
/// How long a browser has to send its request.
const BROWSER: Duration = Duration::from_secs(5);
/// The most bytes of the head of that request.
const MAX_HEAD: usize = 16 * 1024;
const PATH: &str = "/callback";

/// Log in to an MCP server with OAuth
#[derive(Debug, Args)]
#[command(after_long_help = "\
Shows a URL of the server's authorization server. Open it in a browser on this machine: it sends the browser back to \
this command, at 127.0.0.1. The tokens are stored as a secret that is granted to the server, and runners renew them.

The authorization server learns about this program by --client-id, by --client-metadata, or else by dynamic \
registration. From another machine, forward the port of --port, such as with `ssh -L`.

Examples:
  rcrt mcp login docs
  rcrt mcp login docs --scope files:read --scope files:write
  rcrt mcp login docs --client-id 0oa1b2c3 --client-secret-file secret.txt --port 7777")]
pub struct Login {
    name: String,
    /// The id of a client that you registered at the authorization server
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A file with the secret of that client
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    /// The https URL of a document that describes this client, for servers that support that
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    client_metadata: Option<Url>,
    /// Ask for this scope, and not for those that the server names. Can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The port at 127.0.0.1 that the browser is sent back to [default: a free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The secret for the tokens [default: MCP_OAUTH_ and the server's name]
    #[arg(long, value_name = "SECRET")]
    secret: Option<String>,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    #[command(flatten)]
    denied_hosts: DeniedHosts,
}

impl Login {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let store = connection::store(config)?;
        let server = find(&*store, &self.name).await?;
        let (id, server) = (server.id, server.config);
        let Transport::Http { url, .. } = &server.transport else {
            fail!(Usage, "{} is a program; only a server with a URL has a login", server.name);
        };
        let secret = self.secret.clone().unwrap_or_else(|| secret_name(&server.name));
        check_secret(&*store, &secret, id).await?;
        let options = self.options()?;
        let egress = Egress::new(EgressOptions {
            allowed_private: self.private_hosts.allowed.clone(),
            denied: self.denied_hosts.shared(),
            ..EgressOptions::default()
        })?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port.unwrap_or_default()));
        let listener = listener.await.map_err(|error| {
            Failure::Usage(format!("--port: cannot listen at 127.0.0.1: {error}; name another port"))
        })?;
        let redirect = Url::parse(&format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port()))?;
        let gate = Gate { egress: &egress, server: &server.name, url, origin: None };
        let mut flow = Flow::begin(gate, redirect, &options).await.map_err(|error| failure(&error))?;
        let tokens = loop {
            let attempt = flow.attempt();
            show(&flow, &attempt, &server.name);
            let answered = timeout(PERSON, answer(&listener, &attempt)).await;
            let response = answered.context("the login was not completed within ten minutes")??;
            let tokens = flow.finish(&attempt, &response).await.map_err(|error| failure(&error))?;
            if flow.is_accepted(&tokens).await.map_err(|error| failure(&error))? {
                break tokens;
            }
            output.note("The server asks for further scopes.");
        };
        keep(&*store, (id, server.clone()), &secret, &tokens).await?;
        output.either(
            &json!({"name": server.name, "secret": secret, "scopes": tokens.scopes()}),
            &format!("{} uses the tokens in the secret {secret}; see `rcrt mcp show {0}`", server.name),
        )
    }

    fn options(&self) -> anyhow::Result<LoginOptions> {
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Failure::Usage(format!("--client-secret-file: {} cannot be read: {error}", file.display()))
            })?;
            anyhow::Ok(text.trim().to_owned())
        };
        Ok(LoginOptions {
            client_id: self.client_id.clone(),
            client_secret: self.client_secret_file.as_ref().map(read).transpose()?,
            client_metadata: self.client_metadata.clone(),
            scopes: self.scopes.clone(),
        })
    }
}

fn failure(error: &OAuthError) -> anyhow::Error {
    match error {
        OAuthError::Unreachable(_) => Failure::Unreachable(error.to_string()).into(),
        OAuthError::Unusable(_) | OAuthError::Denied(_) => Failure::Refused(error.to_string()).into(),
    }
}

fn secret_name(server: &str) -> String {
    let plain: String =
        server.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    format!("MCP_OAUTH_{plain}")
}

/// Refuses a secret that is in use for something else.
async fn check_secret(store: &dyn Breadcrumbs, name: &str, record: Uuid) -> anyhow::Result<()> {
    let known = store.secrets().await?;
    match known.iter().find(|secret| secret.name == name) {
        Some(secret) if !secret.is_granted_to(record) => {
            let message =
                format!("there is already a secret {name} for something else; name another one with --secret");
            Err(Failure::Usage(message).into())
        }
        _ => Ok(()),
    }
}

/// Asks the person. It is on stderr, so that it is seen with every output.
fn show(flow: &Flow<'_>, attempt: &Attempt, server: &str) {
    let scopes = if flow.scopes().is_empty() { "its default".to_owned() } else { flow.scopes().join(" ") };
    eprintln!("The authorization server of {server} is {}. The scopes are: {scopes}.", flow.issuer());
    eprintln!("Open this URL in a browser on this machine:\n\n  {}\n", attempt.url);
}

/// Waits for the request of a browser that answers the attempt, and returns its URL.
async fn answer(listener: &TcpListener, attempt: &Attempt) -> anyhow::Result<Url> {
    loop {
        let (stream, _) = listener.accept().await.context("the browser cannot connect")?;
        // Any page can send a browser here. Only the state of the attempt counts.
        if let Ok(Some(url)) = timeout(BROWSER, serve(stream, attempt)).await {
            return Ok(url);
        }
    }
}

async fn serve(mut stream: TcpStream, attempt: &Attempt) -> Option<Url> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).await.ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&piece[..length]);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let target = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let url = target.and_then(|target| Url::parse("http://127.0.0.1").ok()?.join(target).ok());
    let url = url.filter(|url| url.path() == PATH && attempt.is_answered_by(url));
    let (status, text) = match url {
        Some(_) => ("200 OK", "You can close this page. The command shows the result.\n"),
        None => ("404 Not Found", "This is not the response to a login.\n"),
    };
    let headers = "content-type: text/plain\r\nreferrer-policy: no-referrer\r\nconnection: close";
    let response = format!("HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    // The login goes on, even if the browser does not read it.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    url
}

/// Stores the tokens, grants them to the server, and lets it use them.
async fn keep(
    store: &dyn Breadcrumbs,
    (id, mut server): (Uuid, ServerConfig),
    name: &str,
    tokens: &Tokens,
) -> anyhow::Result<()> {
    let value = tokens.value().map_err(|error| failure(&error))?;
    let Transport::Http { url, auth, .. } = &mut server.transport else { return Ok(()) };
    let hosts = url.host_str().map(|host| url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")));
    let hosts: Vec<String> = hosts.into_iter().collect();
    *auth = Some(Auth::OAuth { secret: name.to_owned() });
    let known = store.secrets().await?.into_iter().find(|secret| secret.name == name);
    let secret = match known {
        Some(secret) => {
            let changes = SecretChanges { hosts: Some(hosts), ..SecretChanges::value(value) };
            store.update_secret(secret.id, changes).await?
        }
        None => store.create_secret(NewSecret { hosts, ..NewSecret::new(name, value) }).await?,
    };
    store.grant_secret(secret.id, id).await?;
    // A new version, even with the same content: the runners connect again at once.
    let record = store.get(id).await?;
    let changes = BreadcrumbChanges { context: Some(server.context()), ..BreadcrumbChanges::default() };
    store.update(id, record.version, changes).await?;
    Ok(())
}
