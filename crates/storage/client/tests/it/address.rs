//! Addresses without an RCRT server.

use std::time::Duration;

use rcrt_breadcrumb::{Events, Records, Secrets, StoreError, SubscribeOptions};
use rcrt_client::{Client, Credentials, Invocation};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use uuid::Uuid;

fn client(url: &str) -> Client {
    Client::new(url.parse().unwrap(), Credentials::Token("t".into()))
}

#[tokio::test]
async fn an_address_that_is_not_http_is_refused() {
    for url in ["ftp://localhost", "data:x", "unix:/run/x"] {
        let refused = client(url).secrets().await.err();
        let Some(StoreError::Invalid(found)) = refused else { panic!("{url}: {refused:?}") };
        assert_eq!(found.0[0].field, "server");
    }
}

#[tokio::test]
async fn a_name_that_would_change_the_path_is_refused() {
    let client = client("http://127.0.0.1:1");
    for name in ["", " ", ".", ".."] {
        let refused = client.tool(name).await.err();
        let Some(StoreError::Invalid(found)) = refused else { panic!("{name:?}: {refused:?}") };
        assert_eq!(found.0[0].field, "name");
        let refused = client.invoke(name, &Invocation::default(), Duration::ZERO, None).await;
        assert!(matches!(&refused, Err(StoreError::Invalid(_))), "{name:?}: {refused:?}");
    }
}

/// Answers one connection for each of these, in this order.
async fn answering(answers: Vec<String>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, serving)
}

fn answer(status: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{header}Content-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn another_program_at_the_address_is_recognized() {
    let answers = vec![answer("404 Not Found", "", "<html"), answer("200 OK", "", "<html")];
    let (url, serving) = answering(answers).await;
    for expected in ["check the address", "is invalid"] {
        let refused = client(&url).secrets().await;
        assert!(matches!(&refused, Err(StoreError::Internal(why)) if why.contains(expected)), "{refused:?}");
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn a_deletion_and_a_stream_of_another_program_are_recognized() {
    let message = || answer("200 OK", "Content-Type: application/json\r\n", r#"{"message": "ok"}"#);
    let (url, serving) = answering(vec![message(), message()]).await;
    let refused = client(&url).delete(Uuid::nil(), None).await;
    assert!(matches!(&refused, Err(StoreError::Internal(why)) if why.contains("is invalid")), "{refused:?}");
    let refused = client(&url).subscribe(SubscribeOptions::default()).await.err();
    assert!(matches!(&refused, Some(StoreError::Internal(why)) if why.contains("not an event stream")), "{refused:?}");
    serving.await.unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_error_names_the_address() {
    let moved = answer("301 Moved Permanently", "Location: https://rcrt.example.com/\r\n", "moved");
    let (url, serving) = answering(vec![moved]).await;
    let refused = client(&url).secrets().await;
    let expected = "redirects to https://rcrt.example.com/";
    assert!(matches!(&refused, Err(StoreError::Internal(why)) if why.contains(expected)), "{refused:?}");
    serving.await.unwrap();
}
