//! Proves that pods reach no network, by a pod that tries: a policy says nothing on a cluster whose
//! network plugin does not enforce it.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Limits;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::lifecycle::PodRuns;
use crate::order::{AROUND, Order};
use crate::spec::{self, Container, PROGRAM, PodSpec};

const PROBE: &str = include_str!("probe.py");
/// How often the proof is repeated, and how soon after it failed.
const EVERY: Duration = Duration::from_mins(10);
const AGAIN: Duration = Duration::from_secs(30);
/// How long a runner that checks a tool waits for the first proof.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct NetworkProof {
    state: watch::Sender<State>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    /// Proved, or accepted by the operator.
    Good,
    Refused(String),
}

impl NetworkProof {
    /// Completes when the first proof ended.
    pub async fn known(&self) {
        let mut state = self.state.subscribe();
        let _ = timeout(PATIENCE, state.wait_for(|state| *state != State::Unknown)).await;
    }

    /// Why no program runs.
    pub fn refusal(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Good => None,
            State::Unknown => Some("It is being tried whether pods reach the network.".to_owned()),
            State::Refused(why) => Some(why.clone()),
        }
    }
}

#[derive(Deserialize)]
struct Found {
    reached: Vec<String>,
    tried: usize,
}

/// Proves it until stopped.
pub async fn run(runs: Arc<PodRuns>, proof: Arc<NetworkProof>, stop: CancellationToken) {
    if runs.settings.accept_open_network {
        tracing::warn!("--accept-open-network: programs of tools run although their pods may reach the network");
        proof.state.send_replace(State::Good);
        return;
    }
    loop {
        let found = tokio::select! {
            found = prove(&runs) => found,
            () = stop.cancelled() => return,
        };
        let pause = match found {
            Ok(()) => {
                if proof.state.send_replace(State::Good) != State::Good {
                    tracing::info!("it is proved that pods reach no network");
                }
                EVERY
            }
            // What was proved before holds until it is disproved.
            Err(Refusal::NotTried(why)) if proof.refusal().is_none() => {
                tracing::warn!(why, "it cannot be tried again whether pods reach the network");
                AGAIN
            }
            Err(Refusal::NotTried(why) | Refusal::Open(why)) => {
                tracing::warn!(why, "no program runs in pods");
                proof.state.send_replace(State::Refused(why));
                AGAIN
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

enum Refusal {
    NotTried(String),
    Open(String),
}

async fn prove(runs: &Arc<PodRuns>) -> Result<(), Refusal> {
    let not_tried =
        |why: String| Refusal::NotTried(format!("It cannot be tried whether pods reach the network: {why}"));
    let ended = runs.run(probe(runs)).await.map_err(|failure| not_tried(failure.message))?;
    let mut lines = ended.log.split(|byte| *byte == b'\n');
    let found: Option<Found> = lines.find_map(|line| serde_json::from_slice(line).ok());
    match found {
        Some(found) if found.tried == 0 => Err(not_tried("the probe pod tried nothing".to_owned())),
        Some(found) if found.reached.is_empty() => Ok(()),
        Some(found) => Err(Refusal::Open(format!(
            "Programs run only in pods that reach no network, and these reach {}. Use a network plugin that enforces \
             NetworkPolicy, with the chart's policy for this namespace; or accept it with --accept-open-network.",
            found.reached.join(", ")
        ))),
        None => Err(not_tried(format!("the probe pod ended without a result ({})", ended.pod.end()))),
    }
}

/// A pod like that of a program, without the filter of `wrapper.py`.
fn probe(runs: &PodRuns) -> Order {
    let name = format!("rcrt-probe-{}", Uuid::new_v4().simple());
    let (host, port) = runs.cluster.address();
    let targets = json!([[host, port]]).to_string();
    let command = ["python3", "-I", "-c", PROBE, targets.as_str()].map(str::to_owned).into();
    let (volume, mount) = spec::temporary();
    let program = Container {
        name: PROGRAM,
        command,
        environment: Vec::new(),
        folder: "/tmp",
        limits: Limits::default(),
        mounts: vec![mount],
    };
    let longest = runs.settings.start + AROUND;
    let (created_by, volumes) = (runs.id, vec![volume]);
    let pod = PodSpec { name: name.clone(), created_by, longest, installer: None, program, volumes };
    Order { name, pod: pod.json(&runs.settings), secrets: Vec::new(), time: AROUND }
}
