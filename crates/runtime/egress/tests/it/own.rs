//! The runner's own addresses are refused like private ones, whatever block they are in.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use rcrt_breadcrumb::OpError;
use rcrt_egress::{Interfaces, NetRules, SystemInterfaces};

use rcrt_test_servers::network::{LOOPBACK, Network, get};

/// A machine with the addresses of the test. Without addresses, listing them fails.
#[derive(Debug, Default)]
struct Drawn(Mutex<Option<HashSet<IpAddr>>>);

impl Drawn {
    fn has(&self, address: &str) {
        *self.0.lock().unwrap() = Some([address.parse().unwrap()].into());
    }
}

impl Interfaces for Drawn {
    fn addresses(&self) -> io::Result<HashSet<IpAddr>> {
        self.0.lock().unwrap().clone().ok_or_else(|| io::Error::other("no interface can be asked"))
    }
}

fn drawn() -> (Arc<Drawn>, Network) {
    let (machine, mut network) = (Arc::new(Drawn::default()), Network::new());
    network.options.interfaces = machine.clone();
    (machine, network)
}

async fn refused(network: &Network, url: &str) -> OpError {
    network.gate().fetch(&NetRules::EveryHost, get(url), None).await.map(|answer| answer.status).unwrap_err()
}

#[tokio::test]
async fn public_address_of_this_machine_is_refused_in_every_spelling() {
    let (machine, network) = drawn();
    machine.has("93.184.215.14");
    network.names.set("me.test", vec![vec!["93.184.215.14".parse().unwrap()]]);
    network.names.set("mapped.test", vec![vec!["::ffff:93.184.215.14".parse().unwrap()]]);
    network.names.set("both.test", vec![vec!["93.184.215.15".parse().unwrap(), "93.184.215.14".parse().unwrap()]]);
    for host in [
        "me.test",
        "mapped.test",
        "both.test",
        "93.184.215.14",
        "1572394766",
        "0x5db8d70e",
        "[::ffff:93.184.215.14]",
        "[64:ff9b::5db8:d70e]",
    ] {
        let error = refused(&network, &format!("http://{host}/")).await;
        assert_eq!(error.name, "PermissionDenied", "{host}: {error}");
        assert!(error.message.contains("own machine"), "{host}: {error}");
    }
    machine.has("2600:1406::1");
    let error = refused(&network, "http://[2600:1406:0::1]/").await;
    assert!(error.message.contains("own machine"), "{error}");
}

#[tokio::test]
async fn nothing_is_reached_if_the_own_addresses_are_unknown() {
    let (_, network) = drawn();
    network.names.set("you.test", vec![vec!["93.184.215.14".parse().unwrap()]]);
    for host in ["you.test", "93.184.215.14"] {
        let error = refused(&network, &format!("http://{host}/")).await;
        assert!(error.name == "TypeError" && error.message.contains("cannot determine its own addresses"), "{error}");
    }
}

#[tokio::test]
async fn own_addresses_are_listed_for_every_connection() {
    let (machine, network) = drawn();
    network.names.set("me.test", vec![vec!["93.184.215.14".parse().unwrap()]]);
    let gate = network.gate();
    let fetch = async || {
        let result = gate.fetch(&NetRules::EveryHost, get("http://me.test/"), None).await;
        result.map(|answer| answer.status).unwrap_err()
    };
    assert!(fetch().await.message.contains("cannot determine its own addresses"));
    machine.has("93.184.215.14");
    assert!(fetch().await.message.contains("own machine"));
}

#[test]
fn system_lists_its_addresses() {
    assert!(SystemInterfaces.addresses().unwrap().contains(&LOOPBACK));
}
