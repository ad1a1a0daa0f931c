//! The options that every subcommand shares: the data folder, the server and the identity, and the
//! output format.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use url::Url;
use uuid::Uuid;

use crate::exit::{Failure, fail};

/// The default address of `up` and `server`.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8081";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Config {
    /// The data folder: database, keys and token
    #[arg(long, env = "RCRT_DATA", default_value = ".rcrt", global = true, value_name = "DIR")]
    pub data: PathBuf,

    /// The server to use [default: the one last started on the data folder, else
    /// http://127.0.0.1:8081]
    #[arg(long, env = "RCRT_SERVER", global = true, value_name = "URL", value_parser = server)]
    pub server: Option<Url>,

    /// The access token [default: the one in <data>/token, for a server on this machine]
    #[arg(long, env = "RCRT_TOKEN", hide_env_values = true, global = true)]
    pub token: Option<String>,

    /// With --agent-id and --agent-key: the tenant of the agent to act as
    #[arg(long, env = "RCRT_OWNER_ID", global = true, value_name = "UUID", requires = "agent_key", value_parser = id)]
    pub owner_id: Option<Uuid>,

    /// The agent to act as
    #[arg(long, env = "RCRT_AGENT_ID", global = true, value_name = "UUID", requires = "agent_key", value_parser = id)]
    pub agent_id: Option<Uuid>,

    /// The key of the agent. Use the variable: other users of the machine can see the option
    #[arg(
        long,
        env = "RCRT_AGENT_KEY",
        hide_env_values = true,
        global = true,
        value_name = "KEY",
        requires_all = ["owner_id", "agent_id"]
    )]
    pub agent_key: Option<String>,

    /// The output format: text for people, json for programs
    #[arg(long, short = 'o', env = "RCRT_OUTPUT", default_value = "text", global = true)]
    pub output: Format,

    /// What to log, such as `info` or `rcrt_runner=debug,warn` [default: info for up, server and
    /// runner, else warn]
    #[arg(long, env = "RCRT_LOG", global = true, value_name = "FILTER")]
    pub log: Option<String>,

    /// The format of the log on stderr
    #[arg(long, env = "RCRT_LOG_FORMAT", default_value = "text", global = true)]
    pub log_format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Parses an address to listen on: `127.0.0.1:8081`, or a name of this machine such as
/// `localhost:8081`.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let found =
        text.to_socket_addrs().map_err(|error| format!("{error}; expected an address such as 127.0.0.1:8081"))?;
    // A name often has IPv4 and IPv6 addresses, and clients try 127.0.0.1 first.
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found
        .first()
        .copied()
        .ok_or_else(|| "the name has no address; expected an address such as 127.0.0.1:8081".to_owned())
}

/// Parses the id of a record, an agent, a call or a token.
pub fn id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| "is not an id; expected a UUID such as 0198c0de-0000-7000-8000-000000000001".to_owned())
}

/// Parses the URL of a server.
pub fn server(text: &str) -> Result<Url, String> {
    let read = |text: &str| Url::parse(text).ok().filter(|url| is_http(url) && url.host().is_some());
    read(text).ok_or_else(|| {
        let meant = read(&format!("http://{text}")).filter(|_| !text.contains("://"));
        let meant = meant.map_or_else(String::new, |_| format!("; did you mean http://{text}?"));
        format!("is not the URL of a server; expected http://HOST:PORT or https://HOST{meant}")
    })
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

impl Config {
    /// The file with the first agent's token.
    pub fn token_file(&self) -> PathBuf {
        self.data.join("token")
    }

    /// The file with the token of a runner on the server's machine.
    pub fn runner_token_file(&self) -> PathBuf {
        self.data.join("runner.token")
    }

    /// The file with the address of the server that was last started on this folder.
    pub fn address_file(&self) -> PathBuf {
        self.data.join("address")
    }

    /// The base URL of the server to use.
    pub fn server_url(&self) -> anyhow::Result<Url> {
        if let Some(url) = &self.server {
            return Ok(url.clone());
        }
        match self.folders_server() {
            Some(url) => Ok(url),
            None => Url::parse(&format!("http://{DEFAULT_LISTEN}")).context("the default server address"),
        }
    }

    /// The server that was last started on the data folder.
    fn folders_server(&self) -> Option<Url> {
        let written = std::fs::read_to_string(self.address_file()).ok()?;
        Url::parse(written.trim()).ok()
    }

    pub fn credentials(&self) -> anyhow::Result<rcrt_client::Credentials> {
        self.credentials_or(&self.token_file())
    }

    /// The credentials from the options, else the token in `file` of the data folder.
    pub fn credentials_or(&self, file: &Path) -> anyhow::Result<rcrt_client::Credentials> {
        if let (Some(owner_id), Some(agent_id), Some(key)) = (self.owner_id, self.agent_id, &self.agent_key) {
            return Ok(rcrt_client::Credentials::AgentKey { owner_id, agent_id, key: key.clone() });
        }
        Ok(rcrt_client::Credentials::Token(self.token(file)?))
    }

    /// Says how to get a token in place of one that the server refused. `None` with an agent's key:
    /// the client gets tokens with it.
    pub fn new_token_hint(&self) -> Option<String> {
        match (&self.agent_key, &self.token) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(
                "get a new token with the agent's key: set RCRT_OWNER_ID, RCRT_AGENT_ID and RCRT_AGENT_KEY in place of \
                 --token (RCRT_TOKEN)"
                    .into(),
            ),
            (None, None) => Some(format!(
                "start the server again, which writes a new token to the data folder {}, or use the key of an agent \
                 (RCRT_OWNER_ID, RCRT_AGENT_ID and RCRT_AGENT_KEY)",
                self.data.display()
            )),
        }
    }

    fn token(&self, file: &Path) -> anyhow::Result<String> {
        if let Some(token) = &self.token {
            if token.trim().is_empty() {
                fail!(
                    Usage,
                    "the token in --token or RCRT_TOKEN is empty; leave it out to use the one in the data folder"
                );
            }
            return Ok(token.trim().to_owned());
        }
        let server = self.server_url()?;
        // The folder's token is for a server of this machine. Do not send it to another one.
        if !is_loopback(&server) && self.folders_server().as_ref() != Some(&server) {
            fail!(Refused, "{server} needs a token; set --token (or RCRT_TOKEN), or an agent and its key");
        }
        read_token(file)
    }
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Err(Failure::Refused(format!(
            "the token file {} is empty; start the server again, which writes it, or set --token",
            file.display()
        ))
        .into()),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::Refused(format!(
            "there is no token in {}; start `rcrt up` there, name its folder with --data, or set --token",
            file.display()
        ))
        .into()),
        Err(error) => Err(Failure::Refused(format!("the token in {} cannot be read: {error}", file.display())).into()),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
