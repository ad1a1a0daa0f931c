//! The known agents of a tenant: its records, and the operator's well-known ones.

use rcrt_a2a_types::CARD_PATH;
use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, HostEntry, MAX_PAGE, StoreError, ToolFailure};
use rcrt_egress::{Connections, HeldSecret, NetRules, Origin, Vault};
use rcrt_executors::ToolCall;
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::agent::{AGENT_SCHEMA, AgentRecord};
use crate::card::{self, ReadCard};
use crate::failures::{denied, failed, from_store, invalid};
use crate::remote::{Remote, RemoteError};
use crate::settings::WellKnown;

/// The name of a well-known agent's header in the vault.
const OPERATORS: &str = "A2A_HEADER";

/// A known agent, with its record.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub id: Uuid,
    pub version: i64,
    pub agent: AgentRecord,
}

/// All agents with a record, by name. Of two with one name the older one counts.
pub(crate) async fn all(store: &dyn Breadcrumbs) -> Result<Vec<Known>, StoreError> {
    let query = BreadcrumbQuery { limit: MAX_PAGE, ..BreadcrumbQuery::of_schema(AGENT_SCHEMA) };
    let mut known: Vec<Known> = Vec::new();
    for row in store.list(&query).await?.into_iter().filter(|row| row.owner_id.is_none()) {
        match AgentRecord::read(&row.context.unwrap_or_default()) {
            Ok(agent) => known.push(Known { id: row.id, version: row.version, agent }),
            Err(error) => tracing::warn!(record = %row.id, %error, "a record of an agent cannot be read"),
        }
    }
    known.sort_by(|a, b| (a.agent.name.to_lowercase(), a.id).cmp(&(b.agent.name.to_lowercase(), b.id)));
    known.dedup_by(|later, first| later.agent.name.eq_ignore_ascii_case(&first.agent.name));
    Ok(known)
}

impl A2a {
    pub(crate) fn well_known(&self, name: &str) -> Option<&WellKnown> {
        self.settings.well_known.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The agent of this name. A well-known one without a record gets one, with its present card.
    pub(crate) async fn find(&self, call: &ToolCall, name: &str) -> Result<Known, ToolFailure> {
        let store = &*call.breadcrumbs;
        let known = all(store).await.map_err(from_store)?;
        if let Some(found) = known.iter().find(|known| known.agent.name.eq_ignore_ascii_case(name)) {
            return Ok(found.clone());
        }
        if let Some(well_known) = self.well_known(name) {
            let read = self.read_card(call, &well_known.url).await?;
            return self.register(call, read, well_known.name.clone(), None, true).await;
        }
        let mut names: Vec<&str> = known.iter().map(|known| known.agent.name.as_str()).collect();
        names.extend(self.settings.well_known.iter().map(|known| known.name.as_str()));
        names.sort_unstable();
        names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
        Err(invalid("agent_name", format!("there is no agent {name:?}; the known agents are: {names}")))
    }

    /// Writes the record of an agent whose card was read.
    pub(crate) async fn register(
        &self,
        call: &ToolCall,
        (card_url, read): (String, ReadCard),
        name: String,
        auth: Option<crate::Auth>,
        well_known: bool,
    ) -> Result<Known, ToolFailure> {
        if !crate::agent::is_name(&name) {
            return Err(invalid("name", format!("{}; the card says {:?}", crate::agent::NAME_RULE, read.name)));
        }
        let agent = AgentRecord {
            name,
            card_url,
            card: read.card,
            well_known,
            auth,
            last_seen: chrono::Utc::now(),
            pending: None,
            accepted_hash: None,
        };
        let created = call.breadcrumbs.create(agent.record(), None).await.map_err(from_store)?;
        Ok(Known { id: created.id, version: created.version, agent })
    }

    /// Writes an agent's record again.
    pub(crate) async fn rewrite(&self, call: &ToolCall, known: &Known) -> Result<(), ToolFailure> {
        let changes = BreadcrumbChanges { context: Some(known.agent.context()), ..BreadcrumbChanges::default() };
        call.breadcrumbs.update(known.id, known.version, changes).await.map_err(from_store)?;
        Ok(())
    }

    /// The card at a URL: that of the card itself, or of the agent. Some servers want a slash.
    pub(crate) async fn read_card(&self, call: &ToolCall, url: &Url) -> Result<(String, ReadCard), ToolFailure> {
        let name = &call.definition.name;
        let rules = rules_of(call)?;
        let remote = Remote {
            gate: &self.egress,
            tool: name,
            rules,
            vault: Vault::default(),
            connections: Connections::default(),
            origin: Some(Origin::from(call)),
            header: None,
            time: self.settings.request_time,
        };
        let is_card = url.path().trim_end_matches('/').ends_with(".json");
        let first =
            if is_card { url.to_string() } else { format!("{}{CARD_PATH}", url.as_str().trim_end_matches('/')) };
        let (at, text) = match remote.card(&first).await {
            Err(RemoteError::Status(404)) if !first.ends_with('/') => {
                let second = format!("{first}/");
                let text = remote.card(&second).await;
                (second, text)
            }
            text => (first, text),
        };
        let text = text.map_err(|error| unreachable_card(&at, &error))?;
        Ok((at, card::read(&text).map_err(failed)?))
    }

    /// The way to an agent. `tool_id`: the record of `invoke_agent`, which must hold the grant of
    /// the agent's secret. The error is a sentence.
    pub(crate) async fn remote<'a>(
        &'a self,
        store: &dyn Breadcrumbs,
        agent: &AgentRecord,
        rules: NetRules,
        tool_id: Uuid,
        origin: Origin,
    ) -> Result<Remote<'a>, ToolFailure> {
        let (secret, header) = match (&agent.auth, self.well_known(&agent.name).filter(|_| agent.well_known)) {
            (Some(auth), _) => (Some(held(store, &auth.secret, tool_id).await?), Some(auth.header.clone())),
            (None, Some(WellKnown { header: Some((header, value)), url, .. })) => {
                (Some(operators(value, url)?), Some(header.clone()))
            }
            _ => (None, None),
        };
        let name = secret.as_ref().map(|secret: &HeldSecret| secret.name.clone()).unwrap_or_default();
        let vault = Vault::new(secret.into_iter().collect()).map_err(|error| failed(error.to_string()))?;
        let handle = vault.handle(&name).map(str::to_owned);
        let is_bearer = |header: &str| header.eq_ignore_ascii_case("authorization") && name != OPERATORS;
        let header = header.zip(handle).map(|(header, handle)| {
            let value = if is_bearer(&header) { format!("Bearer {handle}") } else { handle };
            (header, value)
        });
        let (gate, time) = (&*self.egress, self.settings.request_time);
        let origin = Some(origin);
        Ok(Remote {
            gate,
            tool: "invoke_agent",
            rules,
            vault,
            connections: Connections::default(),
            origin,
            header,
            time,
        })
    }
}

