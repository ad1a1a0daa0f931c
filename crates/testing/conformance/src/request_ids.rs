//! A request id belongs to the agent that wrote the request: another agent's request may have the
//! same id, and its response must not be accepted.

use futures::StreamExt;
use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, ContextMatch, ContextPath, EventNumber, Identity, MatchOp,
    NewBreadcrumb, Role, Search, Selector, StoreError, SubscribeOptions, SubscriptionItem, ToolRequest, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Agent, Harness, PATIENCE, answer_to, claim_of, fields, note, noted};

/// A victim waits for the response to its request. A forger has used the same request id and got
/// its response first.
struct Requests {
    victim: Agent,
    forger: Agent,
    curator: Agent,
    runner: Agent,
    /// The record of the victim's request.
    request: Uuid,
    forged: Uuid,
}

impl Requests {
    async fn create(harness: &impl Harness) -> Self {
        let tenant = harness.tenant().await;
        let common = [Role::Emitter, Role::Subscriber];
        let victim = harness.agent_with(tenant, &common).await;
        let forger = harness.agent_with(tenant, &common).await;
        let curator = harness.agent_with(tenant, &[Role::Curator]).await;
        let runner = harness.agent_with(tenant, &[Role::Runner]).await;
        let asks = |tool| ToolRequest::record(tool, json!({}), Some("shared"), None);
        forger.create(asks("fast"), None).await.unwrap();
        let forged = answer(&runner, "walrus forged").await;
        let request = victim.create(asks("slow"), None).await.unwrap().id;
        Self { victim, forger, curator, runner, request, forged }
    }

    async fn answered(&self) -> Uuid {
        answer(&self.runner, "walrus honest").await
    }
}

/// Completes the oldest request and returns the response's id.
async fn answer(runner: &Agent, word: &str) -> Uuid {
    let claim = runner.claim(&claim_of(1)).await.unwrap().remove(0);
    runner.start(claim.lease, 1).await.unwrap();
    runner.complete(claim.lease, answer_to(&claim, json!({"word": word}))).await.unwrap()
}

/// The selectors that name a request id.
fn selectors() -> [Selector; 3] {
    let tag = || vec!["request:shared".to_owned()];
    let path = ContextPath::try_from("$.request_id".to_owned()).unwrap();
    let named = ContextMatch { path, op: MatchOp::Eq, value: "shared".into() };
    [
        Selector { all_tags: tag(), ..Selector::default() },
        Selector { any_tags: tag(), ..Selector::default() },
        Selector { schema_name: Some("tool.response.v1".into()), context_match: vec![named], ..Selector::default() },
    ]
}

async fn listed(agent: &Agent, selector: Selector) -> Vec<Uuid> {
    let query = BreadcrumbQuery { selector, ..BreadcrumbQuery::default() };
    let mut ids: Vec<Uuid> = agent.list(&query).await.unwrap().iter().map(|item| item.id).collect();
    ids.sort();
    ids
}

pub async fn a_list_by_request_id_has_only_ones_own_response(harness: &impl Harness) {
    let requests = Requests::create(harness).await;
    for selector in selectors() {
        assert!(listed(&requests.victim, selector.clone()).await.is_empty(), "before the response: {selector:?}");
        assert_eq!(listed(&requests.forger, selector).await, [requests.forged]);
    }
    let honest = requests.answered().await;
    for selector in selectors() {
        assert_eq!(listed(&requests.victim, selector.clone()).await, [honest], "{selector:?}");
        assert_eq!(listed(&requests.forger, selector.clone()).await, [requests.forged], "{selector:?}");
        // Curators and runners see all of the tenant.
        for agent in [&requests.curator, &requests.runner] {
            assert_eq!(listed(agent, selector.clone()).await, [requests.forged, honest], "{selector:?}");
        }
        // A tool that acts for the victim sees what the victim sees.
        let acting = requests.runner.on_behalf_of(requests.victim.identity.agent_id).unwrap();
        let query = BreadcrumbQuery { selector, ..BreadcrumbQuery::default() };
        let ids: Vec<Uuid> = acting.list(&query).await.unwrap().iter().map(|item| item.id).collect();
        assert_eq!(ids, [honest]);
    }
    // The holder of a grant sees it too.
    let colleague = harness.agent_with(requests.victim.identity.owner_id, &[Role::Subscriber]).await;
    let [by_tag, ..] = selectors();
    assert!(listed(&colleague, by_tag.clone()).await.is_empty());
    let grant = AclChange::agent(honest, colleague.identity.agent_id, [Action::ReadContext]);
    requests.curator.grant(&grant).await.unwrap();
    assert_eq!(listed(&colleague, by_tag).await, [honest]);
    // A selector without a request id finds both, because responses are records of the tenant.
    let all = Selector { schema_name: Some("tool.response.v1".into()), ..Selector::default() };
    assert_eq!(listed(&requests.victim, all).await, [requests.forged, honest]);
}

pub async fn a_search_by_request_id_has_only_ones_own_response(harness: &impl Harness) {
    let requests = Requests::create(harness).await;
    let honest = requests.answered().await;
    for selector in selectors() {
        let search = Search { selector, ..Search::of("walrus") };
        for (agent, expected) in [(&requests.victim, honest), (&requests.forger, requests.forged)] {
            let found = agent.search(&search).await.unwrap().items;
            assert_eq!(found.iter().map(|item| item.id).collect::<Vec<_>>(), [expected]);
        }
        assert_eq!(requests.curator.search(&search).await.unwrap().items.len(), 2);
    }
}

