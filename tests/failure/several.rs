use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use rcrt_client::{Client, Credentials};
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use uuid::Uuid;

use super::flood::{self, REQUESTS};
use crate::balancer::Balancer;
use crate::old_runner::OldRunner;
use crate::process::{Installation, Rcrt};
use crate::receiver::Receiver;
use crate::watcher::Watcher;

/// Servers with the same keys on one database, and runners that know only the balancer's address.
struct Several {
    servers: Vec<Installation>,
    database: TestDatabase,
    balancer: Balancer,
    receiver: Receiver,
}

impl Several {
    /// The first of the servers runs, because it made the keys.
    async fn new(count: usize) -> (Self, Rcrt) {
        let servers: Vec<_> = (0..count).map(|_| Installation::new()).collect();
        let balancer = Balancer::over(servers.iter().map(|server| server.listen).collect()).await;
        let (database, receiver) = (TestDatabase::new().await, Receiver::start().await);
        let several = Self { servers, database, balancer, receiver };
        let first = several.server(0).await;
        for server in &several.servers[1..] {
            let (from, to) = (several.servers[0].data.path().join("keys"), server.data.path().join("keys"));
            fs::create_dir(&to).unwrap();
            for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        (several, first)
    }

    /// Starts a server and waits until it listens.
    async fn server(&self, which: usize) -> Rcrt {
        let server = &self.servers[which];
        let listen = server.listen.to_string();
        let url = &self.database.admin_url;
        let allowed = self.receiver.address.to_string();
        // A delivery of a killed server is repeated when its lease ends. It holds up others until
        // then.
        let webhooks = ["--webhook-timeout-ms", "2000", "--webhook-parallel", "8"];
        let more = [&["--drain-seconds", "2", "--allow-private-host", &allowed][..], &webhooks[..]].concat();
        let options = [&["server", "--listen", &listen, "--database-url", url][..], &more[..]].concat();
        let started = server.start_with(&options, &[("RCRT_EMBEDDINGS", "off")]);
        server.client().await;
        started
    }

    fn runner(&self) -> Rcrt {
        self.servers[0].start(&["runner", "--server", self.balancer.url.as_str(), "--lease-ms", "2000"])
    }

    fn old_runner(&self) -> OldRunner {
        let token = fs::read_to_string(self.servers[0].data.path().join("runner.token")).unwrap();
        OldRunner::start(self.balancer.url.clone(), token.trim().to_owned())
    }

    /// A client of the balancer.
    fn client(&self) -> Arc<Client> {
        let token = fs::read_to_string(self.servers[0].data.path().join("token")).unwrap().trim().to_owned();
        Arc::new(Client::new(self.balancer.url.clone(), Credentials::Token(token)))
    }

    /// Posts the events of the records of runs.
    async fn hook(&self) {
        let token = fs::read_to_string(self.servers[0].data.path().join("token")).unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let at = |path: &str| self.balancer.url.join(path).unwrap();
        let agents = http.get(at("/agents")).bearer_auth(token.trim()).send().await.unwrap();
        let agents: Value = agents.error_for_status().unwrap().json().await.unwrap();
        let first = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "first").unwrap();
        let path = format!("/agents/{}/webhooks", first["id"].as_str().unwrap());
        let hook = json!({"url": format!("http://{}/", self.receiver.address), "selector": flood::ran()});
        let made = http.post(at(&path)).bearer_auth(token.trim()).json(&hook).send().await.unwrap();
        made.error_for_status().unwrap();
    }

    fn log(&self) -> String {
        self.servers.iter().map(Installation::log).collect()
    }
}

/// First servers and runners are killed. Then all of them are stopped and started one after the
/// other, as in an upgrade. A runner of the oldest version works all the time.
#[tokio::test(flavor = "multi_thread")]
async fn servers_and_runners_killed_and_upgraded_in_the_middle_of_500_requests() {
    let (several, first) = Several::new(3).await;
    let mut servers = vec![first, several.server(1).await, several.server(2).await];
    let store = several.client();
    several.hook().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let flood = tokio::spawn(flood::send(store.clone()));
    let old_runner = several.old_runner();
    watcher.answered(1).await;
    let mut runners: Vec<_> = (0..4).map(|_| several.runner()).collect();
    for (which, runner) in runners.iter_mut().enumerate().take(3) {
        watcher.answered(40 * (which + 1)).await;
        let killed = std::mem::replace(runner, several.runner());
        killed.kill().await;
        servers.remove(0).kill().await;
        servers.push(several.server(which).await);
    }
    for (which, runner) in runners.iter_mut().enumerate() {
        watcher.answered(160 + 60 * which).await;
        if which < 3 {
            // It accepts nothing new and finishes what it has.
            assert_eq!(servers.remove(0).stop().await, Some(0), "{}", several.log());
            servers.push(several.server(which).await);
        }
        let old = std::mem::replace(runner, several.runner());
        assert_eq!(old.stop().await, Some(0), "{}", several.log());
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;
    assert!(old_runner.stop().await >= 1);

    flood.check(&*store, &watcher.stop()).await;
    let ran: BTreeSet<Uuid> = flood::all(&*store, flood::ran()).await.into_iter().map(|item| item.id).collect();
    // Attempts can be repeated, deliveries not.
    let delivered = several.receiver.deliveries(ran.len()).await;
    assert_eq!((delivered.len(), BTreeSet::from_iter(delivered)), (ran.len(), ran));
}
