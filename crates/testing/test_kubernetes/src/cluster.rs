//! The cluster, as a test uses it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rcrt_jail::command::{Helper, Jail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use url::Url;
use uuid::Uuid;

use crate::api;
use crate::fault::Fault;
use crate::objects::Objects;

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_mins(2);
/// The namespace in which the role allows something.
pub const NAMESPACE: &str = "scripts";

pub struct Cluster {
    pub url: Url,
    state: Arc<State>,
}

/// What the API server and the kubelet share.
pub struct State {
    objects: Mutex<Objects>,
    pub changed: watch::Sender<()>,
    pub jail: Jail,
    /// The files of the service account, and the folders of claims.
    pub folder: TempDir,
    token: Mutex<String>,
}

impl State {
    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    /// Changes something, and tells those who wait.
    pub fn change<T>(&self, change: impl FnOnce(&mut Objects) -> T) -> T {
        let changed = change(&mut self.objects());
        self.changed.send_replace(());
        changed
    }

    /// Waits until something is found in the objects.
    pub async fn until<T>(&self, mut find: impl FnMut(&mut Objects) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let found = find(&mut self.objects());
            if let Some(found) = found {
                return found;
            }
            changed.changed().await.unwrap();
        }
    }

    pub fn is_token(&self, token: &str) -> bool {
        *self.token.lock().unwrap() == token
    }

    /// The folder of a persistent volume claim.
    pub fn claim(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join("claims").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}

impl Cluster {
    /// Starts a cluster, or tells why this machine cannot run its containers.
    pub async fn start(helper: Helper) -> Result<Self, String> {
        let jail = Jail::open(helper).await;
        if let Some(reason) = jail.refusal() {
            return Err(reason.to_owned());
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), rcrt_test_servers::tls::AUTHORITY).unwrap();
        let (objects, token) = (Mutex::default(), Mutex::default());
        let state = Arc::new(State { objects, changed: watch::Sender::new(()), jail, folder, token });
        let port = rcrt_test_servers::tls::serve_router(api::router(state.clone())).await;
        let url = Url::parse(&format!("https://127.0.0.1:{port}")).unwrap();
        let cluster = Self { url, state };
        cluster.replace_token();
        Ok(cluster)
    }

    /// The file with the API server's authority.
    pub fn authority(&self) -> PathBuf {
        self.state.folder.path().join("ca.crt")
    }

    pub fn token(&self) -> PathBuf {
        self.state.folder.path().join("token")
    }

    pub fn namespace(&self) -> String {
        NAMESPACE.to_owned()
    }

    /// The folder of a persistent volume claim.
    pub fn claim(&self, name: &str) -> PathBuf {
        self.state.claim(name)
    }

    /// From now on only a new token is accepted, which is in the file.
    pub fn replace_token(&self) {
        let token = Uuid::new_v4().to_string();
        write(&self.token(), &token);
        *self.state.token.lock().unwrap() = token;
    }

    /// It does this wrong, once.
    pub fn misbehave(&self, fault: Fault) {
        self.state.change(|objects| objects.faults.push_back(fault));
    }

    /// Whether no fault is left that was asked for.
    pub fn has_misbehaved(&self) -> bool {
        self.state.objects().faults.is_empty()
    }

    /// No network policy is enforced from now on.
    pub fn open_network(&self) {
        self.state.change(|objects| objects.open_network = true);
    }

    /// All pods that were created, as they were sent.
    pub fn created(&self) -> Vec<Value> {
        self.state.objects().created.clone()
    }

    /// The secrets that exist.
    pub fn secrets(&self) -> Vec<Value> {
        self.state.objects().secrets.values().cloned().collect()
    }

    /// Creates a pod, as another process would.
    pub fn create(&self, pod: Value) {
        self.state.change(|objects| objects.create_pod(pod, NAMESPACE)).unwrap();
    }

    /// The most pods that existed at the same time.
    pub fn most_pods(&self) -> usize {
        self.state.objects().most
    }

    /// Requests that the role does not allow.
    pub fn forbidden(&self) -> Vec<String> {
        self.state.objects().forbidden.clone()
    }

    /// Waits until the pods that exist satisfy the condition.
    pub async fn pods(&self, passes: impl Fn(&[Value]) -> bool) {
        let found = self.state.until(|objects| {
            let pods: Vec<Value> = objects.pods.values().cloned().collect();
            passes(&pods).then_some(())
        });
        tokio::time::timeout(PATIENCE, found).await.expect("the pods in time");
    }
}

/// As the kubelet does: readers never see a part of it.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}
