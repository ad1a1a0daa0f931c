//! The resources of a tenant that a fixture can name. Only those in the fixture's text are created.

use std::time::Duration;

use rcrt_breadcrumb::{
    Annotations, Catalog, DeliveryClaimRequest, DeliveryOutcome, NewAgent, Profile, Registration, Role, Tenancy,
    ToolSource,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{World, request_for};

pub struct Resources {
    /// A text that is in each of them and nowhere else.
    pub mark: String,
    curator: String,
    /// The calling agent, if the fixture names it.
    pub caller: Option<Uuid>,
    /// The ids of the placeholders.
    ids: Vec<(&'static str, String)>,
}

impl Resources {
    /// Creates the resources that `text` names, in this tenant.
    pub async fn of(world: &World, tenant: Uuid, text: &str) -> Self {
        let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
        let mark = format!("mark{}", Uuid::new_v4().simple());
        let mut resources = Self { mark, curator, caller: None, ids: vec![("{tenant}", tenant.to_string())] };
        // A record always exists.
        let record = resources
            .make(
                world,
                "/breadcrumbs",
                json!({"title": resources.mark, "tags": ["note"], "schema_name": "note.v1",
            "context": {"text": format!("text {}", resources.mark)}}),
            )
            .await;
        resources.ids.push(("{record}", record));
        let names = |name: &str| text.contains(name);
        if names("{request}") || names("{lease}") {
            let request = resources.make(world, "/breadcrumbs", request_for(&resources.mark)).await;
            resources.ids.push(("{request}", request));
        }
        if names("{lease}") {
            let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 600_000});
            let claims = world.post("/calls/claim", &resources.curator, claim).await.ok().json();
            resources.ids.push(("{lease}", claims[0]["lease"].to_string()));
        }
        if names("{runner}") {
            let slots = json!({"used": 0, "free": 1});
            let id = Uuid::new_v4();
            let report = json!({"runner_id": id, "lease_ms": 600_000, "applied": 0, "host": resources.mark, "version": "1",
                "draining": false, "started_at": "2026-01-31T12:00:00Z", "slots": {"worker": slots, "waiting": slots}});
            world.post("/runners", &resources.curator, report).await.ok();
            resources.ids.push(("{runner}", id.to_string()));
        }
        if names("{ticket}") {
            let ticket = world.post("/auth/ticket", &resources.curator, json!({})).await.ok().json();
            resources.ids.push(("{ticket}", ticket["ticket"].as_str().unwrap().to_owned()));
        }
        if names("{secret}") {
            let secret = json!({"name": "KEY", "value": resources.mark});
            let secret = resources.make(world, "/secrets", secret).await;
            resources.ids.push(("{secret}", secret));
        }
        if names("{tool}") {
            let tool =
                json!({"title": resources.mark, "schema_name": "tool.code.v1", "context": {"name": resources.mark}});
            let tool = resources.make(world, "/breadcrumbs", tool).await;
            let grants = resources.fill("/secrets/{secret}/grants");
            world.post(&grants, &resources.curator, json!({"tool_id": tool})).await.ok();
            resources.ids.push(("{tool}", tool));
        }
        if names("{offered}") {
            resources.offer(world, tenant).await;
        }
        if names("{selector}") {
            let selector = resources.make(world, "/subscriptions/selectors", json!({"any_tags": ["note"]})).await;
            resources.ids.push(("{selector}", selector));
        }
        if names("{agent}") {
            let agent = NewAgent {
                name: resources.mark.clone(),
                roles: vec![Role::Emitter],
                profile: Profile::Main,
                tools: None,
            };
            let made = world.store.create_agent(tenant, None, agent).await.unwrap();
            resources.ids.push(("{agent}", made.agent.id.to_string()));
            resources.ids.push(("{agent_key}", made.agent_key));
        }
        if names("{caller}") || names("{dead_letter}") {
            let (caller, _) = world.agent(tenant, &Role::ALL).await;
            resources.caller = Some(caller.id);
            resources.ids.push(("{caller}", caller.id.to_string()));
        }
        if names("{webhook}") || names("{dead_letter}") {
            let hook = json!({"url": format!("https://{}.example/", resources.mark)});
            let webhook = resources.make(world, &resources.fill("/agents/{caller}/webhooks"), hook).await;
            resources.ids.push(("{webhook}", webhook));
        }
        if names("{dead_letter}") {
            let id = resources.add_dead_letter(world, tenant).await;
            resources.ids.push(("{dead_letter}", id.to_string()));
        }
        resources
    }

    /// As a deliverer does.
    async fn add_dead_letter(&self, world: &World, tenant: Uuid) -> Uuid {
        self.make(world, "/breadcrumbs", json!({"title": self.mark, "context": {"text": self.mark}})).await;
        let queue = world.store.deliveries();
        let request = DeliveryClaimRequest { most: 100, per_webhook: 10, slow_from: 5, lease: Duration::from_mins(10) };
        loop {
            let taken = queue.claim(&request).await.unwrap();
            if let Some(delivery) = taken.iter().find(|delivery| delivery.owner_id == tenant) {
                let dead = DeliveryOutcome::Dead { error: self.mark.clone(), hold: None };
                queue.complete(delivery, &dead).await.unwrap();
                return delivery.id;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn make(&self, world: &World, path: &str, body: Value) -> String {
        let made = world.post(path, &self.curator, body).await.ok().json();
        made["id"].as_str().unwrap().to_owned()
    }

    async fn offer(&mut self, world: &World, tenant: Uuid) {
        // The caller sends the name, so a refusal can contain it: no mark.
        let name = format!("tool{}", Uuid::new_v4().simple());
        let tool = Registration {
            name: name.clone(),
            description: self.mark.clone(),
            parameters: json!({"type": "object"}),
            output_schema: None,
            source: ToolSource::Native,
            tags: Vec::new(),
            annotations: Annotations::default(),
            deprecated: None,
            tool_id: Uuid::new_v4(),
            tool_version: 1,
        };
        crate::tools::publish(world, tenant, &Catalog::new(vec![tool], Vec::new())).await;
        self.ids.push(("{offered}", name));
    }

    /// The text with the ids filled in.
    pub fn fill(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
    }

    /// A response without the ids of the request.
    pub fn forget_ids(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(id.as_str(), name))
    }

    /// The same placeholders for resources that were never created.
    pub fn unknown(&self) -> Self {
        let ids = self.ids.iter().map(|(name, id)| {
            let other = match *name {
                "{lease}" => json!({"request": Uuid::new_v4(), "fence": 1}).to_string(),
                "{offered}" => format!("tool{}", Uuid::new_v4().simple()),
                _ => Uuid::try_parse(id).map_or_else(|_| id.clone(), |_| Uuid::new_v4().to_string()),
            };
            (*name, other)
        });
        Self { mark: self.mark.clone(), curator: self.curator.clone(), caller: None, ids: ids.collect() }
    }

    /// All that the tenant's curator can read, for comparison.
    pub async fn seen(&self, world: &World) -> Vec<Value> {
        let mut seen = Vec::new();
        for path in
            ["/breadcrumbs?include_context=true&limit=1000", "/breadcrumbs/{record}/full", "/secrets", "/agents"]
        {
            seen.push(world.get(&self.fill(path), &self.curator).await.ok().json());
        }
        if self.ids.iter().any(|(name, _)| *name == "{request}") {
            seen.push(world.get(&self.fill("/calls/{request}"), &self.curator).await.ok().json());
        }
        seen
    }
}
