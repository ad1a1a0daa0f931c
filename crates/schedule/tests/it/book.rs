//! A tenant with a real store, a clock that is moved, the tools, and schedulers that can be stopped or killed.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    Breadcrumb, BreadcrumbQuery, Breadcrumbs, Catalog, EventStream, Registration, Selector, ToolFailure, schema_names,
};
use executors::{BuiltinExecutor, Executor, ToolCall};
use futures::StreamExt;
use schedule::{Schedule, Scheduler, Settings};
use serde_json::{Value, json};
use test_tenant::Tenant;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::MovedClock;

/// The longest wait for something that is to happen, before the test says so.
const PATIENCE: Duration = Duration::from_mins(2);

pub struct Book {
    pub tenant: Tenant,
    pub clock: Arc<MovedClock>,
    pub settings: Settings,
}

pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Returns when it has done what it was about.
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// It does not come to another line.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

impl Book {
    pub async fn at(time: &str) -> Self {
        Self { tenant: Box::pin(Tenant::new()).await, clock: MovedClock::at(time), settings: Settings::default() }
    }

    pub fn store(&self) -> Arc<dyn Breadcrumbs> {
        self.tenant.breadcrumbs.clone()
    }

    pub fn scheduler(&self) -> Running {
        self.scheduler_on(self.store())
    }

    pub fn scheduler_on(&self, store: Arc<dyn Breadcrumbs>) -> Running {
        let stop = CancellationToken::new();
        let scheduler = Scheduler::new(store, self.clock.clone(), self.settings.clone());
        Running { task: tokio::spawn(scheduler.run(stop.clone())), stop }
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        self.tenant.call(test_tenant::seeded(tool), input)
    }

    pub async fn run(&self, call: ToolCall) -> Result<Value, ToolFailure> {
        let clock: Arc<dyn schedule::Clock> = self.clock.clone();
        let tools = BuiltinExecutor::new().with(schedule::tools(&self.settings, &clock));
        tools.execute(call, CancellationToken::new()).await.result
    }

    pub async fn ask(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.run(self.call(tool, input)).await
    }

    /// Writes the catalog of these tools.
    pub async fn offer(&self, tools: Vec<Registration>) {
        for part in Catalog::new(tools, Vec::new()).records() {
            self.tenant.breadcrumbs.create(part, None).await.unwrap();
        }
    }

    /// A task with this name and cron text, and whatever else is given.
    pub async fn schedule(&self, name: &str, cron: &str, more: Value) -> Value {
        let mut input = json!({"name": name, "cron": cron, "description": format!("What {name} is for.")});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("schedule_task", input).await.unwrap()
    }

    /// The records of this schema, the oldest first.
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

    /// The times that fired, in the order in which they were written.
    pub async fn fired(&self) -> Vec<String> {
        let records = self.records(schema_names::SCHEDULE_FIRED).await;
        records.iter().map(|record| record.context["scheduled_for"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn watch(&self) -> Watch {
        Watch { events: self.tenant.breadcrumbs.events(None).await.unwrap() }
    }
}

/// Follows what becomes of schedules.
pub struct Watch {
    events: EventStream,
}

impl Watch {
    /// Waits until a schedule's record says this.
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

    /// Waits until this time has fired, and that is written.
    pub async fn fired(&mut self, time: &str) -> Schedule {
        let at = crate::clock::moment(time);
        self.until(|schedule| schedule.state.last_fire == Some(at) && schedule.state.firing.is_none()).await
    }

    /// Waits until so many fires are written.
    pub async fn fires(&mut self, fires: u64) -> Schedule {
        self.until(|schedule| schedule.state.fires == fires).await
    }
}
