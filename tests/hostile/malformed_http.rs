//! An HTTP server that violates HTTP. The first part of the path selects the violation.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::request_log::RequestLog;

/// Serves on a free port until the test's runtime stops.
pub async fn serve(seen: Arc<RequestLog>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = seen.clone();
            // The client can close the connection at any time; that is what is tested.
            tokio::spawn(async move { answer(stream, &seen).await });
        }
    });
    port
}

async fn answer(mut stream: TcpStream, seen: &RequestLog) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).await? == 0 {
                return Ok(());
            }
            head.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&std::mem::take(&mut head)).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
        let lie = path.split('/').nth(1).unwrap_or_default().to_owned();
        seen.add(&path, text);
        if !respond(&mut stream, &lie).await? {
            return Ok(());
        }
    }
}

/// True if the connection stays open.
async fn respond(stream: &mut TcpStream, lie: &str) -> std::io::Result<bool> {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let fixed: String = match lie {
        "honest" => {
            stream.write_all(format!("{OK}content-length: 6\r\n\r\nhonest").as_bytes()).await?;
            return Ok(true);
        }
        // The length is larger than the body.
        "short" => format!("{OK}content-length: 1000\r\n\r\nonly this"),
        // A second response follows the first, for the next request on this connection.
        "poison" => {
            let second = format!("{OK}content-length: 8\r\n\r\npoisoned");
            stream.write_all(format!("{OK}content-length: 5\r\n\r\nfirst{second}{second}").as_bytes()).await?;
            return Ok(true);
        }
        "two-lengths" => format!("{OK}content-length: 5\r\ncontent-length: 50\r\n\r\nfirst"),
        "both" => format!("{OK}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n"),
        "bad-chunk" => format!("{OK}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx"),
        "huge-chunk" => format!("{OK}transfer-encoding: chunked\r\n\r\nffffffffffffff\r\nx"),
        "no-http" => "SSH-2.0-OpenSSH_9.9\r\n\r\n".into(),
        "old" => "<html>a response without a head</html>".into(),
        "close" => String::new(),
        "bad-status" => "HTTP/1.1 9999 Many\r\ncontent-length: 0\r\n\r\n".into(),
        "switch" => "HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nconnection: upgrade\r\n\r\n".into(),
        "nul" => format!("{OK}x-odd: a\0b\r\ncontent-length: 0\r\n\r\n"),
        "split-redirect" => {
            "HTTP/1.1 302 Found\r\nlocation: http://api.test/\r\n\tx\r\ncontent-length: 0\r\n\r\n".into()
        }
        "not-gzip" => format!("{OK}content-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot gzip!"),
        "many-headers" => {
            let fields: Vec<String> = (0..5_000).map(|n| format!("x-{n}: {n}\r\n")).collect();
            let fields = fields.concat();
            format!("{OK}{fields}content-length: 0\r\n\r\n")
        }
        "endless-head" => {
            stream.write_all(OK.as_bytes()).await?;
            let field = format!("x-more: {}\r\n", "y".repeat(8_000));
            loop {
                stream.write_all(field.as_bytes()).await?;
            }
        }
        "endless-line" => {
            stream.write_all(format!("{OK}x-more: ").as_bytes()).await?;
            let more = [b'y'; 8_192];
            loop {
                stream.write_all(&more).await?;
            }
        }
        // 100 Continue forever.
        "continue" => loop {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            tokio::task::yield_now().await;
        },
        // Slowly more lines of the head, so that the connection never looks idle.
        "slow-head" => {
            stream.write_all(OK.as_bytes()).await?;
            loop {
                stream.write_all(b"x-drip: 1\r\n").await?;
                // Within the gate's time limit, fewer than the number of fields that it allows.
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        _ => format!("{OK}content-length: 0\r\n\r\n"),
    };
    stream.write_all(fixed.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(false)
}
