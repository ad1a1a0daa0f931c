//! Notifications: what changed since a client asked. They come from the event stream, so they reach
//! the clients of every server process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    Breadcrumbs, Event, EventKind, EventNumber, Registration, Selector, StoreError, SubscribeOptions, SubscriptionItem,
    SubscriptionStream, schema_names,
};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use tokio::time::{Instant, Interval, interval, sleep, sleep_until};

use crate::Principal;
use crate::published;
use crate::resources::{is_internal, record_uri, schema_uri};

/// Changes within this time become one notification of each kind.
const TOGETHER: Duration = Duration::from_millis(200);
/// The pause after the event stream broke.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a session is checked for being closed.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The resources that a client of an earlier revision subscribed to in its session.
pub(crate) type Subscribed = Arc<Mutex<BTreeSet<String>>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(String),
}

/// The client that is notified.
pub(crate) enum Sink {
    /// A stream of `subscriptions/listen`.
    Stream(SubscriptionSink),
    /// A session of an earlier revision, which gets the changes of all lists.
    Session(Peer<RoleServer>, Subscribed),
}

impl Sink {
    fn wants(&self, change: &Change) -> bool {
        match (self, change) {
            (Self::Stream(sink), change) => {
                let accepted = sink.accepted();
                match change {
                    Change::Tools => accepted.tools_list_changed == Some(true),
                    Change::Prompts => accepted.prompts_list_changed == Some(true),
                    Change::Resources => accepted.resources_list_changed == Some(true),
                    Change::Updated(uri) => {
                        accepted.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(uri))
                    }
                }
            }
            (Self::Session(_, subscribed), Change::Updated(uri)) => subscribed.lock().contains(uri),
            (Self::Session(..), _) => true,
        }
    }

    /// All changes that the client could have missed.
    fn everything(&self) -> BTreeSet<Change> {
        let mut all = BTreeSet::from([Change::Tools, Change::Prompts, Change::Resources]);
        if let Self::Session(_, subscribed) = self {
            all.extend(subscribed.lock().iter().cloned().map(Change::Updated));
        }
        all
    }

    /// Returns whether the client is still there.
    async fn notify(&self, change: Change) -> bool {
        match self {
            Self::Stream(sink) => match change {
                Change::Tools => sink.notify_tool_list_changed().await.is_ok(),
                Change::Prompts => sink.notify_prompt_list_changed().await.is_ok(),
                Change::Resources => sink.notify_resource_list_changed().await.is_ok(),
                Change::Updated(uri) => sink.notify_resource_updated(uri).await.is_ok(),
            },
            Self::Session(peer, _) => match change {
                Change::Tools => peer.notify_tool_list_changed().await.is_ok(),
                Change::Prompts => peer.notify_prompt_list_changed().await.is_ok(),
                Change::Resources => peer.notify_resource_list_changed().await.is_ok(),
                Change::Updated(uri) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
                }
            },
        }
    }

    /// Returns when the session is closed. A stream ends with its request.
    async fn closed(&self) {
        match self {
            Self::Stream(_) => std::future::pending().await,
            Self::Session(peer, _) => {
                while !peer.is_transport_closed() {
                    sleep(CHECK_EVERY).await;
                }
            }
        }
    }
}

/// Notifies a client until it leaves or gets no more notifications. A client whose session is
/// resumed is first notified of everything.
pub(crate) async fn follow(principal: &dyn Principal, sink: &Sink, is_resumed: bool) {
    tokio::select! {
        () = principal.ended() => {}
        () = sink.closed() => {}
        () = notify(principal, sink, is_resumed) => {}
    }
}

async fn notify(principal: &dyn Principal, sink: &Sink, is_resumed: bool) {
    let arrived_at = principal.arrived_at();
    let mut positions = Positions { own: arrived_at, catalog: arrived_at, tools: None };
    let mut waiting = if is_resumed { sink.everything() } else { BTreeSet::new() };
    while let Err(error) = read(principal, sink, &mut positions, &mut waiting).await {
        tracing::debug!(%error, "the event stream of an MCP client broke; following again");
        sleep(PAUSE).await;
    }
}

