//! Writing the response of a runner.

use std::sync::Arc;

use rcrt_breadcrumb::{Lease, NewBreadcrumb, StoreError};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::rights::actor::Actor;
use crate::writing::{PreparedRecord, WriteOp, WriteOutcome, Writer};

/// The caller has validated the response. Without a valid lease nothing is written.
pub(crate) async fn complete(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    actor: Actor,
    lease: Lease,
    response: NewBreadcrumb,
) -> Result<Uuid> {
    let id = Uuid::now_v7();
    let creator = actor.creator_of(&response);
    let is_attempt = !response.context.contains_key("error_code");
    let response = PreparedRecord::new(id, response, Some(creator));
    match writer.write(owner_id, WriteOp::Complete { lease, response, is_attempt }).await? {
        WriteOutcome::Written(_) => Ok(id),
        WriteOutcome::Refused => Err(StoreError::LeaseLost { request: lease.request }.into()),
    }
}
