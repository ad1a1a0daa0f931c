use std::fs;
use std::sync::Arc;

use rcrt_client::{Client, Credentials};
use rcrt_test_database::TestDatabase;

use super::flood::{self, REQUESTS};
use crate::balancer::Balancer;
use crate::process::{Installation, Rcrt};
use crate::watcher::Watcher;

/// Servers with the same keys on one database, and runners that know only the balancer's address.
struct Several {
    servers: Vec<Installation>,
    database: TestDatabase,
    balancer: Balancer,
}

impl Several {
    /// The first of the servers runs, because it made the keys.
    async fn new(count: usize) -> (Self, Rcrt) {
        let servers: Vec<_> = (0..count).map(|_| Installation::new()).collect();
        let balancer = Balancer::over(servers.iter().map(|server| server.listen).collect()).await;
        let several = Self { servers, database: TestDatabase::new().await, balancer };
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
        let started = server.start(&["server", "--listen", &listen, "--database-url", url, "--drain-seconds", "2"]);
        server.client().await;
        started
    }

    fn runner(&self) -> Rcrt {
        self.servers[0].start(&["runner", "--server", self.balancer.url.as_str(), "--lease-ms", "2000"])
    }

    /// A client of the balancer.
    fn client(&self) -> Arc<Client> {
        let token = fs::read_to_string(self.servers[0].data.path().join("token")).unwrap().trim().to_owned();
        Arc::new(Client::new(self.balancer.url.clone(), Credentials::Token(token)))
    }

    fn log(&self) -> String {
        self.servers.iter().map(Installation::log).collect()
    }
}

/// First servers and runners are killed. Then all of them are stopped and started one after the
/// other, as in an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn servers_and_runners_killed_and_upgraded_in_the_middle_of_500_requests() {
    let (several, first) = Several::new(3).await;
    let mut servers = vec![first, several.server(1).await, several.server(2).await];
    let store = several.client();
    let mut watcher = Watcher::start(store.clone()).await;
    let mut runners: Vec<_> = (0..4).map(|_| several.runner()).collect();

    let flood = tokio::spawn(flood::send(store.clone()));
    for which in 0..3 {
        watcher.answered(40 * (which + 1)).await;
        let killed = std::mem::replace(&mut runners[which], several.runner());
        killed.kill().await;
        servers.remove(0).kill().await;
        servers.push(several.server(which).await);
    }
    for which in 0..4 {
        watcher.answered(160 + 60 * which).await;
        if which < 3 {
            // It accepts nothing new and finishes what it has.
            assert_eq!(servers.remove(0).stop().await, Some(0), "{}", several.log());
            servers.push(several.server(which).await);
        }
        let next = several.runner();
        let old = std::mem::replace(&mut runners[which], next);
        assert_eq!(old.stop().await, Some(0), "{}", several.log());
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
}
