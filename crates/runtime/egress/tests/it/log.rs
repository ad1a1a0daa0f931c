//! What the egress log contains for each request.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::routing::{get as on_get, post};
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{BodyStream, EgressOutcome, EgressRecord, FetchRequest, FetchResponse, OpError};
use rcrt_egress::{Connections, EgressContext, EgressRecorder, Logged, NetRules, Origin, Vault};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

use rcrt_test_servers::network::{Network, TestEgress, get, listed, serve, text};

const ORIGIN: Origin = Origin {
    owner_id: Uuid::from_u128(1),
    agent_id: Some(Uuid::from_u128(2)),
    tool_id: Some(Uuid::from_u128(3)),
    call: Some(Uuid::from_u128(4)),
};

struct Telling {
    gate: TestEgress,
    records: Receiver<Logged>,
}

impl Telling {
    fn over(mut network: Network) -> Self {
        let (log, records) = EgressRecorder::new();
        network.options.log = Some(log);
        Self { gate: network.gate(), records }
    }

    async fn fetch(
        &self,
        rules: &NetRules,
        request: FetchRequest,
        body: Option<BodyStream>,
    ) -> Result<FetchResponse, OpError> {
        let (vault, connections) = (Vault::default(), Connections::default());
        let ask = EgressContext {
            tool: "tester",
            rules,
            vault: &vault,
            connections: &connections,
            origin: Some(ORIGIN),
            observer: None,
        };
        self.gate.0.fetch(ask, request, body).await
    }

    fn next(&mut self) -> EgressRecord {
        let (owner_id, record) = self.records.try_recv().expect("a record");
        assert_eq!(owner_id, ORIGIN.owner_id);
        let by = (record.agent_id, record.tool_id, record.call, &*record.tool);
        assert_eq!(by, (ORIGIN.agent_id, ORIGIN.tool_id, ORIGIN.call, "tester"));
        record.check("record").unwrap();
        record
    }
}

#[tokio::test]
async fn request_is_logged_with_its_sizes_when_the_response_was_read() {
    let echo = |body: Bytes| async move { format!("{} bytes", body.len()) };
    let router = Router::new().route("/secret-path", post(echo)).layer(DefaultBodyLimit::disable());
    let port = serve(router).await;
    let mut logged = Telling::over(Network::new().inside(&format!("api.test:{port}")));
    let rules = listed(&[format!("api.test:{port}")]);
    let url = format!("http://API.test:{port}/secret-path?key=hidden");
    for pieces in [1, 3000] {
        // A small body is buffered, a large one streamed.
        let body = stream::iter((0..pieces).map(|_| Ok(Bytes::from(vec![b'x'; 1000])))).boxed();
        let request = FetchRequest { method: "POST".into(), ..get(url.clone()) };
        let answer = logged.fetch(&rules, request, Some(body)).await.unwrap();
        assert!(logged.records.try_recv().is_err(), "its body was not read yet");
        let answer = text(answer).await.unwrap();
        let record = logged.next();
        assert_eq!((&*record.host, record.port, &*record.method), ("api.test", port, "POST"));
        assert_eq!(
            (record.outcome, record.status, record.reason.as_deref()),
            (EgressOutcome::Answered, Some(200), None)
        );
        assert_eq!((record.bytes_out, record.bytes_in), (pieces * 1000, answer.len() as u64));
        let text = format!("{record:?}");
        assert!(!text.contains("secret-path") && !text.contains("hidden"), "{text}");
    }
    // A response that is never read.
    drop(logged.fetch(&rules, get(url), None).await.unwrap());
    assert_eq!(logged.next().status, Some(405));
}

#[tokio::test]
async fn refusals_are_logged_with_a_reason_and_failures_without() {
    let port = serve(Router::new()).await;
    let mut logged = Telling::over(Network::new().inside("gone.test:1"));
    logged.fetch(&NetRules::Nothing, get("https://api.test/"), None).await.map(|answer| answer.status).unwrap_err();
    let record = logged.next();
    assert_eq!((record.outcome, record.status, record.port), (EgressOutcome::Refused, None, 443));
    assert!(record.reason.unwrap().contains("cannot use the network"));

    let inside = listed(&[format!("127.0.0.1:{port}")]);
    logged
        .fetch(&inside, get(format!("http://127.0.0.1:{port}/")), None)
        .await
        .map(|answer| answer.status)
        .unwrap_err();
    assert!(logged.next().reason.unwrap().contains("loopback"));

    let gone = listed(&["gone.test:1".into()]);
    logged.fetch(&gone, get("http://gone.test:1/secret-path"), None).await.map(|answer| answer.status).unwrap_err();
    let record = logged.next();
    assert_eq!((record.outcome, record.reason), (EgressOutcome::Failed, None));

    // A URL without a host is not logged.
    for url in ["file:///etc/passwd", "http://", "no URL"] {
        logged.fetch(&NetRules::EveryHost, get(url), None).await.map(|answer| answer.status).unwrap_err();
    }
    assert!(logged.records.try_recv().is_err());
}

#[tokio::test]
async fn each_redirect_is_logged_as_a_request() {
    let redirect = || async { (StatusCode::SEE_OTHER, [(header::LOCATION, "http://other.test/")]) };
    let port = serve(Router::new().route("/", post(redirect)).route("/get", on_get(redirect))).await;
    let mut logged = Telling::over(Network::new().inside(&format!("api.test:{port}")));
    let rules = listed(&[format!("api.test:{port}")]);
    let request = FetchRequest { method: "POST".into(), ..get(format!("http://api.test:{port}/")) };
    logged.fetch(&rules, request, None).await.map(|answer| answer.status).unwrap_err();
    let (first, second) = (logged.next(), logged.next());
    assert_eq!((first.status, &*first.method, &*first.host), (Some(303), "POST", "api.test"));
    assert_eq!((second.outcome, &*second.method, &*second.host), (EgressOutcome::Refused, "GET", "other.test"));
}

#[tokio::test]
async fn abandoned_fetch_is_logged() {
    let reached = Arc::new(Notify::new());
    let reaches = reached.clone();
    let hangs = move || async move {
        reaches.notify_one();
        std::future::pending::<&'static str>().await
    };
    let port = serve(Router::new().route("/", on_get(hangs))).await;
    let mut logged = Telling::over(Network::new().inside(&format!("api.test:{port}")));
    let rules = listed(&[format!("api.test:{port}")]);
    let fetching = logged.fetch(&rules, get(format!("http://api.test:{port}/")), None);
    tokio::select! {
        answer = fetching => panic!("{:?}", answer.map(|answer| answer.status)),
        () = reached.notified() => {}
    }
    assert_eq!(logged.next().outcome, EgressOutcome::Failed);
}

#[tokio::test]
async fn full_log_does_not_block_and_counts_lost_entries() {
    let (log, records) = EgressRecorder::new();
    let mut network = Network::new();
    network.options.log = Some(log.clone());
    drop(records);
    let logged = Telling { gate: network.gate(), records: EgressRecorder::new().1 };
    for _ in 0..3 {
        logged.fetch(&NetRules::Nothing, get("https://api.test/"), None).await.map(|answer| answer.status).unwrap_err();
    }
    assert_eq!((log.take_lost(), log.take_lost()), (3, 0));
}
