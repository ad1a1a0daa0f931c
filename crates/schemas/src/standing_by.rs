//! The answers of a runner that takes calls as they are written, as their definition says.

use std::sync::Arc;

use breadcrumb::{Birth, EarlyAnswer, Offer, Profiles, Standby};

use crate::layer::Layer;

pub(crate) struct AsDefined {
    pub standby: Arc<dyn Standby>,
    pub layer: Layer,
}

impl Standby for AsDefined {
    fn offer(&self, tool: &str, profiles: &Profiles, birth: &dyn Fn() -> Birth) -> Option<Offer> {
        self.standby.offer(tool, profiles, birth)
    }

    fn offer_early(&self, tool: &str, profiles: &Profiles, birth: &dyn Fn() -> Birth) -> Option<(Offer, EarlyAnswer)> {
        let (offer, answer) = self.standby.offer_early(tool, profiles, birth)?;
        let layer = self.layer.clone();
        Some((offer, Box::pin(async move { Some(layer.response_as_defined(answer.await?).await) })))
    }
}
