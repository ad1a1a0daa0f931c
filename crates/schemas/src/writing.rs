//! Writes as the definitions want them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use breadcrumb::{
    Breadcrumb, BreadcrumbChanges, ChangeCheck, Created, NewBreadcrumb, Role, Sensitivity, StoreError, Violation,
    Violations, schema_names,
};
use serde_json::Value;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::definition::{Definition, is_the_runtimes};
use crate::hints::Hints;
use crate::known::{Known, MAX_DEFINITIONS};
use crate::layer::Layer;

impl Layer {
    pub(crate) async fn create_as_defined(
        &self,
        mut record: NewBreadcrumb,
        idempotency_key: Option<&str>,
    ) -> Result<Created, StoreError> {
        let Some(name) = record.schema_name.as_deref() else {
            check_hints(record.llm_hints.as_ref())?;
            return self.inner.create(record, idempotency_key).await;
        };
        let known = self.definitions.of(self.identity.owner_id).await?;
        if name == schema_names::SCHEMA_DEFINITION {
            // What no store would take is told first, and by the same words.
            record.check()?;
            if known.count() >= MAX_DEFINITIONS {
                let message = format!("cannot be {name} again: a tenant has at most {MAX_DEFINITIONS} definitions");
                return Err(Violations::one("schema_name", message).into());
            }
            record = self.judged(record).await?;
        } else {
            check_hints(record.llm_hints.as_ref())?;
        }
        let is_definition = record.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION);
        let mut warnings = Vec::new();
        if let Some(definition) = known.of(record.schema_name.as_deref()).cloned() {
            definition.limit(&mut record);
            let found = definition.check(&mut record.context).await;
            warnings = definition.verdict(found)?;
        }
        let mut created = self.inner.create(record, idempotency_key).await?;
        created.warnings.append(&mut warnings);
        if is_definition {
            self.definitions.refresh(self.identity.owner_id).await;
        }
        Ok(created)
    }

    /// A record that another tenant has opened to this agent is held to that tenant's definitions: whose it is is known
    /// when it is read, and then the change begins again.
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
        let (home, warnings) = (Mutex::new(owner_id), Mutex::new(Vec::new()));
        let names_ttl = changes.names_ttl();
        loop {
            let checked = |old: &Breadcrumb, next: NewBreadcrumb| {
                if old.owner_id != owner_id {
                    *locked(&home) = old.owner_id;
                    return Err(StoreError::Internal("another tenant's definitions are needed".into()));
                }
                let mut next = check(old, next)?;
                self.check_kind(&known, old, &next)?;
                // The last try counts, where there are several.
                *locked(&warnings) = as_defined(&known, old, &mut next, names_ttl)?;
                Ok(next)
            };
            let updated = self.inner.update_checked(id, version, changes.clone(), &checked).await;
            let at_home = *locked(&home);
            if updated.is_err() && at_home != owner_id {
                owner_id = at_home;
                known = self.definitions.of(owner_id).await?;
                continue;
            }
            let mut updated = updated?;
            updated.warnings = std::mem::take(&mut *locked(&warnings));
            if updated.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION) {
                self.definitions.refresh(owner_id).await;
            }
            return Ok(updated);
        }
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

    /// A response is written whatever is wrong with it: each request gets one.
    pub(crate) async fn response_as_defined(&self, mut response: NewBreadcrumb) -> NewBreadcrumb {
        let Ok(known) = self.definitions.of(self.identity.owner_id).await else { return response };
        let Some(definition) = known.of(response.schema_name.as_deref()).cloned() else { return response };
        definition.limit(&mut response);
        let found = definition.check(&mut response.context).await;
        if let Ok(warnings) = definition.verdict(found)
            && let Some(first) = warnings.first()
        {
            tracing::warn!(tenant = %self.identity.owner_id, %first, "a response is not as its definition says");
        }
        response
    }

    /// A definition that is good, and that this agent may write.
    async fn judged(&self, record: NewBreadcrumb) -> Result<NewBreadcrumb, StoreError> {
        let judging = spawn_blocking(move || {
            let read = Definition::read(&record.context, &record.tags, record.llm_hints.as_ref());
            (read.map(|definition| definition.name), record)
        });
        let (name, record) =
            judging.await.map_err(|error| StoreError::Internal(format!("reading a definition: {error}")))?;
        self.refuse_the_runtimes(&name?, false)?;
        refuse_hidden(&record)?;
        Ok(record)
    }

    /// The same for a change, inside the transaction that makes it.
    fn check_kind(&self, known: &Known, old: &Breadcrumb, next: &NewBreadcrumb) -> Result<(), StoreError> {
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
            let read = Definition::read(&next.context, &next.tags, next.llm_hints.as_ref())?;
            self.refuse_the_runtimes(&read.name, is_guest)?;
            refuse_hidden(next)?;
        }
        Ok(())
    }

    /// Nobody is curator as another tenant's guest.
    fn refuse_the_runtimes(&self, name: &str, is_guest: bool) -> Result<(), StoreError> {
        if is_the_runtimes(name) && (is_guest || !self.identity.has(Role::Curator)) {
            let why = format!("only a curator may say what {name} is: the runtime itself reads or writes it");
            return Err(StoreError::Forbidden(why));
        }
        Ok(())
    }
}

/// Gives a changed record what its definition asks for: the time to live, and a look at its context. Gives the warnings.
fn as_defined(
    known: &Known,
    old: &Breadcrumb,
    next: &mut NewBreadcrumb,
    names_ttl: bool,
) -> Result<Vec<Violation>, StoreError> {
    let Some(definition) = known.of(next.schema_name.as_deref()) else { return Ok(Vec::new()) };
    let is_new_name = next.schema_name != old.schema_name;
    if is_new_name || (names_ttl && !definition.may_override()) {
        definition.limit(next);
    }
    if !is_new_name && next.context == old.context {
        return Ok(Vec::new());
    }
    let found = definition.check_here(&mut next.context);
    definition.verdict(found)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everybody who writes a record is held to its definition, so everybody may read that.
fn refuse_hidden(record: &NewBreadcrumb) -> Result<(), Violations> {
    if record.sensitivity == Sensitivity::Secret {
        return Err(Violations::one("sensitivity", "of a definition cannot be secret: records are held to it"));
    }
    Ok(())
}

fn check_hints(hints: Option<&Value>) -> Result<(), Violations> {
    match hints {
        Some(hints) => Hints::read("llm_hints", hints).1.into_result(),
        None => Ok(()),
    }
}
