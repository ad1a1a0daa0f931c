//! What a server sends without being asked: progress, changes of its tools, and, before 2026-07-28,
//! questions.

use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use tokio::sync::watch;

use crate::questions::Questions;

#[derive(Clone)]
pub struct Handler {
    pub progress: ProgressDispatcher,
    /// Counts the announced changes of the list of tools.
    pub changes: watch::Sender<u64>,
    pub questions: Questions,
}

impl ClientHandler for Handler {
    async fn on_progress(&self, progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.handle_notification(progress).await;
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.questions.answer(&question))
    }

    #[allow(deprecated)] // By the newest revision. Servers use it.
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(rmcp::model::ListRootsResult::new(self.questions.roots().map(rmcp::model::Root::new).collect()))
    }

    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("rcrt", env!("CARGO_PKG_VERSION"));
        // The newest revision has no handshake that could name it.
        ClientConfig::new(self.questions.capabilities(), program)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