/// The hosts that the tool can reach, by its own definition.
pub(crate) fn rules_of(call: &ToolCall) -> Result<NetRules, ToolFailure> {
    NetRules::read(&call.definition.permissions.net).map_err(|error| failed(format!("permissions.net: {error}")))
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

/// A secret that is granted to the tool. Its use is audited.
async fn held(store: &dyn Breadcrumbs, name: &str, tool_id: Uuid) -> Result<HeldSecret, ToolFailure> {
    let secrets = store.secrets().await.map_err(from_store)?;
    let ungranted = || {
        denied(format!(
            "the secret {name:?} of the agent does not exist or is not granted to invoke_agent; a curator can do so with \
             rcrt secret grant {name} invoke_agent"
        ))
    };
    let secret = secrets.into_iter().find(|secret| secret.name == name && secret.is_granted_to(tool_id));
    let secret = secret.ok_or_else(ungranted)?;
    let value = match store.decrypt_secret(secret.id, "a request to another agent", Some(tool_id)).await {
        Ok(value) => value,
        Err(StoreError::Forbidden(_) | StoreError::NotFound { .. }) => return Err(ungranted()),
        Err(error) => return Err(from_store(error)),
    };
    let hosts: Result<Vec<HostEntry>, _> = secret.hosts.iter().map(|host| HostEntry::parse(host)).collect();
    let hosts = hosts.map_err(|error| denied(format!("the secret {name:?}: {error}")))?;
    Ok(HeldSecret { name: secret.name, value, hosts, readable: false })
}

/// The header of a well-known agent, for its own host.
fn operators(value: &str, url: &Url) -> Result<HeldSecret, ToolFailure> {
    let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let host = HostEntry::parse(&host).map_err(|error| failed(error.to_string()))?;
    Ok(HeldSecret { name: OPERATORS.into(), value: value.to_owned(), hosts: vec![host], readable: false })
}
