//! `rcrt open`: the dashboard in a browser, signed in by a link that works once.

use std::process::{Command, Stdio};

use clap::Args;
use rcrt_client::{Client, SignInTicket};
use serde_json::json;
use url::Url;

use crate::config::Config;
use crate::output::Output;

/// With an agent's key: the session of the browser ends with the token that asks for the ticket.
const TOKEN_TTL_SEC: u64 = 12 * 3600;

/// Open the dashboard in the browser, signed in
#[derive(Debug, Args)]
#[command(after_long_help = "\
The link has a ticket that is valid once, for ten minutes. The browser gets a token with the rights of the token that \
this command uses, for at most 12 hours. On a machine without a browser, it prints the link.

Examples:
  rcrt open
  rcrt open --print
  rcrt open --print --server https://tools.example.com")]
pub struct Open {
    /// Print the link, and do not start a browser
    #[arg(long)]
    print: bool,
}

impl Open {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let url = config.server_url()?;
        let client = Client::new(url.clone(), config.credentials()?).with_token_ttl(TOKEN_TTL_SEC);
        let SignInTicket { ticket, expires_in } = client.sign_in_ticket().await?;
        let link = link(url.as_str(), &ticket);
        if output.is_json() {
            return output.json(&json!({"link": link, "expires_in": expires_in}));
        }
        if self.print || !is_opened(&link) {
            return output.line(&link);
        }
        output.line(&format!("Opening {url} in the browser. If nothing opens, use `rcrt open --print`."))
    }
}

/// The address that signs in. The ticket is behind the `#`, which browsers send to no server.
pub(super) fn link(base: &str, ticket: &str) -> String {
    format!("{}/#/sign-in/{ticket}", base.trim_end_matches('/'))
}

/// The same, with a new ticket of the server.
pub(super) async fn new_link(server: &Url, token: String, shown: &str) -> anyhow::Result<String> {
    let client = Client::new(server.clone(), rcrt_client::Credentials::Token(token));
    Ok(link(shown, &client.sign_in_ticket().await?.ticket))
}

/// Starts the browser of the desktop. False if there is none.
// This program ends before the browser, which nobody waits for.
#[allow(clippy::zombie_processes)]
fn is_opened(link: &str) -> bool {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        _ if has_desktop => "xdg-open",
        _ => return false,
    };
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in this terminal must not end the browser.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().is_ok()
}
