//! Applies definitions to the responses of a runner that takes calls while they are written.

use std::sync::Arc;

use rcrt_breadcrumb::{LocalRunner, Profiles, Reservation, SpeculativeResponse, UncommittedCall};

use crate::layer::Layer;

pub(crate) struct DefinedResponses {
    pub runner: Arc<dyn LocalRunner>,
    pub layer: Layer,
}

impl LocalRunner for DefinedResponses {
    fn reserve(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<Reservation> {
        self.runner.reserve(tool, profiles, uncommitted)
    }

    fn reserve_speculative(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<(Reservation, SpeculativeResponse)> {
        let (reservation, answer) = self.runner.reserve_speculative(tool, profiles, uncommitted)?;
        let layer = self.layer.clone();
        Some((reservation, Box::pin(async move { Some(layer.response_as_defined(answer.await?).await) })))
    }
}
