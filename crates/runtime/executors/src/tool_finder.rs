//! What a call can find on behalf of its caller: tools and services.

use async_trait::async_trait;
use rcrt_breadcrumb::{Registration, ToolFailure};
use rcrt_tool_search::{FoundService, Question};

/// The tools and services that the caller of a call can call.
#[async_trait]
pub trait ToolFinder: Send + Sync + 'static {
    /// The tools that fit best, the best first, each with its score from 0 to 1.
    async fn tools(&self, question: Question, limit: usize) -> Result<Vec<(Registration, f64)>, ToolFailure>;

    /// The services that fit best, the best first.
    async fn services(&self, question: Question) -> Result<Vec<FoundService>, ToolFailure>;
}

/// Outside of a runner there are no tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct FindsNothing;

#[async_trait]
impl ToolFinder for FindsNothing {
    async fn tools(&self, _question: Question, _limit: usize) -> Result<Vec<(Registration, f64)>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn services(&self, _question: Question) -> Result<Vec<FoundService>, ToolFailure> {
        Ok(Vec::new())
    }
}