/// The last events that were read.
struct Positions {
    own: Option<EventNumber>,
    catalog: Option<EventNumber>,
    /// The tools that were read last, for an agent that sees no events of the catalog.
    tools: Option<Vec<Registration>>,
}

/// Reads events until the client leaves.
async fn read(
    principal: &dyn Principal,
    sink: &Sink,
    positions: &mut Positions,
    waiting: &mut BTreeSet<Change>,
) -> Result<(), StoreError> {
    let mut own = events(&**principal.store(), positions.own, None).await?;
    let mut catalog: BoxStream<'static, _> = stream::pending().boxed();
    let mut looks = None;
    if let Some(every) = principal.reads_catalog_every().filter(|_| sink.wants(&Change::Tools)) {
        looks = Some(interval(every));
    } else if sink.wants(&Change::Tools) {
        let filter = Selector { schema_name: Some(schema_names::TOOL_CATALOG.into()), ..Selector::default() };
        catalog = events(&*principal.followed(), positions.catalog, Some(filter)).await?;
    }
    let mut flush_at = (!waiting.is_empty()).then(|| Instant::now() + TOGETHER);
    loop {
        let found = tokio::select! {
            item = catalog.next() => {
                changes(item, &mut positions.catalog, &[Change::Tools], |_| vec![Change::Tools])?
            }
            item = own.next() => {
                changes(item, &mut positions.own, &[Change::Prompts, Change::Resources], of_event)?
            }
            () = tick(&mut looks) => {
                let tools = principal.catalog().await?.tools;
                let before = positions.tools.replace(tools);
                let is_new = before.is_some() && before != positions.tools;
                if is_new { vec![Change::Tools] } else { Vec::new() }
            }
            () = sleep_until(flush_at.unwrap_or_else(Instant::now)), if flush_at.is_some() => {
                flush_at = None;
                for change in std::mem::take(waiting) {
                    if !sink.notify(change).await {
                        return Ok(());
                    }
                }
                continue;
            }
        };
        waiting.extend(found.into_iter().filter(|change| sink.wants(change)));
        if !waiting.is_empty() && flush_at.is_none() {
            flush_at = Some(Instant::now() + TOGETHER);
        }
    }
}

/// The next time to read the catalog.
async fn tick(looks: &mut Option<Interval>) {
    match looks {
        Some(looks) => {
            looks.tick().await;
        }
        None => std::future::pending().await,
    }
}

async fn events(
    store: &dyn Breadcrumbs,
    after: Option<EventNumber>,
    filter: Option<Selector>,
) -> Result<SubscriptionStream, StoreError> {
    let options = SubscribeOptions { filters: filter.into_iter().collect(), ..SubscribeOptions::all(after) };
    store.subscribe(options).await
}

/// What changed with the next item of a stream, which moves its position. After missed events, all
/// lists can have changed.
fn changes(
    item: Option<Result<SubscriptionItem, StoreError>>,
    position: &mut Option<EventNumber>,
    all: &[Change],
    of_event: impl Fn(&Event) -> Vec<Change>,
) -> Result<Vec<Change>, StoreError> {
    let item = item.unwrap_or_else(|| Err(StoreError::Unavailable("the event stream ended".into())))?;
    let (number, found) = match item {
        SubscriptionItem::Event(event) => (event.number, of_event(&event)),
        SubscriptionItem::Skipped(number) => (number, Vec::new()),
        SubscriptionItem::Missed { first } => (EventNumber(first.0 - 1), all.to_vec()),
    };
    *position = Some(number);
    Ok(found)
}

fn of_event(event: &Event) -> Vec<Change> {
    let schema = event.schema_name.as_deref();
    if is_internal(schema) {
        return Vec::new();
    }
    let mut found = vec![Change::Updated(record_uri(event.breadcrumb_id))];
    found.extend(schema.map(|name| Change::Updated(schema_uri(name))));
    if matches!(schema, Some(schema_names::TOOL_GUIDE | published::PROMPT)) {
        found.push(Change::Prompts);
    }
    if event.kind != EventKind::Updated || schema == Some(published::RESOURCE) {
        found.push(Change::Resources);
    }
    found
}
