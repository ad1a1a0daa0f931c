//! The ways to connect to a server. Which of them it understands depends on its revision of the
//! protocol.

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;

/// One way, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Finds out the era.
    Auto,
    /// The handshake of the older era. Also for a server that exits when it gets a request that it
    /// does not know.
    Initialize,
    /// HTTP+SSE of the revision 2024-11-05.
    LegacySse,
}

impl Attempt {
    const ALL: [Self; 3] = [Self::Auto, Self::Initialize, Self::LegacySse];

    /// All of them, the one that worked last time first.
    pub fn all(worked: Option<Self>) -> impl Iterator<Item = Self> {
        let others = Self::ALL.into_iter().filter(move |attempt| Some(*attempt) != worked);
        worked.into_iter().chain(others)
    }

    /// The attempt to begin with next time, after this one led to a server of the older era or not.
    pub fn next_time(self, has_initialize: bool) -> Self {
        if self == Self::Auto && has_initialize { Self::Initialize } else { self }
    }

    pub fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Auto => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Initialize | Self::LegacySse => ClientLifecycleMode::Initialize,
        }
    }
}