/// The records of a stream's events, up to this one.
async fn heard(agent: &Agent, options: SubscribeOptions, last: Uuid) -> Vec<Uuid> {
    let mut stream = agent.subscribe(options).await.unwrap();
    let mut records = Vec::new();
    while records.last() != Some(&last) {
        let item = tokio::time::timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end").unwrap();
        if let SubscriptionItem::Event(event) = item {
            records.push(event.breadcrumb_id);
        }
    }
    records
}

pub async fn a_stream_by_request_id_has_only_ones_own_response(harness: &impl Harness) {
    let requests = Requests::create(harness).await;
    let honest = requests.answered().await;
    // Each gets another response, so that the test knows when its stream is complete.
    requests.forger.create(ToolRequest::record("fast", json!({}), Some("shared"), None), None).await.unwrap();
    let forged_last = answer(&requests.runner, "forged again").await;
    requests.victim.create(ToolRequest::record("slow", json!({}), Some("shared"), None), None).await.unwrap();
    let honest_last = answer(&requests.runner, "honest again").await;
    let from =
        |filters: Vec<Selector>, by_selectors| SubscribeOptions { after: Some(EventNumber(0)), filters, by_selectors };
    for selector in selectors() {
        let filtered = || from(vec![selector.clone()], false);
        assert_eq!(heard(&requests.victim, filtered(), honest_last).await, [honest, honest_last], "{selector:?}");
        assert_eq!(
            heard(&requests.forger, filtered(), forged_last).await,
            [requests.forged, forged_last],
            "{selector:?}"
        );
        let all = heard(&requests.curator, filtered(), honest_last).await;
        assert_eq!(all, [requests.forged, honest, forged_last, honest_last], "{selector:?}");
    }
    // The same with the stored selectors of an agent.
    let [by_tag, ..] = selectors();
    requests.victim.create_selector(by_tag).await.unwrap();
    assert_eq!(heard(&requests.victim, from(Vec::new(), true), honest_last).await, [honest, honest_last]);
}

/// The creator of a record can grant access to it, and the response to a private request is created
/// by the agent that made the request.
pub async fn only_a_curator_grants_access_to_a_response(harness: &impl Harness) {
    let requests = Requests::create(harness).await;
    let honest = requests.answered().await;
    let asked = NewBreadcrumb {
        visibility: Visibility::Private,
        ..ToolRequest::record("fast", json!({}), Some("shared"), None)
    };
    requests.forger.create(asked, None).await.unwrap();
    let claim = requests.runner.claim(&claim_of(1)).await.unwrap().remove(0);
    requests.runner.start(claim.lease, 1).await.unwrap();
    let response =
        NewBreadcrumb { visibility: Visibility::Private, ..answer_to(&claim, json!({"word": "walrus forged"})) };
    let for_forger = requests.runner.on_behalf_of(requests.forger.identity.agent_id).unwrap();
    let forged = for_forger.complete(claim.lease, response).await.unwrap();
    let Identity { agent_id: victim, owner_id: tenant, .. } = requests.victim.identity.clone();
    let wanted = [Action::ReadContext, Action::Subscribe];
    for grant in [AclChange::agent(forged, victim, wanted), AclChange::tenant(forged, tenant, wanted)] {
        match requests.forger.grant(&grant).await {
            Err(StoreError::Forbidden(why)) => assert!(why.contains("tool.response.v1"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    requests.victim.create(ToolRequest::record("slow", json!({}), Some("shared"), None), None).await.unwrap();
    let last = answer(&requests.runner, "walrus last").await;
    for selector in selectors() {
        assert_eq!(listed(&requests.victim, selector.clone()).await, [honest, last], "{selector:?}");
        let options = SubscribeOptions { after: Some(EventNumber(0)), filters: vec![selector], by_selectors: false };
        assert_eq!(heard(&requests.victim, options, last).await, [honest, last]);
    }
    // The creator can revoke a curator's grant.
    let grant = AclChange::agent(forged, victim, wanted);
    requests.curator.grant(&grant).await.unwrap();
    let [by_tag, ..] = selectors();
    assert_eq!(listed(&requests.victim, by_tag.clone()).await, [honest, forged, last]);
    assert_eq!(requests.forger.revoke(&grant).await.unwrap(), 1);
    assert_eq!(listed(&requests.victim, by_tag).await, [honest, last]);
}

pub async fn a_response_outlives_the_record_of_its_request(harness: &impl Harness) {
    let requests = Requests::create(harness).await;
    let honest = requests.answered().await;
    requests.victim.delete(requests.request, None).await.unwrap();
    let [by_tag, ..] = selectors();
    assert_eq!(listed(&requests.victim, by_tag.clone()).await, [honest]);
    assert_eq!(listed(&requests.forger, by_tag).await, [requests.forged]);
}

pub async fn only_responses_have_the_response_tag(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let emitter = harness.agent_with(tenant, &[Role::Emitter]).await;
    let curator = harness.agent(tenant).await;
    let forged = || noted("Response of slow", json!({"request_id": "shared"}), &["tool:response", "request:shared"]);
    for agent in [&emitter, &curator] {
        assert_eq!(fields(agent.create(forged(), None).await), ["tags"]);
        let named = NewBreadcrumb { schema_name: Some("tool.response.v1".into()), ..forged() };
        assert_eq!(fields(agent.create(named, None).await), ["schema_name"]);
        let id = agent.create(note("Plain"), None).await.unwrap().id;
        let tagged = BreadcrumbChanges { tags: Some(forged().tags), ..BreadcrumbChanges::default() };
        assert_eq!(fields(agent.update(id, 1, tagged).await), ["tags"]);
    }
}
