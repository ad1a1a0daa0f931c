//! Whether the runners accept the tools that a command wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbQuery, Catalog, DRAFT_TAG, Records, Selector, StoreError, schema_names};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::tool_report::{Report, Reports};
use crate::exit::Failure;
use crate::output::{Output, Style};
use crate::seed::{self, SeedResult, SeedSet};

/// How often the runners' records are read. An emitter cannot subscribe to their events.
const INTERVAL: Duration = Duration::from_millis(250);

/// The first interval. The runners are usually quick, so it doubles up to [`INTERVAL`].
const FIRST_INTERVAL: Duration = Duration::from_millis(20);

/// How long to look for a runner: one that just started is not registered yet.
const RUNNER_PATIENCE: Duration = Duration::from_secs(3);

/// The state of one version of a tool in the runners.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Verdict {
    /// It can be called.
    Offered,
    /// It is valid and waits for a secret or a setting.
    Waiting,
    /// It is a draft: only its author can call it.
    Draft,
    /// It is valid, and another record has its name.
    Replaced,
    Refused {
        problem: String,
    },
    /// The runner has not reported on it in the time of `--wait`.
    Unknown,
}

/// A tool that was written, or is as its file says.
pub struct Written {
    /// What messages call it: its file, or its name.
    pub path: String,
    pub name: String,
    pub is_code: bool,
    pub id: Uuid,
    pub version: i64,
}

#[derive(Debug, Default)]
pub struct Verdicts {
    found: BTreeMap<String, Verdict>,
    refusals: Vec<String>,
    /// The names of the tools on which no runner has reported.
    unknown: Vec<String>,
    patience: Duration,
    has_runner: bool,
}

impl Verdicts {
    /// Waits until the runners reported on every tool, at most for this time. Does not wait if no
    /// runner is connected.
    pub async fn wait(
        store: &dyn Records,
        set: &SeedSet,
        rows: &[SeedResult],
        patience: Duration,
    ) -> Result<Self, StoreError> {
        Self::wait_for(store, written(set, rows), patience).await
    }

    /// The same for these tools.
    pub async fn wait_for(store: &dyn Records, mut open: Vec<Written>, patience: Duration) -> Result<Self, StoreError> {
        if open.is_empty() || patience.is_zero() {
            return Ok(Self::default());
        }
        let begun = Instant::now();
        let until = begun + patience;
        let mut verdicts = Self { has_runner: has_runner(store).await?, patience, ..Self::default() };
        while !verdicts.has_runner && begun.elapsed() + INTERVAL < patience.min(RUNNER_PATIENCE) {
            tokio::time::sleep(INTERVAL).await;
            verdicts.has_runner = has_runner(store).await?;
        }
        // The catalog has no drafts, but reports on those that are not valid. A write returns after
        // the runners have loaded it.
        let drafts = if verdicts.has_runner { drafts(store).await? } else { BTreeSet::new() };
        let mut interval = FIRST_INTERVAL;
        while verdicts.has_runner && !open.is_empty() {
            let (reports, catalog) = tokio::try_join!(Reports::read(store), Catalog::read(store))?;
            let catalog = catalog.unwrap_or_default();
            open.retain(|tool| match verdict(tool, &reports, &catalog, &drafts) {
                Some(verdict) => {
                    if let Verdict::Refused { problem } = &verdict {
                        let Written { path, version, .. } = tool;
                        verdicts.refusals.push(format!("{path}: the runner refuses version {version}: {problem}"));
                    }
                    verdicts.found.insert(tool.path.clone(), verdict);
                    false
                }
                None => true,
            });
            if Instant::now() + interval > until {
                break;
            }
            if !open.is_empty() {
                tokio::time::sleep(interval).await;
                interval = (interval * 2).min(INTERVAL);
            }
        }
        if verdicts.has_runner {
            verdicts.found.extend(open.iter().map(|tool| (tool.path.clone(), Verdict::Unknown)));
        }
        verdicts.unknown = open.into_iter().map(|tool| tool.name).collect();
        Ok(verdicts)
    }

    pub fn of(&self, path: &str) -> Option<&Verdict> {
        self.found.get(path)
    }

