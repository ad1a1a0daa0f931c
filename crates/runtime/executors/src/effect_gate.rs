//! Separates computing from side effects. A call can run before its request is committed, so that
//! neither waits for the other: until the gate opens it only computes, and every side effect waits.
//! So a crash, or a write that is refused, leaves no effect of a call that was never committed.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// A call's end of it.
#[derive(Debug, Clone)]
pub struct EffectGate(Option<Waits>);

#[derive(Debug, Clone)]
struct Waits {
    given: watch::Receiver<bool>,
    wanted: Arc<Notify>,
}

/// Opens the gate. Dropped without it, the call never has a side effect.
#[derive(Debug)]
pub struct EffectGateOpener {
    given: watch::Sender<bool>,
    wanted: Arc<Notify>,
}

/// The gate was not opened, and will not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeverOpened;

impl EffectGate {
    /// For a call that may do what its tool may do from its beginning.
    pub fn opened() -> Self {
        Self(None)
    }

    /// Still to be given.
    pub fn closed() -> (EffectGateOpener, Self) {
        let ((opener, given), wanted) = (watch::channel(false), Arc::new(Notify::new()));
        (EffectGateOpener { given: opener, wanted: wanted.clone() }, Self(Some(Waits { given, wanted })))
    }

    /// Returns once it is given.
    pub async fn wait(&self) -> Result<(), NeverOpened> {
        let Some(gate) = &self.0 else { return Ok(()) };
        gate.wanted.notify_one();
        gate.given.clone().wait_for(|is_given| *is_given).await.map(|_| ()).map_err(|_| NeverOpened)
    }
}

impl EffectGateOpener {
    /// Returns when the call has come to where it would do something.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    pub fn open(self) {
        // The call may have ended already.
        self.given.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_run_waits_until_the_gate_opens_and_fails_if_it_never_does() {
        assert_eq!(EffectGate::opened().wait().now_or_never(), Some(Ok(())));
        let (opener, gate) = EffectGate::closed();
        let other = gate.clone();
        assert_eq!(opener.wanted().now_or_never(), None);
        assert_eq!(gate.wait().now_or_never(), None);
        assert_eq!(opener.wanted().now_or_never(), Some(()));
        opener.open();
        assert_eq!(gate.wait().now_or_never(), Some(Ok(())));
        assert_eq!(other.wait().now_or_never(), Some(Ok(())), "it stays open after the opener is dropped");
        let (opener, gate) = EffectGate::closed();
        drop(opener);
        assert_eq!(gate.wait().now_or_never(), Some(Err(NeverOpened)));
    }
}
