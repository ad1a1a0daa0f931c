//! What a cluster does wrong, once for each time that a test asks for it.

/// The first five are of the API server, the others of the node that gets the next program's pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The next request gets 429, and may come again at once.
    Busy,
    /// The next pod is refused with 409: somebody changed the quota at the same time.
    Conflict,
    /// The next pod is created, and the response is a 500.
    LostResponse,
    /// The next watch ends in the middle of a line.
    CutWatch,
    /// The next watch ends with the error that its version is too old.
    OldVersion,
    /// No node has room.
    Unschedulable,
    /// The image is not in its registry.
    ImageMissing,
    /// The node is low on memory and evicts the pod while it runs.
    Evicted,
    /// The pod is deleted while it runs, as by a drain of its node.
    Drained,
    /// The kernel kills the whole container for its memory.
    OutOfMemory,
    /// The container never ends.
    Hangs,
}

impl Fault {
    pub(crate) fn is_of_node(self) -> bool {
        !matches!(self, Self::Busy | Self::Conflict | Self::LostResponse | Self::CutWatch | Self::OldVersion)
    }
}
