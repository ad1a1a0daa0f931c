//! Follows events: `RCRT_SERVER=http://127.0.0.1:8081 RCRT_TOKEN=$(cat .rcrt/token) cargo run -p
//! rcrt-client --example follow_events`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use futures::StreamExt;
use rcrt_breadcrumb::{Events, NewBreadcrumb, Records};
use rcrt_client::{Client, Credentials};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("RCRT_SERVER")?.parse()?;
    let client = Client::new(server, Credentials::Token(std::env::var("RCRT_TOKEN")?));

    // All events from now on. A program that stores the number of the last processed event passes
    // it instead.
    let mut events = client.events(None).await?;
    let note: NewBreadcrumb = serde_json::from_value(json!({"title": "a note", "tags": ["guide"]}))?;
    let note = client.create(note, None).await?;

    while let Some(event) = events.next().await {
        let event = event?;
        println!("{} {:?} {}", event.number, event.kind, event.breadcrumb_id);
        if event.breadcrumb_id == note.id {
            break;
        }
    }
    Ok(())
}
