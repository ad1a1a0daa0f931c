//! The trait [`Runners`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{ReportReply, RunnerReport, StoreError};

/// The live runners of the tenant. A write of a tool waits for them, so that the next call uses the
/// new version.
#[async_trait]
pub trait Runners: Send + Sync + 'static {
    /// Reports that a runner is live. For runners.
    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError>;

    /// The live runners that do not yet use the newest version of this tool. A store whose writes
    /// are waited for elsewhere returns none.
    async fn runners_behind(&self, _tool: Uuid) -> Result<Vec<Uuid>, StoreError> {
        Ok(Vec::new())
    }
}
