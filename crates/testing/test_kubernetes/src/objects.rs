//! The objects of the cluster, and the changes that watches report.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fault::Fault;
use crate::status;

/// A change: its version, its kind and the pod after it.
pub type Change = (u64, &'static str, Value);

#[derive(Default)]
pub struct Objects {
    version: u64,
    pub pods: BTreeMap<String, Value>,
    pub secrets: BTreeMap<String, Value>,
    /// The logs of containers, by pod and container.
    pub logs: HashMap<(String, String), Vec<u8>>,
    pub changes: Vec<Change>,
    pub faults: VecDeque<Fault>,
    /// What runs a pod stops when it is deleted.
    pub stops: HashMap<String, CancellationToken>,
    /// All pods that were ever created.
    pub created: Vec<Value>,
    /// The most pods that existed at the same time.
    pub most: usize,
    /// Requests that the role does not allow.
    pub forbidden: Vec<String>,
    pub open_network: bool,
}

impl Objects {
    /// Takes a fault, if it is the next of its kind.
    pub fn fails(&mut self, fault: Fault) -> bool {
        let found = self.faults.iter().position(|one| *one == fault);
        found.map(|at| self.faults.remove(at)).is_some()
    }

    /// The next fault of the node, if there is one.
    pub fn node_fault(&mut self) -> Option<Fault> {
        let found = self.faults.iter().position(|one| one.is_of_node())?;
        self.faults.remove(found)
    }

    pub fn create_pod(&mut self, mut pod: Value, namespace: &str) -> Result<Value, Value> {
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        if self.pods.contains_key(&name) {
            return Err(status::refusal(409, "AlreadyExists", &format!("pods {name:?} already exists")));
        }
        self.created.push(pod.clone());
        pod["metadata"]["uid"] = Uuid::new_v4().to_string().into();
        pod["metadata"]["namespace"] = namespace.into();
        pod["status"] = json!({"phase": "Pending"});
        self.stops.insert(name.clone(), CancellationToken::new());
        let pod = self.changed("ADDED", pod);
        self.pods.insert(name, pod.clone());
        self.most = self.most.max(self.pods.len());
        Ok(pod)
    }

    /// Sets the status of a pod, unless it was deleted.
    pub fn set_status(&mut self, name: &str, status: Value) {
        let Some(mut pod) = self.pods.get(name).cloned() else { return };
        pod["status"] = status;
        let pod = self.changed("MODIFIED", pod);
        self.pods.insert(name.to_owned(), pod);
    }

    /// Deletes a pod and the secrets that it owns.
    pub fn delete_pod(&mut self, name: &str) -> Option<Value> {
        let pod = self.pods.remove(name)?;
        if let Some(stop) = self.stops.remove(name) {
            stop.cancel();
        }
        let uid = pod["metadata"]["uid"].clone();
        self.secrets.retain(|_, secret| secret["metadata"]["ownerReferences"][0]["uid"] != uid);
        Some(self.changed("DELETED", pod))
    }

    fn changed(&mut self, kind: &'static str, mut pod: Value) -> Value {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.changes.push((self.version, kind, pod.clone()));
        pod
    }
}
