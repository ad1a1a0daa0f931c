use breadcrumb::Role;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::World;

#[tokio::test]
async fn streams_end_and_requests_under_way_finish() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());

    // A request that is half sent when the shutdown begins.
    let mut half = TcpStream::connect(world.base.trim_start_matches("http://")).await.unwrap();
    let body = r#"{"title": "late"}"#;
    let head = format!(
        "POST /breadcrumbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    half.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: it is inside the handler.
    let mut asked = [0; 25];
    half.read_exact(&mut asked).await.unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100 Continue"));

    world.shutdown.cancel();
    while stream.chunk().await.unwrap().is_some() {}
    half.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    world.serving.await.unwrap();
    assert!(TcpStream::connect(world.base.trim_start_matches("http://")).await.is_err());
    world.store.close().await;
}
