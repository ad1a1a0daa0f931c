//! The response of a runner.

use breadcrumb::{Lease, NewBreadcrumb, StoreError, Violations, schema_names};
use uuid::Uuid;

use crate::failure::Done;
use crate::records;
use crate::transaction::TenantTransaction;

pub(crate) fn check(response: &NewBreadcrumb) -> Result<(), Violations> {
    response.check()?;
    if response.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) {
        Ok(())
    } else {
        Err(Violations::one("schema_name", format!("must be {}", schema_names::TOOL_RESPONSE)))
    }
}

/// The response was checked before. The call is finished first: whoever has no lease any more writes nothing.
pub(crate) async fn complete(
    mut tx: TenantTransaction,
    agent: Uuid,
    lease: Lease,
    response: &NewBreadcrumb,
) -> Done<Uuid> {
    let id = Uuid::now_v7();
    let finished = sqlx::query(
        "UPDATE calls SET state = 'finished', response = $3, finished_at = clock_timestamp(), runner_id = NULL,
            lease_until = NULL
         WHERE request = $1 AND fence = $2 AND state IN ('claimed', 'running') AND lease_until > clock_timestamp()",
    )
    .bind(lease.request)
    .bind(lease.fence)
    .bind(id)
    .execute(tx.connection())
    .await?;
    if finished.rows_affected() == 0 {
        return Err(StoreError::LeaseLost { request: lease.request }.into());
    }
    records::insert(&mut tx, id, response, Some(agent), None).await?;
    tx.commit().await?;
    Ok(id)
}
