//! Why something failed. The messages are for the operator.

#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    #[error("is not the address of a NATS server; expected nats://host:4222 or tls://user:password@host:4222")]
    Address,
    #[error("the NATS server cannot be reached: {0}")]
    Connection(#[from] std::io::Error),
    #[error("the NATS server did not answer in time")]
    Silent,
    #[error("the server does not speak the protocol of NATS")]
    NotNats,
    #[error("the NATS server refused: {reason}")]
    Refused { reason: String },
    #[error("the NATS server has no JetStream for this account; enable it (nats-server --jetstream)")]
    NoJetStream,
    #[error("the stream does not store the events: {reason}")]
    NotStored { reason: String },
}

impl NatsError {
    /// Whether another connection can help.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Silent | Self::Refused { .. })
    }
}
