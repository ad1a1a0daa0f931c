//! The stream of a task's updates, within limits, and the task that they describe.

use std::io;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use rcrt_a2a_types::{Artifact, ArtifactUpdate, Reply, StatusUpdate, StreamResponse, Task, TaskStatus};
use rcrt_breadcrumb::BodyStream;
use rcrt_breadcrumb::foreign_text::line;
use sse_stream::SseByteStream;

use crate::answer::{RemoteError, garbage, result};

/// The most bytes of one stream.
const MAX_STREAM: usize = 4 * 1024 * 1024;
/// The most artifacts of one task.
const MAX_ARTIFACTS: usize = 100;

/// Updates as an agent sends them. After an error there is none.
pub(crate) type Updates = BoxStream<'static, Result<StreamResponse, RemoteError>>;

/// The updates in a body of server-sent events.
pub(crate) fn read(body: BodyStream, is_rpc: bool) -> Updates {
    let mut bytes = 0;
    let bounded = body.map(move |piece| -> io::Result<Bytes> {
        let piece = piece.map_err(|error| io::Error::other(error.message))?;
        bytes += piece.len();
        if bytes > MAX_STREAM {
            return Err(io::Error::other(format!("the agent's stream is larger than {MAX_STREAM} bytes")));
        }
        Ok(piece)
    });
    let updates = SseByteStream::new(bounded).filter_map(move |event| {
        let update = match event {
            Ok(event) => event.data.map(|data| update(&data, is_rpc)),
            Err(error) => Some(Err(RemoteError::Network(line(&error.to_string(), 200)))),
        };
        std::future::ready(update)
    });
    updates.boxed()
}

fn update(data: &str, is_rpc: bool) -> Result<StreamResponse, RemoteError> {
    let answer = serde_json::from_str(data)
        .map_err(|error| garbage(&format!("has an event that is not JSON: {}", line(&error.to_string(), 100))))?;
    result(answer, is_rpc)
}

/// What the first update says.
pub(crate) fn reply(first: StreamResponse) -> Reply {
    match first {
        StreamResponse::Message(message) => Reply::Message(message),
        StreamResponse::Task(task) => Reply::Task(task),
        StreamResponse::StatusUpdate(StatusUpdate { task_id, context_id, status }) => {
            Reply::Task(task(task_id, context_id, status))
        }
        StreamResponse::ArtifactUpdate(ArtifactUpdate { task_id, context_id, artifact, .. }) => {
            let artifacts = Some(vec![artifact]);
            Reply::Task(Task { artifacts, ..task(task_id, context_id, TaskStatus::default()) })
        }
    }
}

fn task(id: String, context_id: String, status: TaskStatus) -> Task {
    Task { id, context_id, status, artifacts: None, history: None, metadata: None }
}

/// Adds a further update to the task. What is about another task is ignored.
pub(crate) fn add(task: &mut Task, update: StreamResponse) {
    match update {
        StreamResponse::Task(whole) if whole.id == task.id => *task = whole,
        StreamResponse::StatusUpdate(update) if update.task_id == task.id => task.status = update.status,
        StreamResponse::ArtifactUpdate(update) if update.task_id == task.id => {
            add_artifact(task.artifacts.get_or_insert_default(), update);
        }
        _ => {}
    }
}

fn add_artifact(artifacts: &mut Vec<Artifact>, update: ArtifactUpdate) {
    let ArtifactUpdate { artifact, append, .. } = update;
    let is_full = artifacts.len() >= MAX_ARTIFACTS;
    match artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id) {
        Some(known) if append => known.parts.extend(artifact.parts),
        Some(known) => *known = artifact,
        None if is_full => {}
        None => artifacts.push(artifact),
    }
}
