//! Writes that are checked against the definitions.

use chrono::Utc;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, ChangeCheck, Created, NewBreadcrumb, Role, Sensitivity, StoreError, Violation,
    Violations, schema_names,
};
use serde_json::Value;
use uuid::Uuid;

use crate::definition::is_the_runtimes;
use crate::definition_cache::{DefinitionSet, MAX_DEFINITIONS};
use crate::hints::Hints;
use crate::layer::Layer;

/// The maximum number of attempts of one change: for the owner's definitions, after the check, and
/// some in reserve.
const MOST_TRIES: usize = 5;

impl Layer {
    pub(crate) async fn create_as_defined(
        &self,
        record: NewBreadcrumb,
        idempotency_key: Option<&str>,
    ) -> Result<Created, StoreError> {
        let is_definition = record.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION);
        let DefinedRecord { record, warnings } = self.new_as_defined(record).await?;
        let mut created = self.inner.create(record, idempotency_key).await?;
        created.warnings.extend(warnings);
        if is_definition {
            self.definitions.refresh(self.identity.owner_id).await;
        }
        Ok(created)
    }

    /// Checks a new record, and applies its definition.
    pub(crate) async fn new_as_defined(&self, mut record: NewBreadcrumb) -> Result<DefinedRecord, StoreError> {
        let Some(name) = record.schema_name.as_deref() else {
            check_hints(record.llm_hints.as_ref())?;
            return Ok(DefinedRecord { warnings: ended(&record), record });
        };
        let known = self.definitions.of(self.identity.owner_id).await?;
        if name == schema_names::SCHEMA_DEFINITION {
            // Report first what every store refuses, with the same text.
            record.check()?;
            if known.count() >= MAX_DEFINITIONS {
                let message = format!("cannot be {name} again: a tenant has at most {MAX_DEFINITIONS} definitions");
                return Err(Violations::one("schema_name", message).into());
            }
            let defines = self.definitions.judge(self.identity.owner_id, &record).await?;
            self.refuse_the_runtimes(&defines, false)?;
            refuse_hidden(&record)?;
        } else {
            check_hints(record.llm_hints.as_ref())?;
        }
        let mut warnings = Vec::new();
        if let Some(definition) = known.of(record.schema_name.as_deref()).cloned() {
            definition.limit(&mut record);
            let found =
                definition.check(self.identity.owner_id, self.definitions.check_timeout, &mut record.context).await?;
            warnings = definition.verdict(found)?;
        }
        warnings.extend(ended(&record));
        Ok(DefinedRecord { record, warnings })
    }

    /// A quick check runs in the transaction that makes the change. For a slow check the
    /// transaction is rolled back and repeated after the check, whose result applies to exactly
    /// that record. Each attempt expects the version, so a concurrent change is a conflict as
    /// usual.
    ///
    /// A record that another tenant has opened to this agent is checked against that tenant's
    /// definitions. Its owner is known only once it is read, and then the change is repeated, too.
    pub(crate) async fn update_as_defined(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        check_hints(changes.llm_hints.as_ref())?;
        let mut owner_id = self.identity.owner_id;
        let mut known = self.definitions.of(owner_id).await?;
        let names_ttl = changes.names_ttl();
        let mut judged: Option<CheckedChange> = None;
        for _ in 0..MOST_TRIES {
            let (stopped, warnings) = (Mutex::new(None), Mutex::new(Vec::new()));
            let checked = |old: &Breadcrumb, next: NewBreadcrumb| {
                if old.owner_id != owner_id {
                    *stopped.lock() = Some(Stopped::Home(old.owner_id));
                    return Err(retry_marker());
                }
                let mut next = check(old, next)?;
                let now = self.checked_now(&known, old, &mut next, names_ttl, judged.as_ref())?;
                let Some(found) = now else {
                    *stopped.lock() = Some(Stopped::Check(Box::new(next)));
                    return Err(retry_marker());
                };
                // If there are several attempts, the last one counts.
                *warnings.lock() = found;
                Ok(next)
            };
            let updated = self.inner.update_checked(id, version, changes.clone(), &checked).await;
            let stopped = stopped.lock().take();
            match (updated, stopped) {
                (Ok(mut updated), _) => {
                    updated.warnings = std::mem::take(&mut *warnings.lock());
                    if updated.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION) {
                        self.definitions.refresh(owner_id).await;
                    }
                    return Ok(updated);
                }
                (Err(_), Some(Stopped::Home(home))) => {
                    owner_id = home;
                    known = self.definitions.of(owner_id).await?;
                }
                (Err(_), Some(Stopped::Check(next))) => judged = Some(self.judge(&known, *next).await?),
                (Err(error), None) => return Err(error),
            }
        }
        Err(StoreError::Busy("the record kept changing while it was checked; try again".into()))
    }

    /// Runs the check without an open transaction. Returns final refusals.
    async fn judge(&self, known: &DefinitionSet, mut next: NewBreadcrumb) -> Result<CheckedChange, StoreError> {
        let tenant = self.identity.owner_id;
        if next.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION) {
            let defines = self.definitions.judge(tenant, &next).await?;
            return Ok(CheckedChange { record: next, found: Vec::new(), defines: Some(defines) });
        }
        let mut found = Vec::new();
        if let Some(definition) = known.of(next.schema_name.as_deref()).cloned() {
            found = definition
                .verdict(definition.check(tenant, self.definitions.check_timeout, &mut next.context).await?)?;
        }
        Ok(CheckedChange { record: next, found, defines: None })
    }

    /// The warnings. `None` if the check is too slow for a transaction and was not done yet.
    fn checked_now(
        &self,
        known: &DefinitionSet,
        old: &Breadcrumb,
        next: &mut NewBreadcrumb,
        names_ttl: bool,
        judged: Option<&CheckedChange>,
    ) -> Result<Option<Vec<Violation>>, StoreError> {
        let definition = Some(schema_names::SCHEMA_DEFINITION);
        let (was, is) = (old.schema_name.as_deref() == definition, next.schema_name.as_deref() == definition);
        if was != is {
            let message =
                format!("cannot be changed from or to {}; create a new record", schema_names::SCHEMA_DEFINITION);
            return Err(Violations::one("schema_name", message).into());
        }
        if is {
            let is_guest = old.owner_id != self.identity.owner_id;
            if let Some(name) = known.defined_by(old.id) {
                self.refuse_the_runtimes(name, is_guest)?;
            }
            let Some(defines) = judged.filter(|judged| judged.is_of(next)).and_then(|judged| judged.defines.as_ref())
            else {
                return Ok(None);
            };
            self.refuse_the_runtimes(defines, is_guest)?;
            refuse_hidden(next)?;
        }
        let Some(definition) = known.of(next.schema_name.as_deref()) else { return Ok(Some(Vec::new())) };
        let is_new_name = next.schema_name != old.schema_name;
        if is_new_name || (names_ttl && !definition.may_override()) {
            definition.limit(next);
        }
        if !is_new_name && next.context == old.context {
            return Ok(Some(Vec::new()));
        }
        if let Some(judged) = judged.filter(|judged| judged.is_of(next)) {
            return Ok(Some(judged.found.clone()));
        }
        definition.check_at_once(&mut next.context).map(|found| definition.verdict(found)).transpose()
    }

    pub(crate) async fn delete_defined(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        let known = self.definitions.of(self.identity.owner_id).await?;
        let defined = known.defined_by(id);
        if let Some(name) = defined {
            self.refuse_the_runtimes(name, false)?;
        }
        self.inner.delete(id, version).await?;
        if defined.is_some() {
            self.definitions.refresh(self.identity.owner_id).await;
        }
        Ok(())
    }

    /// A response is written even if it violates its definition: each request gets one.
    pub(crate) async fn response_as_defined(&self, mut response: NewBreadcrumb) -> NewBreadcrumb {
        let Ok(known) = self.definitions.of(self.identity.owner_id).await else { return response };
        let Some(definition) = known.of(response.schema_name.as_deref()).cloned() else { return response };
        definition.limit(&mut response);
        let found = match definition.check_at_once(&mut response.context) {
            Some(found) => Ok(found),
            // Check a copy: the response is written even if its check does not finish in time.
            None => {
                definition
                    .check(self.identity.owner_id, self.definitions.check_timeout, &mut response.context.clone())
                    .await
            }
        };
        match found {
            Ok(found) => {
                if let Ok(warnings) = definition.verdict(found)
                    && let Some(first) = warnings.first()
                {
                    tracing::warn!(tenant = %self.identity.owner_id, %first, "a response violates its definition");
                }
            }
            Err(error) => {
                tracing::warn!(tenant = %self.identity.owner_id, %error, "a response is written without its check");
            }
        }
        response
    }

    /// A guest from another tenant is never a curator.
    fn refuse_the_runtimes(&self, name: &str, is_guest: bool) -> Result<(), StoreError> {
        if is_the_runtimes(name) && (is_guest || !self.identity.has(Role::Curator)) {
            let why = format!("only a curator can define {name}, because the runtime itself reads or writes it");
            return Err(StoreError::Forbidden(why));
        }
        Ok(())
    }
}

