//! The services that fit a question: A2A agents, MCP servers and families of tools.

use std::collections::BTreeMap;

use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{Registration, ToolSource};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::index::{Index, Text};
use crate::meaning::Nearness;
use crate::question::Question;
use crate::scoring;
use crate::service_records::{Agent, Server, ServiceRecords, Skill};
use crate::tools::{CATEGORY, Ranked, ToolSearch};

/// The most services of one search.
pub const MAX_SERVICES: usize = 5;
/// How many tools or skills of a service are named.
const TOP: usize = 3;
/// The longest summary and the longest id, in characters.
const MAX_SUMMARY: usize = 300;
const MAX_ID: usize = 200;
/// The tool that calls A2A agents. An asker that cannot call it finds no agents.
const INVOKE_AGENT: &str = "invoke_agent";

/// What kind of service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// Another agent. `invoke_agent` calls it.
    A2a,
    /// An MCP server. Its tools are called by their names, `<server>__<tool>`.
    Mcp,
    /// Tools of this installation with one category, or of one source.
    Family,
}

/// A service that fits a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundService {
    /// The name of the agent, of the MCP server or of the family.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: ServiceKind,
    /// What it is for.
    pub summary: String,
    /// From 0 to 1: how well the service fits. Scores of different questions can be compared.
    pub relevance_score: f64,
    /// Of an agent: the ids of the skills that fit best, at most three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_skills: Option<Vec<String>>,
    /// Of others: the names of the tools that fit best, at most three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_tools: Option<Vec<String>>,
}

/// A service with tools, as the asker sees it.
#[derive(Default)]
struct Tools<'t> {
    /// All, by name.
    all: Vec<&'t Registration>,
    /// Those that fit, the best first.
    fitting: Vec<&'t str>,
    score: f64,
    cosine: Option<f64>,
}

type ServiceId<'t> = (ServiceKind, &'t str);

/// The service that a tool belongs to.
fn service_of(tool: &Registration) -> ServiceId<'_> {
    match &tool.source {
        ToolSource::Mcp(server) => (ServiceKind::Mcp, server),
        source => {
            let category = tool.tags.iter().find_map(|tag| tag.strip_prefix(CATEGORY));
            (ServiceKind::Family, category.filter(|name| !name.is_empty()).unwrap_or_else(|| source.kind()))
        }
    }
}

/// The record of an MCP server.
fn server_of<'r>(records: &'r ServiceRecords, (kind, id): ServiceId<'_>) -> Option<&'r Server> {
    records.servers.get(id).filter(|_| kind == ServiceKind::Mcp)
}

impl ToolSearch {
    /// The services that fit the question best, the best first, at most [`MAX_SERVICES`].
    /// `may_call`: whether the asker can call a tool. A service is found if the asker can call at
    /// least one of its tools; an agent, if the asker can call `invoke_agent`.
    pub fn services(
        &self,
        question: &Question,
        may_call: impl Fn(&Registration) -> bool,
        records: &ServiceRecords,
        limit: usize,
    ) -> Vec<FoundService> {
        let mut services: BTreeMap<ServiceId<'_>, Tools<'_>> = BTreeMap::new();
        for tool in self.callable(&may_call) {
            services.entry(service_of(tool)).or_default().all.push(tool);
        }
        let calls_agents = services.values().any(|tools| tools.all.iter().any(|tool| tool.name == INVOKE_AGENT));
        let agents: Vec<&Agent> = records.agents.values().filter(|_| calls_agents).collect();
        let own_texts = services.keys().map(|service| {
            let summary = server_of(records, *service).map_or("", |server| server.summary.as_str());
            Text::new([service.1, summary], [])
        });
        let texts: Vec<Text> = own_texts.chain(agents.iter().map(|agent| agent.text())).collect();
        let (mut ranked, shares) = self.rank(question, &may_call, &texts);
        ranked.sort_unstable_by(Ranked::order);
        for Ranked { tool, score, cosine } in ranked {
            let Some(service) = services.get_mut(&service_of(tool)) else { continue };
            service.fitting.push(&tool.name);
            service.score = service.score.max(score);
            service.cosine = larger(service.cosine, cosine);
        }
        let (of_services, of_agents) = shares.split_at(services.len());
        let with_tools = services
            .iter()
            .zip(of_services)
            .filter_map(|((id, tools), share)| tools.found(*id, *share, question, records));
        let agents = agents.iter().zip(of_agents).filter_map(|(agent, share)| agent.found(*share, question));
        let mut found: Vec<FoundService> = with_tools.chain(agents).collect();
        found.sort_by(|one, other| {
            let by_name = (one.kind, &one.id).cmp(&(other.kind, &other.id));
            other.relevance_score.total_cmp(&one.relevance_score).then(by_name)
        });
        found.truncate(limit.min(MAX_SERVICES));
        found
    }
}

