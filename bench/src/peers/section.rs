//! Every peer under the loads that RCRT gets: 32 calls in flight, and one call at a time at rest.

use std::time::Duration;

use load::{Measured, Row};

use super::{Missing, Peer, Which, start};
use crate::run::{PeerMeasured, Run, millis};

const SECTION: &str = "peers";
const IN_FLIGHT: usize = 32;
/// So that what compiles while it runs has done so.
const WARM_UP: Duration = Duration::from_secs(2);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    for which in Which::ALL {
        if run.stop.is_cancelled() {
            break;
        }
        let place = run.folder(which.folder());
        match start(which, &place).await {
            Ok(peer) => measure(run, which, peer).await,
            Err(Missing { name, why }) => run.push(Row::missing(SECTION, name, why)),
        }
        // Gigabytes, of some.
        let _ = std::fs::remove_dir_all(place);
    }
    Ok(())
}

async fn measure(run: &mut Run, which: Which, peer: Peer) {
    let loaded = run.closed(peer.target(), IN_FLIGHT, WARM_UP, run.seconds(6)).await;
    let at_rest = if which == Which::Deno {
        // A start takes a good part of a processor for longer than calls at rest are apart.
        run.closed(peer.target(), 1, Duration::ZERO, run.seconds(5)).await
    } else {
        run.at_rest(peer.target(), run.seconds(5)).await
    };
    let Peer { name, ref version, is_durable, settings, .. } = peer;
    run.report.versions.insert(name.into(), version.clone());
    let promise = if is_durable { "durable" } else { "not durable" };
    run.push(told(
        Row::new(SECTION, format!("{name}: 32 in flight"), loaded.per_second(), "calls/s"),
        &loaded,
        &format!("{promise}; {settings}"),
    ));
    for (share, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let value = millis(at_rest.quantile(quantile));
        run.push(told(Row::new(SECTION, format!("{name}: latency at rest, {share}"), value, "ms"), &at_rest, ""));
    }
    // One that loses or spoils calls has shown nothing that RCRT could be held to.
    if loaded.failed() + at_rest.failed() == 0 {
        run.peers.push(PeerMeasured {
            name: name.into(),
            is_durable,
            per_second: loaded.per_second(),
            median: at_rest.quantile(0.5),
        });
    }
    peer.stop().await;
}

/// The row with its note, and with what went wrong.
fn told(row: Row, measured: &Measured, note: &str) -> Row {
    let failed = measured.failures.iter().next().map(|(why, _)| format!("{} calls failed: {why}", measured.failed()));
    let parts: Vec<_> = failed.as_deref().into_iter().chain([note]).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { row } else { row.note(parts.join("; ")) }
}
