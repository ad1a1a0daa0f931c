//! Addresses without an RCRT server.

use rcrt_breadcrumb::{Secrets, StoreError};
use rcrt_client::{Client, Credentials};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

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
async fn another_program_at_the_address_is_recognized() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let answers = ["404 Not Found", "200 OK"]
            .map(|status| format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 5\r\n\r\n<html"));
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    for expected in ["check the address", "is invalid"] {
        let refused = client(&url).secrets().await;
        assert!(matches!(&refused, Err(StoreError::Internal(why)) if why.contains(expected)), "{refused:?}");
    }
    serving.await.unwrap();
}
