//! How many allocations a warm call makes in the server, the runner and the store: from the bytes
//! of its request to those of its response's event, with a real database, over sockets. Without the
//! sandbox's part. The clients read and write in place, so they allocate nothing.

#![allow(clippy::expect_used)] // A failure must stop the bench.
#![allow(clippy::print_stdout)]

#[path = "support/counting.rs"]
mod counting;
#[path = "support/database.rs"]
mod database;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use counting::Counting;
use database::open_store;
use rcrt_breadcrumb::{
    Identity, NewAgent, NewBreadcrumb, Profile, Role, Tenancy, ToolDefinition, ToolFailure, schema_names,
};
use rcrt_executors::{Executor, Executors, ToolCall, ToolOutput};
use rcrt_runner::{LocalDispatch, Runner, RunnerOptions};
use rcrt_server::{AuthMode, Server, ServerOptions, TokenKey};
use serde_json::{Map, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[global_allocator]
static ALLOCATIONS: Counting = Counting::new();

/// An eighth above the measured number, because the calls of one write differ in number.
const MOST_FOR_A_CALL: u64 = 300;

const CLIENTS: usize = 16;
/// Of each client.
const CALLS: usize = 50;

/// Adds, as code would that runs before its request is written.
struct Adds;

#[async_trait]
impl Executor for Adds {
    async fn load(&self, _: &ToolDefinition, _: Uuid, _: Uuid, _: i64) -> Result<(), ToolFailure> {
        Ok(())
    }
    async fn execute(&self, call: ToolCall, _: CancellationToken) -> ToolOutput {
        let number = |name| call.input[name].as_i64().unwrap_or_default();
        ToolOutput::new(Ok(json!({"sum": number("a") + number("b")})), Map::new())
    }
    fn supports_speculation(&self, _: &ToolDefinition) -> bool {
        true
    }
    fn forget(&self, _: Uuid, _: i64) {}
}

fn tool() -> NewBreadcrumb {
    let number = json!({"type": "number", "description": "A number."});
    let context = json!({
        "name": "add", "description": "Adds two numbers.", "version": "1.0.0",
        "code": {"language": "javascript", "source": "export async function execute() {}"},
        "input_schema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
        "output_schema": {},
        "examples": [{"description": "An example.", "input": {"a": 1, "b": 2}}],
    });
    NewBreadcrumb {
        title: "add".into(),
        context: context.as_object().cloned().unwrap_or_default(),
        tags: vec!["tool".into()],
        schema_name: Some(schema_names::TOOL_CODE.into()),
        ..NewBreadcrumb::default()
    }
}

/// A server and a runner as in one process. Returns its address and a token.
async fn begin(stop: &CancellationToken) -> (SocketAddr, String) {
    let (store, owner_id) = open_store().await;
    let (roles, profile) = (Role::ALL.to_vec(), Profile::Main);
    let agent = NewAgent { name: "bench".into(), roles: roles.clone(), profile, tools: None };
    let agent = store.create_agent(owner_id, None, agent).await.expect("an agent").agent;
    let identity = Identity { owner_id, agent_id: agent.id, roles, profile };

    let dispatch = LocalDispatch::over(store);
    let writer = dispatch.acting_as(identity.clone());
    let runner = Runner::new(writer.clone(), Executors::new().with_code(Arc::new(Adds)), RunnerOptions::default());
    tokio::spawn(runner.with_local_dispatch(dispatch.registration(&identity)).run(stop.clone()));
    writer.create(tool(), None).await.expect("the tool is written");

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let key = TokenKey::from_bytes(&[1; 32]).expect("a key");
    let token = key.issue(&identity, Duration::from_hours(1)).expect("a token");
    let options = ServerOptions::new(listener, AuthMode::Keys, key);
    tokio::spawn(Server::new(options, dispatch).expect("a server").run(stop.clone()));
    (address, token)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    stream
}

/// Reads until the bytes occurred so often.
fn read_until(stream: &mut TcpStream, wanted: &[u8], times: usize) {
    let (mut buffer, mut kept, mut seen) = ([0; 16 * 1024], 0, 0);
    while seen < times {
        let read = stream.read(&mut buffer[kept..]).expect("an answer in time");
        assert!(read > 0, "the connection ended");
        let filled = kept + read;
        seen += buffer[..filled].windows(wanted.len()).filter(|part| part == &wanted).count();
        kept = filled.min(wanted.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

/// The requests of all clients, up to the events of their responses.
fn calls(address: SocketAddr, token: &str, request: &str) {
    let subscribe = format!("GET /events/stream HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut events = connect(address);
    events.write_all(subscribe.as_bytes()).expect("a written request");
    read_until(&mut events, b"\r\n\r\n", 1);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut stream = connect(address);
                for _ in 0..CALLS {
                    stream.write_all(request.as_bytes()).expect("a written request");
                    read_until(&mut stream, b"\"id\"", 1);
                }
            });
        }
        read_until(&mut events, b"\"schema_name\":\"tool.response.v1\"", CLIENTS * CALLS);
    });
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let stop = CancellationToken::new();
    let (address, token) = runtime.block_on(begin(&stop));
    let body = r#"{"title":"Add","tags":["tool:request","workspace:bench"],"schema_name":"tool.request.v1","context":{"tool":"add","input":{"a":1,"b":2}}}"#;
    let request = format!(
        "POST /breadcrumbs HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // Connections, plans and the tool are known afterwards.
    calls(address, &token, &request);
    let before = ALLOCATIONS.count();
    calls(address, &token, &request);
    let each = (ALLOCATIONS.count() - before) / (CLIENTS * CALLS) as u64;
    println!("allocations for a warm call: {each}");
    assert!(each <= MOST_FOR_A_CALL, "{each} allocations for a call; at most {MOST_FOR_A_CALL} are expected");
    stop.cancel();
}
