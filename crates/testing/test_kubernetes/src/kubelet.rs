//! The node: runs the containers of a pod one after the other, and reports their states.

use std::sync::Arc;

use rcrt_jail::command::ExitReason;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cluster::State;
use crate::container;
use crate::fault::Fault;
use crate::status;

/// Runs a pod until it ends or is deleted.
pub async fn run(state: Arc<State>, pod: Value) {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let Some(stop) = state.objects().stops.get(&name).cloned() else { return };
    tokio::select! {
        () = stop.cancelled() => {}
        () = containers(&state, &pod, &name, &stop) => {}
    }
}

fn names(of: &Value) -> Vec<String> {
    let containers = of.as_array().into_iter().flatten();
    containers.map(|container| container["name"].as_str().unwrap().to_owned()).collect()
}

async fn containers(state: &State, pod: &Value, name: &str, stop: &CancellationToken) {
    let is_probe = name.starts_with("rcrt-probe-");
    let fault = if is_probe { None } else { state.objects().node_fault() };
    let spec = &pod["spec"];
    let creating = status::waiting("ContainerCreating", "");
    let mut init: Vec<(String, Value)> =
        names(&spec["initContainers"]).into_iter().map(|name| (name, creating.clone())).collect();
    let mut main: Vec<(String, Value)> =
        names(&spec["containers"]).into_iter().map(|name| (name, creating.clone())).collect();
    match fault {
        Some(Fault::Unschedulable) => {
            state.change(|objects| objects.set_status(name, status::unschedulable()));
            return stop.cancelled().await;
        }
        Some(Fault::ImageMissing) => {
            for reason in ["ErrImagePull", "ImagePullBackOff"] {
                main[0].1 = status::waiting(reason, "failed to resolve reference: not found");
                state.change(|objects| objects.set_status(name, status::pod("Pending", &init, &main)));
            }
            return stop.cancelled().await;
        }
        _ => {}
    }
    state.change(|objects| objects.set_status(name, status::pod("Pending", &init, &main)));
    let volumes = container::Volumes::mounted(state, spec).await;
    let folders = tempfile::tempdir().unwrap();
    for at in 0..init.len() {
        init[at].1 = status::running();
        state.change(|objects| objects.set_status(name, status::pod("Pending", &init, &main)));
        init[at].1 = ran(state, pod, &spec["initContainers"][at], (&volumes, &folders)).await;
        if init[at].1["terminated"]["exitCode"] != 0 {
            return state.change(|objects| objects.set_status(name, status::pod("Failed", &init, &main)));
        }
    }
    main[0].1 = status::running();
    state.change(|objects| objects.set_status(name, status::pod("Running", &init, &main)));
    match fault {
        Some(Fault::Evicted) => {
            let message = "The node was low on resource: memory.";
            return state.change(|objects| objects.set_status(name, status::ended("Evicted", message)));
        }
        Some(Fault::Drained) => {
            state.change(|objects| objects.delete_pod(name));
            return;
        }
        Some(Fault::Hangs) => return stop.cancelled().await,
        Some(Fault::OutOfMemory) => {
            let line = "{\"stream\": \"stdout\", \"data\": \"c28gZmFyCg==\"}\n{\"stream\": \"std";
            let of = (name.to_owned(), main[0].0.clone());
            main[0].1 = status::terminated(137, "OOMKilled");
            return state.change(|objects| {
                objects.logs.insert(of, line.into());
                objects.set_status(name, status::pod("Failed", &init, &main));
            });
        }
        _ => {}
    }
    main[0].1 = ran(state, pod, &spec["containers"][0], (&volumes, &folders)).await;
    let phase = if main[0].1["terminated"]["exitCode"] == 0 { "Succeeded" } else { "Failed" };
    state.change(|objects| objects.set_status(name, status::pod(phase, &init, &main)));
}

/// Runs one container, keeps its log, and returns its state.
async fn ran(state: &State, pod: &Value, container: &Value, places: (&container::Volumes, &TempDir)) -> Value {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let finished = container::run(state, pod, container, places).await;
    let log = finished.stdout.text().into_bytes();
    let of = (name, container["name"].as_str().unwrap().to_owned());
    state.change(|objects| objects.logs.insert(of, log));
    match finished.how {
        ExitReason::Exited(0) => status::terminated(0, "Completed"),
        ExitReason::Exited(code) => status::terminated(code, "Error"),
        ExitReason::Signalled(signal) => status::terminated(128 + signal, "Error"),
        ExitReason::OutOfMemory => status::terminated(137, "OOMKilled"),
        how => panic!("{how:?}: {}", finished.stderr.text()),
    }
}