    /// One line for each tool that a runner refuses.
    pub fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// Prints what was done with one tool, and what the runners report on it. `name` is the path
    /// under which it was waited for, `said` is for people, `fields` for programs. A problem is a
    /// failure.
    pub fn report(&self, name: &str, said: &str, mut fields: Value, output: Output) -> anyhow::Result<()> {
        let problem = self.refusals().first().cloned().or_else(|| self.unknown());
        let warning = self.warnings().pop();
        if output.is_json() {
            fields["problem"] = json!(problem);
            fields["runner"] = json!(self.of(name));
            fields["warning"] = json!(warning);
            output.json(&fields)?;
        } else {
            output.line(said)?;
            for (style, text) in [(Style::Bad, &problem), (Style::Warning, &warning)] {
                if let Some(text) = text {
                    output.line(&output.paint(style, text))?;
                }
            }
        }
        if problem.is_some() { Err(Failure::Shown.into()) } else { Ok(()) }
    }

    /// The tools that a connected runner has neither accepted nor refused, as an error.
    pub fn unknown(&self) -> Option<String> {
        let (names, seconds) = (self.unknown.join(", "), self.patience.as_secs());
        (!names.is_empty() && self.has_runner).then(|| {
            format!(
                "the runner has neither accepted nor refused {names} within {seconds} s; see the state with `rcrt tool \
                 list`, or wait longer with --wait SECONDS"
            )
        })
    }

    /// About tools that cannot be called yet, and about drafts, which only their author can call.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.unknown.is_empty() && !self.has_runner {
            let names = self.unknown.join(", ");
            warnings
                .push(format!("no runner is connected, so {names} cannot be called yet; start one with `rcrt runner`"));
        }
        let drafts = self.found.iter().filter(|(_, verdict)| **verdict == Verdict::Draft);
        let drafts: Vec<&str> = drafts.map(|(path, _)| path.as_str()).collect();
        if !drafts.is_empty() {
            warnings.push(format!(
                "only their author can call these drafts: {}; a curator publishes one with `rcrt tool publish NAME`",
                drafts.join(", ")
            ));
        }
        warnings
    }
}

fn written(set: &SeedSet, rows: &[SeedResult]) -> Vec<Written> {
    let tool = |row: &SeedResult| {
        let seed = set.seeds.iter().find(|seed| seed.path == row.path)?;
        let schema = seed.record.schema_name.as_deref();
        if !schema_names::is_tool(schema) || !row.what.is_in_effect() {
            return None;
        }
        Some(Written {
            path: row.path.clone(),
            name: seed.name().to_owned(),
            is_code: schema == Some(schema_names::TOOL_CODE),
            id: row.id?,
            version: row.version?,
        })
    };
    rows.iter().filter_map(tool).collect()
}

async fn has_runner(store: &dyn Records) -> Result<bool, StoreError> {
    let query =
        BreadcrumbQuery { limit: 1, include_context: false, ..BreadcrumbQuery::of_schema(schema_names::TOOL_RUNNER) };
    Ok(!store.list(&query).await?.is_empty())
}

/// The records whose newest version is a draft.
async fn drafts(store: &dyn Records) -> Result<BTreeSet<Uuid>, StoreError> {
    let selector = Selector { all_tags: vec![DRAFT_TAG.to_owned()], ..Selector::default() };
    Ok(seed::every(store, selector).await?.into_iter().map(|item| item.id).collect())
}

fn verdict(tool: &Written, reports: &Reports, catalog: &Catalog, drafts: &BTreeSet<Uuid>) -> Option<Verdict> {
    if let Some(report) = reports.of(tool.id, tool.version) {
        return Some(Verdict::Refused { problem: Report::sentence(report) });
    }
    if drafts.contains(&tool.id) {
        return Some(Verdict::Draft);
    }
    if catalog.find_waiting(&tool.name).is_some_and(|waiting| waiting.tool_id == tool.id) {
        return Some(Verdict::Waiting);
    }
    let offered = catalog.find(&tool.name)?;
    if offered.tool_id == tool.id {
        return (offered.tool_version >= tool.version).then_some(Verdict::Offered);
    }
    // Code has precedence over an older record without code, and there is no report on the latter.
    // Ids are in the order of creation.
    (!tool.is_code && tool.id < offered.tool_id).then_some(Verdict::Replaced)
}
