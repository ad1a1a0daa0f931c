//! The records of an example: a small store in memory, which gives the same ids in each run.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parking_lot::{Mutex, MutexGuard};
use rcrt_breadcrumb::{
    AuditLog, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, Call,
    CallHistory, CallQueue, Claim, ClaimRequest, Created, EgressLog, EventNumber, Events, ExampleRecord, Fuel, Lease,
    LeaseState, Matcher, NewBreadcrumb, Records, Release, ReportReply, Rights, RunnerReport, Runners, Search,
    SearchMode, SearchResults, Secrets, Selector, Selectors, StoreError, SubscribeOptions, SubscriptionStream,
};
use serde_json::Value;
use uuid::Uuid;

pub(crate) struct ExampleRecords {
    owner_id: Uuid,
    now: DateTime<Utc>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: Vec<Breadcrumb>,
    /// How many ids were given.
    ids: u128,
}

impl State {
    fn next_id(&mut self) -> Uuid {
        self.ids += 1;
        numbered(self.ids)
    }
}

/// 00000000-0000-4000-8000-00000000000n.
fn numbered(number: u128) -> Uuid {
    Uuid::from_u128(0x4000_8000_0000_0000_0000 + number)
}

impl ExampleRecords {
    pub fn new(owner_id: Uuid, now: DateTime<Utc>, records: &[ExampleRecord]) -> Self {
        let mut state = State::default();
        for given in records {
            let numbered = state.next_id();
            let new = NewBreadcrumb {
                title: given.title.clone(),
                schema_name: given.schema_name.clone(),
                tags: given.tags.clone(),
                context: given.context.clone(),
                ..NewBreadcrumb::default()
            };
            let measured = Breadcrumb::measure(&new.context);
            let at = given.updated_at.unwrap_or(now);
            let record = new.into_first_version(given.id.unwrap_or(numbered), owner_id, None, measured, at);
            state.records.push(Breadcrumb { version: given.version, ..record });
        }
        Self { owner_id, now, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The records that match, newest change first.
    fn matching(&self, selector: &Selector) -> Result<Vec<Breadcrumb>, StoreError> {
        let (matcher, mut fuel) = (Matcher::from(selector), Fuel::for_async());
        let mut found = Vec::new();
        for record in &self.state().records {
            let is_match = matcher
                .matches(&record.tags, record.schema_name.as_deref(), &record.context, &mut fuel)
                .map_err(|_| StoreError::Unavailable("the selector takes too long to match".into()))?;
            if is_match {
                found.push(record.clone());
            }
        }
        found.sort_by_key(|record| std::cmp::Reverse(record.updated_at));
        Ok(found)
    }
}

fn position(state: &State, id: Uuid) -> Result<usize, StoreError> {
    let at = state.records.iter().position(|record| record.id == id);
    at.ok_or(StoreError::NotFound { what: "breadcrumb", id })
}

fn expect_version(record: &Breadcrumb, expected: Option<i64>) -> Result<(), StoreError> {
    match expected {
        Some(expected) if expected != record.version => {
            Err(StoreError::VersionConflict { expected, actual: record.version })
        }
        _ => Ok(()),
    }
}

fn item(record: Breadcrumb, include_context: bool, score: Option<f64>) -> BreadcrumbListItem {
    BreadcrumbListItem {
        id: record.id,
        owner_id: None,
        title: record.title,
        tags: record.tags,
        schema_name: record.schema_name,
        version: record.version,
        updated_at: record.updated_at,
        context: include_context.then_some(record.context),
        redacted: false,
        score,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[async_trait]
impl Records for ExampleRecords {
    async fn create(&self, record: NewBreadcrumb, _idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        record.check()?;
        let mut state = self.state();
        let (id, measured) = (state.next_id(), Breadcrumb::measure(&record.context));
        let first = record.into_first_version(id, self.owner_id, None, measured, self.now);
        state.records.push(first);
        Ok(Created { id, version: 1, replayed: false, warnings: Vec::new() })
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        let state = self.state();
        Ok(state.records[position(&state, id)?].clone())
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        let record = self.get(id).await?;
        Ok(vec![BreadcrumbVersion {
            version: record.version,
            title: record.title,
            context: record.context,
            tags: record.tags,
            schema_name: record.schema_name,
            checksum: record.checksum,
            updated_at: record.updated_at,
            updated_by: record.updated_by,
        }])
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        let mut state = self.state();
        let at = position(&state, id)?;
        let old = &state.records[at];
        expect_version(old, Some(version))?;
        let next = changes.applied_to(old)?;
        let (next_version, created_at) = (old.version + 1, old.created_at);
        let measured = Breadcrumb::measure(&next.context);
        let written = next.into_first_version(id, self.owner_id, None, measured, self.now);
        state.records[at] = Breadcrumb { version: next_version, created_at, ..written };
        Ok(state.records[at].clone())
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        let mut state = self.state();
        let at = position(&state, id)?;
        expect_version(&state.records[at], version)?;
        state.records.remove(at);
        Ok(())
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let found = self.matching(&query.selector)?.into_iter();
        let page = found.skip(query.offset as usize).take(query.limit as usize);
        Ok(page.map(|record| item(record, query.include_context, None)).collect())
    }

    /// Ranks by the share of the question's words that a record has.
    async fn search(&self, search: &Search) -> Result<SearchResults, StoreError> {
        let wanted = words(search.q.as_deref().unwrap_or_default());
        let mut found: Vec<(f64, Breadcrumb)> = Vec::new();
        for record in self.matching(&search.selector)? {
            let text = format!("{} {}", record.title, Value::Object(record.context.clone()));
            let has = words(&text);
            let shared = wanted.iter().filter(|word| has.contains(word)).count();
            if shared > 0 {
                found.push((shared as f64 / wanted.len() as f64, record));
            }
        }
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        let items = found.into_iter().take(search.nn as usize);
        let items = items.map(|(score, record)| item(record, search.include_context, Some(score))).collect();
        Ok(SearchResults { items, mode: SearchMode::Text, fallback: None })
    }
}

fn none<T>() -> Result<T, StoreError> {
    Err(StoreError::Internal("an example has only records".into()))
}

impl Rights for ExampleRecords {}
impl AuditLog for ExampleRecords {}
impl Secrets for ExampleRecords {}
impl Selectors for ExampleRecords {}
impl CallHistory for ExampleRecords {}
impl EgressLog for ExampleRecords {}
impl Breadcrumbs for ExampleRecords {}

#[async_trait]
impl Events for ExampleRecords {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        none()
    }

    async fn subscribe(&self, _: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        none()
    }
}

#[async_trait]
impl CallQueue for ExampleRecords {
    async fn claim(&self, _: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        none()
    }

    async fn start(&self, _: Lease, _: u32) -> Result<(), StoreError> {
        none()
    }

    async fn heartbeat(&self, _: &[Lease], _: u64) -> Result<Vec<LeaseState>, StoreError> {
        none()
    }

    async fn complete(&self, _: Lease, _: NewBreadcrumb) -> Result<Uuid, StoreError> {
        none()
    }

    async fn release(&self, _: Lease, _: Release) -> Result<(), StoreError> {
        none()
    }

    async fn call(&self, _: Uuid) -> Result<Call, StoreError> {
        none()
    }

    async fn cancel(&self, _: Uuid) -> Result<Call, StoreError> {
        none()
    }
}

#[async_trait]
impl Runners for ExampleRecords {
    async fn report_runner(&self, _: &RunnerReport) -> Result<ReportReply, StoreError> {
        none()
    }
}