impl Tools<'_> {
    fn found(
        &self,
        (kind, id): ServiceId<'_>,
        share: f64,
        question: &Question,
        records: &ServiceRecords,
    ) -> Option<FoundService> {
        if share <= 0.0 && self.fitting.is_empty() {
            return None;
        }
        let server = server_of(records, (kind, id));
        let own = server.and_then(|server| question.nearness(server.record).cosine());
        let nearness = larger(own, self.cosine).map_or(Nearness::Unknown, Nearness::Cosine);
        let score = self.score.max(question.score(share, nearness));
        let others = self.all.iter().map(|tool| tool.name.as_str()).filter(|name| !self.fitting.contains(name));
        let top = self.fitting.iter().copied().chain(others).take(TOP).map(str::to_owned).collect();
        let summary = server.map(|server| clean(&server.summary, MAX_SUMMARY)).filter(|text| !text.is_empty());
        Some(FoundService {
            id: clean(id, MAX_ID),
            kind,
            summary: summary.unwrap_or_else(|| self.summary()),
            relevance_score: score,
            top_skills: None,
            top_tools: Some(top),
        })
    }

    /// What the tools are, for a service without a description.
    fn summary(&self) -> String {
        let described: Vec<String> = self.all.iter().take(20).map(|tool| first_sentence(&tool.description)).collect();
        let count = self.all.len();
        let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
        clean(&format!("{tools}: {}", described.join(" ")), MAX_SUMMARY)
    }
}

impl Agent {
    fn text(&self) -> Text {
        let skills = self.skills.iter().flat_map(|skill| &skill.words).map(String::as_str);
        Text::new([self.name.as_str(), self.description.as_str()].into_iter().chain(skills), [])
    }

    fn found(&self, share: f64, question: &Question) -> Option<FoundService> {
        let nearness = question.nearness(self.record);
        if share <= 0.0 && !nearness.is_near() {
            return None;
        }
        let texts: Vec<Text> =
            self.skills.iter().map(|skill| Text::new(skill.words.iter().map(String::as_str), [])).collect();
        let shares = scoring::rank(&Index::<()>::default(), question.text(), |()| true, &texts);
        let mut skills: Vec<(f64, &Skill)> = shares.texts.into_iter().zip(&self.skills).collect();
        skills.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let summary = if self.description.trim().is_empty() {
            let names = self.skills.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>().join(", ");
            format!("An agent with the skills {names}")
        } else {
            self.description.clone()
        };
        Some(FoundService {
            id: clean(&self.name, MAX_ID),
            kind: ServiceKind::A2a,
            summary: clean(&summary, MAX_SUMMARY),
            relevance_score: question.score(share, nearness),
            top_skills: Some(skills.into_iter().take(TOP).map(|(_, skill)| clean(&skill.id, MAX_ID)).collect()),
            top_tools: None,
        })
    }
}

fn first_sentence(text: &str) -> String {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].trim().to_owned()
}

/// One line of at most this many characters.
fn clean(text: &str, most: usize) -> String {
    line(text, most - 1)
}

/// The larger of two numbers, if there is one.
fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one.max(other)).or(one).or(other)
}
