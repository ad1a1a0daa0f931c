//! Sends a message to an agent. What the agent refuses of the way it is sent is left out, because a
//! refused message was not accepted.

use futures::StreamExt;
use rcrt_a2a_types::{ErrorKind, Message, Reply, StreamResponse};
use serde_json::Value;

use crate::agent::Interface;
use crate::answer::{RemoteError, garbage};
use crate::remote::Remote;
use crate::task::short_id;
use crate::updates::{self, Updates};

/// How a message is sent.
pub(crate) struct Sent<'m> {
    pub interface: &'m Interface,
    pub message: &'m Message,
    /// The agent is asked for updates.
    pub is_streamed: bool,
}

/// Sends a message. An agent that refuses the push configuration has not accepted the message, so
/// it gets the message without.
pub(crate) async fn deliver(
    remote: &Remote<'_>,
    sent: &Sent<'_>,
    push: Option<&Value>,
) -> Result<(Reply, Option<Updates>), RemoteError> {
    let delivered = match deliver_once(remote, sent, push).await {
        Err(RemoteError::Agent(error)) if push.is_some() && is_about_push(error.kind) => {
            deliver_once(remote, sent, None).await?
        }
        delivered => delivered?,
    };
    match &delivered.0 {
        Reply::Task(task) if short_id(&task.id).is_empty() => Err(garbage("has a task without an id")),
        _ => Ok(delivered),
    }
}

/// Whether a refusal can be about the push configuration, such as a URL that the agent does not
/// accept.
fn is_about_push(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PushNotificationNotSupported | ErrorKind::InvalidParams)
}

/// An agent that sends no updates after all is asked without them: its refusal means that it did
/// not accept the message.
async fn deliver_once(
    remote: &Remote<'_>,
    sent: &Sent<'_>,
    push: Option<&Value>,
) -> Result<(Reply, Option<Updates>), RemoteError> {
    let Sent { interface, message, is_streamed } = *sent;
    if is_streamed {
        match remote.stream(interface, message, push).await {
            Ok(mut updates) => {
                let first = remote.in_time(first_of(&mut updates)).await?;
                return Ok((updates::reply(first), Some(updates)));
            }
            Err(error) if !error.is_unsupported() => return Err(error),
            Err(_) => {}
        }
    }
    Ok((remote.send(interface, message, push).await?, None))
}

async fn first_of(updates: &mut Updates) -> Result<StreamResponse, RemoteError> {
    let none = || Err(RemoteError::Network("the agent's stream of updates is empty".into()));
    updates.next().await.unwrap_or_else(none)
}
