//! Cards: read through the egress gate, and read again. A changed card waits.

use std::path::Path;

use chrono::Utc;
use rcrt_a2a_types::CARD_PATH;
use rcrt_breadcrumb::ToolFailure;
use rcrt_breadcrumb::foreign_text::line;
use rcrt_egress::{Connections, Vault};
use url::Url;

use crate::A2a;
use crate::answer::RemoteError;
use crate::card::{self, FoundCard};
use crate::directory::KnownAgent;
use crate::failures::{denied, failed, store_failed};
use crate::remote::{CardWay, GATE_NAME, Remote};

/// Where the card of an agent can be: at the URL itself, or at the well-known path below it. Some
/// servers want a slash.
fn places(url: &Url) -> [String; 2] {
    let is_card = Path::new(url.path()).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let first = if is_card { url.to_string() } else { format!("{}{CARD_PATH}", url.as_str().trim_end_matches('/')) };
    let second = format!("{}/", first.trim_end_matches('/'));
    [first, second]
}

impl A2a {
    /// The card at a URL: that of the card itself, or of the agent.
    pub(crate) async fn read_card(&self, way: &CardWay, url: &Url) -> Result<FoundCard, ToolFailure> {
        let remote = Remote {
            gate: &self.egress,
            tool: GATE_NAME,
            rules: way.rules.clone(),
            vault: Vault::default(),
            connections: Connections::default(),
            origin: Some(way.origin),
            header: None,
            time: self.settings.request_time,
        };
        let [first, second] = places(url);
        let (url, answer) = match remote.card(&first).await {
            Err(RemoteError::Status(404)) if first != second => {
                let answer = remote.card(&second).await;
                (second, answer)
            }
            answer => (first, answer),
        };
        let (text, max_age) = answer.map_err(|error| unreachable_card(&url, &error))?;
        Ok(FoundCard { url, read: card::read(&text).map_err(failed)?, max_age })
    }

    /// Reads an agent's card again, and writes what came of it. A card that differs waits for a
    /// curator, unless the operator has given a well-known agent another URL.
    pub(crate) async fn refresh(&self, known: &KnownAgent, way: &CardWay) -> Result<KnownAgent, ToolFailure> {
        let mut known = known.clone();
        let agent = &mut known.agent;
        let operators = self.well_known(&agent.name).filter(|_| agent.well_known).map(|well_known| &well_known.url);
        let moved = operators.filter(|url| !places(url).contains(&agent.card_url));
        let url = match moved {
            Some(url) => url.clone(),
            None => Url::parse(&agent.card_url).map_err(|error| failed(format!("the card's URL: {error}")))?,
        };
        let found = self.read_card(way, &url).await;
        let now = Utc::now();
        let failure = match found {
            Ok(found) => {
                (agent.last_seen, agent.problem) = (now, None);
                agent.refresh_at = now + self.settings.valid_for(found.max_age);
                let card = found.read.card;
                if moved.is_some() {
                    (agent.card_url, agent.card, agent.pending) = (found.url, card, None);
                } else {
                    agent.pending = (card.card_hash != agent.card.card_hash).then_some(card);
                }
                None
            }
            Err(failure) => {
                agent.problem = Some(line(&failure.message, 500));
                agent.refresh_at = now + self.settings.shortest_refresh;
                Some(failure)
            }
        };
        self.rewrite(&known).await.map_err(store_failed)?;
        failure.map_or(Ok(known), Err)
    }
}

fn unreachable_card(url: &str, error: &RemoteError) -> ToolFailure {
    let message = format!("the card {url} cannot be read: {error}");
    match error {
        RemoteError::Refused(_) => denied(message),
        RemoteError::Network(_) => failed(message).retryable(true),
        RemoteError::Status(status) => failed(message).retryable(*status >= 500),
        RemoteError::Garbage(_) | RemoteError::Agent(_) => failed(message),
    }
}
