//! A tenant with a real store, a movable clock, the tools, and schedulers that can be stopped or
//! killed.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, Breadcrumbs, Catalog, EventStream, Registration, Selector, ToolFailure, schema_names,
};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall};
use rcrt_schedule::{Schedule, Scheduler, Settings};
use rcrt_test_tenant::{Background, Tenant};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::MovedClock;

/// The longest wait for an expected event, before the test fails.
const PATIENCE: Duration = Duration::from_mins(2);

pub struct Fixture {
    pub tenant: Tenant,
    pub clock: Arc<MovedClock>,
    pub settings: Settings,
}

impl Fixture {
    pub async fn at(time: &str) -> Self {
        Self { tenant: Box::pin(Tenant::new()).await, clock: MovedClock::at(time), settings: Settings::default() }
    }

    pub fn store(&self) -> Arc<dyn Breadcrumbs> {
        self.tenant.breadcrumbs.clone()
    }

    pub fn scheduler(&self) -> Background {
        self.scheduler_on(self.store())
    }

    pub fn scheduler_on(&self, store: Arc<dyn Breadcrumbs>) -> Background {
        let scheduler = Scheduler::new(store, self.clock.clone(), self.settings.clone());
        Background::start(|stop| scheduler.run(stop))
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        self.tenant.call(rcrt_test_tenant::seeded(tool), input)
    }

    pub async fn run(&self, call: ToolCall) -> Result<Value, ToolFailure> {
        let clock: Arc<dyn rcrt_schedule::Clock> = self.clock.clone();
        let tools = BuiltinExecutor::new().with(rcrt_schedule::tools(&self.settings, &clock));
        tools.execute(call, CancellationToken::new()).await.result
    }

    pub async fn ask(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.run(self.call(tool, input)).await
    }

    /// Writes a catalog with these tools.
    pub async fn offer(&self, tools: Vec<Registration>) {
        for part in Catalog::new(tools, Vec::new()).records() {
            self.tenant.breadcrumbs.create(part, None).await.unwrap();
        }
    }

    /// Creates a task with this name and cron expression, and further fields.
    pub async fn schedule(&self, name: &str, cron: &str, more: Value) -> Value {
        let mut input = json!({"name": name, "cron": cron, "description": format!("What {name} is for.")});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("schedule_task", input).await.unwrap()
    }

    /// The records of this schema, oldest first.
    pub async fn records(&self, schema: &str) -> Vec<Breadcrumb> {
        let selector = Selector { schema_name: Some(schema.into()), ..Selector::default() };
        let query = BreadcrumbQuery { selector, limit: 1000, ..BreadcrumbQuery::default() };
        let mut records = Vec::new();
        for item in self.tenant.breadcrumbs.list(&query).await.unwrap() {
            records.push(self.tenant.breadcrumbs.get(item.id).await.unwrap());
        }
        records.sort_by_key(|record| record.id);
        records
    }

    /// The record of the task.
    pub async fn record(&self, name: &str) -> Breadcrumb {
        let mut records = self.records(schema_names::SCHEDULE).await;
        records.retain(|record| record.context["name"] == name);
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    /// The times that fired, in the order of their writes.
    pub async fn fired(&self) -> Vec<String> {
        let records = self.records(schema_names::SCHEDULE_FIRED).await;
        records.iter().map(|record| record.context["scheduled_for"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn watch(&self) -> Watch {
        Watch { events: self.tenant.breadcrumbs.events(None).await.unwrap() }
    }
}

/// Watches changes of schedules.
pub struct Watch {
    events: EventStream,
}

impl Watch {
    /// Waits until a schedule's record meets the condition.
    pub async fn until(&mut self, is_so: impl Fn(&Schedule) -> bool) -> Schedule {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.next()).await.expect("it becomes so");
            let event = event.unwrap().unwrap();
            if event.schema_name.as_deref() == Some(schema_names::SCHEDULE)
                && let Ok(schedule) = Schedule::read(&event.context)
                && is_so(&schedule)
            {
                return schedule;
            }
        }
    }

    /// Waits until this time has fired and the fire is written.
    pub async fn fired(&mut self, time: &str) -> Schedule {
        let at = crate::clock::moment(time);
        self.until(|schedule| schedule.state.last_fire == Some(at) && schedule.state.firing.is_none()).await
    }

    /// Waits until this many fires are written.
    pub async fn fires(&mut self, fires: u64) -> Schedule {
        self.until(|schedule| schedule.state.fires == fires).await
    }
}
