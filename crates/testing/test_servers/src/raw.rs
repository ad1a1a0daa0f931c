//! HTTP/1 at the level of bytes: a server sends exactly what a test wrote.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::network::LOOPBACK;

/// Calls `talk` for each connection. Returns the port and the number of connections so far.
pub async fn serve<F, T>(talk: F) -> (u16, Arc<AtomicUsize>)
where
    F: Fn(TcpStream) -> T + Send + Sync + 'static,
    T: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind(SocketAddr::new(LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            // An error means that the gate closed the connection.
            tokio::spawn(talk(stream));
        }
    });
    (port, count)
}

/// Responds to every request with these bytes and leaves the connection open.
pub async fn respond(answer: impl Into<Vec<u8>>) -> u16 {
    let answer = Arc::new(answer.into());
    let talk = move |mut stream: TcpStream| {
        let answer = answer.clone();
        async move {
            while !head(&mut stream).await?.is_empty() {
                stream.write_all(&answer).await?;
            }
            Ok(())
        }
    };
    serve(talk).await.0
}

/// Responds to the first request with these bytes and closes the connection.
pub async fn respond_once(answer: impl Into<Vec<u8>>) -> u16 {
    let answer = Arc::new(answer.into());
    let talk = move |mut stream: TcpStream| {
        let answer = answer.clone();
        async move {
            head(&mut stream).await?;
            stream.write_all(&answer).await?;
            stream.shutdown().await
        }
    };
    serve(talk).await.0
}

/// Responds with `start` and then repeats `then` forever, as fast as the client reads.
pub async fn floods(start: impl Into<Vec<u8>>, then: impl Into<Vec<u8>>) -> u16 {
    endless(start, then, Duration::ZERO).await
}

/// Responds with `start` and then repeats `then` forever, with a pause after each.
pub async fn respond_repeating(start: impl Into<Vec<u8>>, then: impl Into<Vec<u8>>) -> u16 {
    endless(start, then, Duration::from_millis(10)).await
}

async fn endless(start: impl Into<Vec<u8>>, then: impl Into<Vec<u8>>, pause: Duration) -> u16 {
    let (start, then) = (Arc::new(start.into()), Arc::new(then.into()));
    let talk = move |mut stream: TcpStream| {
        let (start, then) = (start.clone(), then.clone());
        async move {
            head(&mut stream).await?;
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&then).await?;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    };
    serve(talk).await.0
}

/// A request's head. Empty if the client closed the connection.
pub async fn head(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) if head.is_empty() => return Ok(String::new()),
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
