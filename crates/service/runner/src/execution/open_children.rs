//! The calls that a call made and waits for: it gives its slot to others meanwhile, and cancels
//! what is left of them when it ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use rcrt_breadcrumb::{Breadcrumbs, NewBreadcrumb, OpError, Sensitivity, Visibility};
use rcrt_executors::{ChildCallHost, ChildWait};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::coordination::response_hints::ResponseHints;
use crate::coordination::slots::Slot;

pub(crate) struct OpenChildren {
    /// Acts for the agent that asked for the call.
    store: Arc<dyn Breadcrumbs>,
    hints: Arc<ResponseHints>,
    /// The request's own, which its children inherit.
    seen: (Visibility, Sensitivity),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The call's slot while it runs.
    slot: Option<Slot>,
    waits: usize,
    /// Requests without a response.
    open: BTreeSet<Uuid>,
}

impl OpenChildren {
    pub fn new(store: Arc<dyn Breadcrumbs>, hints: Arc<ResponseHints>, seen: (Visibility, Sensitivity)) -> Arc<Self> {
        Arc::new(Self { store, hints, seen, state: Mutex::default() })
    }

    /// Keeps the slot until [`Self::release`].
    pub fn hold(&self, slot: Option<Slot>) {
        self.state.lock().slot = slot;
    }

    /// The call needs no slot any more.
    pub fn release(&self) {
        let slot = self.state.lock().slot.take();
        drop(slot);
    }

    /// Cancels what the call waited for. If that fails, their deadlines end them.
    pub async fn cancel(&self) {
        let open = std::mem::take(&mut self.state.lock().open);
        let cancelled = join_all(open.into_iter().map(|request| async move {
            if let Err(error) = self.store.cancel(request).await {
                tracing::warn!(%request, %error, "a call that nothing waits for any more cannot be cancelled");
            }
        }));
        cancelled.await;
    }
}

impl ChildCallHost for OpenChildren {
    fn prepare(self: Arc<Self>, request: &mut NewBreadcrumb) -> Result<Box<dyn ChildWait>, OpError> {
        (request.visibility, request.sensitivity) = self.seen;
        let mut state = self.state.lock();
        if state.slot.as_mut().is_some_and(|slot| !slot.may_wait()) {
            let message = "too many calls on this runner wait for calls that they made; try again later";
            return Err(OpError::new("ResourceExhausted", message));
        }
        state.waits += 1;
        drop(state);
        Ok(Box::new(Wait { children: self, request: None }))
    }
}

struct Wait {
    children: Arc<OpenChildren>,
    request: Option<Uuid>,
}

impl ChildWait for Wait {
    fn begin(&mut self, request: Uuid) -> Arc<Notify> {
        self.request = Some(request);
        let mut state = self.children.state.lock();
        state.open.insert(request);
        if let Some(slot) = &mut state.slot {
            slot.park();
        }
        drop(state);
        self.children.hints.listen(request)
    }

    fn answered(&mut self) {
        if let Some(request) = self.request {
            self.children.state.lock().open.remove(&request);
            self.children.hints.forget(request);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(request) = self.request {
            self.children.hints.forget(request);
        }
        let mut state = self.children.state.lock();
        state.waits -= 1;
        if state.waits == 0
            && let Some(slot) = &mut state.slot
        {
            slot.resume();
        }
    }
}
