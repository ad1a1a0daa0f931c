//! Programs of tools in pods of a Kubernetes cluster: each in a fresh pod without a token, without
//! network and without files of anybody, which is deleted when it ends. The tools are those of the
//! crate `processes`, with this isolation in place of the jail.
//!
//! A pod runs `wrapper.py`, which starts the program, bounds its output and tells how it ended. The
//! program itself comes by a Secret that the pod owns, so that no specification shows it. That no
//! network is reached is proved by a probe pod at the start. A script with packages is in a pod
//! that reaches their index; for it the wrapper closes the network.
//!
//! This crate knows no queue: a runner claims the calls. It speaks to the API server with the few
//! requests that it needs, instead of with a client library.
//!
//! Begin with `isolation.rs`, `lifecycle.rs` and `kubernetes/mod.rs`.

mod isolation;
mod kubernetes;
mod lifecycle;
mod network_proof;
mod order;
mod report;
mod settings;
mod spec;
mod sweeping;

use std::sync::Arc;

use rcrt_executors::NativeTool;
use tokio_util::sync::CancellationToken;

use isolation::InPods;
use lifecycle::PodRuns;
use network_proof::NetworkProof;

pub use kubernetes::{ApiError, ClusterAccess};
pub use settings::{ImageByDigest, Settings, placement};

/// The pods of one scripts manager.
pub struct Pods {
    runs: Arc<PodRuns>,
    proof: Arc<NetworkProof>,
    stop: CancellationToken,
}

impl Pods {
    /// Starts to prove that pods reach no network, and to remove pods that a manager left behind.
    pub fn start(settings: Settings) -> Result<Self, ApiError> {
        let stop = CancellationToken::new();
        let runs = Arc::new(PodRuns::new(settings)?);
        let proof = Arc::new(NetworkProof::default());
        runs.tasks.spawn(sweeping::run(runs.clone(), stop.clone()));
        runs.tasks.spawn(network_proof::run(runs.clone(), proof.clone(), stop.clone()));
        Ok(Self { runs, proof, stop })
    }

    /// The tools of the settings, with their programs in pods.
    pub fn tools(&self) -> Vec<Arc<dyn NativeTool>> {
        let isolation = Arc::new(InPods { runs: self.runs.clone(), proof: self.proof.clone() });
        let mut tools = rcrt_processes::tools_with(isolation);
        tools.retain(|tool| self.runs.settings.tools.contains(tool.name()));
        tools
    }

    /// Waits until all pods are deleted. Call it when no call runs any more.
    pub async fn close(self) {
        self.stop.cancel();
        self.runs.tasks.close();
        self.runs.tasks.wait().await;
    }
}
