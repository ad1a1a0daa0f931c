//! Keeps the cards of the known agents: reads each again when it is time, and those of well-known
//! agents that have no record yet. Any number of runners can do this: the version of a record
//! decides who writes.

use chrono::Utc;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{Host, StoreError};
use rcrt_egress::{NetRules, Origin};
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::directory::{KnownAgent, agents};
use crate::remote::CardWay;
use crate::settings::WellKnown;

/// How many cards are read at the same time.
const WIDTH: usize = 8;

/// Never ends by itself.
pub(crate) async fn run(a2a: &A2a) {
    loop {
        if let Err(error) = check(a2a).await {
            tracing::warn!(%error, "the cards of other agents cannot be checked; retrying");
        }
        tokio::time::sleep(a2a.settings.check_cards).await;
    }
}

async fn check(a2a: &A2a) -> Result<(), StoreError> {
    let known = agents(&*a2a.store).await?;
    let is_new = |agent: &&WellKnown| !known.iter().any(|known| known.has_name(&agent.name));
    let added: Vec<WellKnown> = a2a.settings.well_known.iter().filter(is_new).cloned().collect();
    stream::iter(added).for_each_concurrent(WIDTH, |agent| async move { add(a2a, &agent).await }).await;
    let now = Utc::now();
    let due: Vec<KnownAgent> = known.into_iter().filter(|known| known.agent.refresh_at <= now).collect();
    stream::iter(due).for_each_concurrent(WIDTH, |known| async move { refresh(a2a, &known).await }).await;
    Ok(())
}

async fn add(a2a: &A2a, agent: &WellKnown) {
    let Some(way) = way(&agent.url, None) else { return };
    let added = match a2a.read_card(&way, &agent.url).await {
        Ok(found) => a2a.register(found, agent.name.clone(), None, true).await.map(drop),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = added {
        tracing::warn!(agent = agent.name, error = failure.message, "the card of a well-known agent cannot be read");
    }
}

async fn refresh(a2a: &A2a, known: &KnownAgent) {
    let name = &known.agent.name;
    let url = a2a.well_known(name).filter(|_| known.agent.well_known).map(|well_known| well_known.url.clone());
    let Some(url) = url.or_else(|| Url::parse(&known.agent.card_url).ok()) else { return };
    let Some(way) = way(&url, Some(known.id)) else { return };
    match a2a.refresh(known, &way).await {
        Ok(now) if now.agent.pending.is_some() && now.agent.pending != known.agent.pending => {
            tracing::warn!(agent = name, "an agent changed its card; a curator must accept it (`rcrt a2a accept`)");
        }
        Ok(_) => {}
        Err(failure) => tracing::info!(agent = name, error = failure.message, "the card of an agent cannot be read"),
    }
}

/// Only to the card's own host. The runner knows its tenant, so the log needs no `owner_id`.
fn way(url: &Url, record: Option<Uuid>) -> Option<CardWay> {
    let rules = NetRules::only(Host::of(url)?, url.port_or_known_default()?);
    Some(CardWay { rules, origin: Origin { owner_id: Uuid::nil(), agent_id: None, tool_id: record, call: None } })
}