/// A new record to which its definition was applied.
pub(crate) struct DefinedRecord {
    pub(crate) record: NewBreadcrumb,
    pub(crate) warnings: Vec<Violation>,
}

/// Why a change is repeated.
enum Stopped {
    /// The record belongs to this tenant.
    Home(Uuid),
    /// This record must be checked first.
    Check(Box<NewBreadcrumb>),
}

/// A record that was checked without an open transaction, and the result.
struct CheckedChange {
    record: NewBreadcrumb,
    found: Vec<Violation>,
    /// The name that the record defines, if it is a definition.
    defines: Option<String>,
}

impl CheckedChange {
    /// Whether the checked record equals the one to be written, in all fields that a definition
    /// checks.
    fn is_of(&self, next: &NewBreadcrumb) -> bool {
        let NewBreadcrumb { schema_name, context, tags, llm_hints, .. } = &self.record;
        next.schema_name == *schema_name
            && next.context == *context
            && next.tags == *tags
            && next.llm_hints == *llm_hints
    }
}

/// Rolls the transaction back. The error is never returned to the caller.
fn retry_marker() -> StoreError {
    StoreError::Internal("a change begins again".into())
}

/// A warning about a new record that has already expired. It is not refused, because a repeated
/// write must get the answer of the first one.
fn ended(record: &NewBreadcrumb) -> Vec<Violation> {
    let has_ended = record.ttl.is_some_and(|ttl| ttl <= Utc::now());
    let warning = || Violation::new("ttl", "is in the past: the record has expired, and no reader sees it");
    has_ended.then(warning).into_iter().collect()
}

/// A definition applies to everyone who writes its records, so everyone must be able to read it.
fn refuse_hidden(record: &NewBreadcrumb) -> Result<(), Violations> {
    if record.sensitivity == Sensitivity::Secret {
        return Err(Violations::one(
            "sensitivity",
            "of a definition cannot be secret: everyone who writes its records must be able to read it",
        ));
    }
    Ok(())
}

fn check_hints(hints: Option<&Value>) -> Result<(), Violations> {
    match hints {
        Some(hints) => Hints::read("llm_hints", hints).1.into_result(),
        None => Ok(()),
    }
}
