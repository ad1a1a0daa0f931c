//! Calls a tool: `RCRT_SERVER=http://127.0.0.1:8081 RCRT_TOKEN=$(cat .rcrt/token) cargo run -p
//! rcrt-client --example call_a_tool`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use rcrt_client::{Client, Credentials, Invocation, Invoked};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("RCRT_SERVER")?.parse()?;
    let client = Client::new(server, Credentials::Token(std::env::var("RCRT_TOKEN")?));

    let invocation = Invocation { input: json!({"expression": "6 * 7"}), ..Invocation::default() };
    match client.invoke("calculator", &invocation, Duration::from_secs(30), None).await? {
        Invoked::Answered(response) => match response.error {
            None => println!("{}", json!(response.output)),
            Some(why) => eprintln!("{:?}: {why}", response.error_code),
        },
        Invoked::Waiting { request, .. } => println!("no response yet to request {request}"),
    }
    Ok(())
}
