//! Runs one case, from its record in the store to its faults.

use std::time::Duration;

use rcrt_breadcrumb::{NewBreadcrumb, NewSecret, ToolResponse};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::case::{Call, Case, Request, Secret, Status};
use super::harness::{Asked, Harness, Tenant};
use super::log::Log;
use super::{steps, verdict};
use crate::tool_record;

const GOOD: &str = "good";
const GOOD_SOURCE: &str = r"
export async function execute(input, context) {
  const fresh = Object.keys(Object.prototype).length === 0 && Object.keys(Array.prototype).length === 0 &&
    Object.keys(globalThis).every((name) => /^(performance|crypto)$/.test(name) || typeof globalThis[name] === 'function') &&
    JSON.stringify({ a: [1] }) === '{\x22a\x22:[1]}' && [3, 1, 2].sort().join() === '1,2,3' && Object.isFrozen(context);
  const answer = await (await fetch(input.url)).json();
  return { doubled: input.n * 2, fresh, answer: answer.path };
}
";

/// Writes the good tool into each tenant.
pub async fn introduce(harness: &Harness) {
    let permissions = json!({"permissions": {"net": [format!("api.test:{}", harness.web)]}});
    for tenant in &harness.tenants {
        tenant.write(tool_record::tool(GOOD, GOOD_SOURCE, &json!({"type": "object"}), &permissions)).await;
    }
    let fault = good(harness, &harness.tenants[0]).await;
    assert_eq!(fault, None, "before any hostile tool");
}

/// Whether the runner that ran a hostile tool still runs a good one. Returns its response if not.
async fn good(harness: &Harness, tenant: &Tenant) -> Option<String> {
    let path = format!("/good/{}", Uuid::new_v4());
    let url = format!("http://api.test:{}{path}", harness.web);
    let asked = tenant.ask(GOOD, json!({"n": 21, "url": url}), &Request::default()).await;
    let wanted = json!({"doubled": 42, "fresh": true, "answer": path});
    match tenant.answer(&asked).await {
        Ok(context) if context.get("output") == Some(&wanted) => None,
        Ok(context) => Some(format!("the good call afterwards: {}", Value::Object(context))),
        Err(fault) => Some(format!("the good call afterwards: {fault}")),
    }
}

/// Runs the case and returns its faults. Empty if everything is as its head says.
pub async fn run(harness: &Harness, case: &Case) -> Vec<String> {
    if case.head.status == Status::Steps {
        let mut faults = steps::run(harness, case).await;
        faults.extend(good(harness, &harness.tenants[0]).await);
        of_records(harness, case, &mut faults).await;
        return faults;
    }
    let mut faults = Vec::new();
    let calls = case.calls();
    let tenants: Vec<&Tenant> =
        harness.tenants.iter().take(calls.iter().map(|call| call.tenant).max().unwrap_or(1)).collect();
    let mut records = Vec::new();
    for tenant in &tenants {
        records.push(prepare(tenant, case).await);
    }
    let mut asked: Vec<(&Tenant, Asked, &Call)> = Vec::new();
    for call in &calls {
        let tenant = tenants[call.tenant - 1];
        let record = &mut records[call.tenant - 1];
        if call.rewritten {
            tenant.curator.delete(*record, None).await.unwrap();
            *record = tenant.write(tool(case)).await;
        }
        if call.revoked {
            for secret in tenant.curator.secrets().await.unwrap().iter().filter(|secret| secret.is_granted_to(*record))
            {
                tenant.curator.revoke_secret(secret.id, *record).await.unwrap();
            }
        }
        let request = tenant.ask(&case.tool, call.input.clone(), &case.head.request).await;
        if let Some(path) = &case.head.cancel_at {
            if !harness.seen.reached(path, Duration::from_mins(2)).await {
                faults.push(format!("the tool never requested {path}, at which it is cancelled"));
            }
            tenant.store.cancel(request.record).await.unwrap();
        }
        if !case.head.side_by_side {
            judge(case, call, tenant, &request, &mut faults).await;
        }
        asked.push((tenant, request, call));
    }
    if case.head.side_by_side {
        for (tenant, request, call) in &asked {
            judge(case, call, tenant, request, &mut faults).await;
        }
    }
    for tenant in &tenants {
        faults.extend(good(harness, tenant).await);
    }
    for (tenant, request, _) in &asked {
        match tenant.responses(request).await {
            1 => {}
            other => faults.push(format!("{other} responses to one request")),
        }
    }
    for (tenant, request, _) in &asked {
        verdict::of_progress(case, &tenant.progress(request).await, request.begun.elapsed(), &mut faults);
    }
    of_records(harness, case, &mut faults).await;
    faults
}

/// What the servers got, and what the case left in the store.
async fn of_records(harness: &Harness, case: &Case, faults: &mut Vec<String>) {
    of_servers(harness, case, faults);
    if let Some(wanted) = case.head.records {
        let found = harness.tenants[0].settled(&case.tool, wanted).await;
        if found != wanted {
            faults.push(format!("{found} records have the tag {:?}, not {wanted}", case.tool));
        }
    }
}

pub fn tool(case: &Case) -> NewBreadcrumb {
    let head = &case.head;
    let names = || head.secrets.iter().map(|secret| secret.name.clone()).collect();
    let extra = json!({
        "output_schema": head.output_schema,
        "permissions": head.permissions,
        "limits": head.limits,
        "required_secrets": head.required_secrets.clone().unwrap_or_else(names),
        "isolation": head.isolation,
    });
    tool_record::tool(&case.tool, &case.source, &head.input_schema, &extra)
}

/// Writes the tool and its secrets into a tenant. Returns the tool's record.
async fn prepare(tenant: &Tenant, case: &Case) -> Uuid {
    let record = tenant.write(tool(case)).await;
    for (secret, id) in write_secrets(tenant, case).await {
        if secret.granted {
            tenant.curator.grant_secret(id, record).await.unwrap();
        }
    }
    record
}

/// Writes the case's secrets into a tenant.
pub async fn write_secrets<'c>(tenant: &Tenant, case: &'c Case) -> Vec<(&'c Secret, Uuid)> {
    let mut written = Vec::new();
    for secret in &case.head.secrets {
        let new = NewSecret {
            hosts: secret.hosts.clone(),
            readable: secret.readable,
            ..NewSecret::new(secret.name.clone(), secret.value.clone())
        };
        written.push((secret, tenant.curator.create_secret(new).await.unwrap().id));
    }
    written
}

async fn judge(case: &Case, call: &Call, tenant: &Tenant, asked: &Asked, faults: &mut Vec<String>) {
    let context = match tenant.answer(asked).await {
        Ok(context) => context,
        Err(fault) => return faults.push(fault),
    };
    let before = faults.len();
    match ToolResponse::from_context(&context) {
        Ok(response) => verdict::of_response(case, call, &response, faults),
        Err(error) => faults.push(format!("the response cannot be read: {error}")),
    }
    let text = Value::Object(context.clone()).to_string();
    for never in verdict::nevers(case).iter().filter(|never| text.contains(never.as_str())) {
        faults.push(format!("the response contains {never:?}"));
    }
    if faults.len() > before {
        faults.push(format!("response to {}: {}", call.input, shown(context)));
    }
}

/// A response for the screen. A long one is shortened in the middle.
pub fn shown(context: Map<String, Value>) -> String {
    let characters: Vec<char> = Value::Object(context).to_string().chars().collect();
    match characters.len().checked_sub(4_000) {
        None | Some(0) => characters.into_iter().collect(),
        Some(left_out) => {
            let (begin, rest) = characters.split_at(2_500);
            let (begin, end): (String, String) = (begin.iter().collect(), rest[left_out..].iter().collect());
            format!("{begin} …({left_out} characters)… {end}")
        }
    }
}

fn of_servers(harness: &Harness, case: &Case, faults: &mut Vec<String>) {
    let head = &case.head;
    for name in head.never_asked.iter().filter(|name| harness.names.was_asked(name)) {
        faults.push(format!("the DNS server got a query for {name}"));
    }
    for path in &head.never_reached {
        if let Some(request) = harness.seen.at(path).first() {
            faults.push(format!("a request for {path} arrived: {request}"));
        }
    }
    for arrived in &head.arrived {
        let requests = harness.seen.at(&arrived.path);
        if !requests.iter().any(|request| arrived.holds.iter().all(|text| request.contains(text))) {
            faults.push(format!("no request for {} with {:?} arrived, but: {requests:?}", arrived.path, arrived.holds));
        }
    }
    let expected: Vec<String> = head.arrived.iter().map(|arrived| arrived.path.clone()).collect();
    for secret in head.secrets.iter().filter(|secret| !secret.readable) {
        for path in harness.seen.holding(&secret.value, &expected) {
            faults.push(format!("the value of {} arrived at {path}", secret.name));
        }
    }
}

/// Searches the records and the log of all cases for texts that must not be in them.
pub async fn left_behind(harness: &Harness, cases: &[Case], log: &Log) -> Vec<String> {
    let mut records = String::new();
    for tenant in &harness.tenants {
        records.push_str(&tenant.traces(harness.foreign).await);
    }
    let log = log.text();
    let mut faults = Vec::new();
    for case in cases {
        // The texts of a case count only in lines that name it. A secret counts everywhere.
        let own = case.head.never.iter().map(|text| (text.clone(), Some(case.tool.as_str())));
        let kept = case.head.secrets.iter().filter(|secret| !secret.readable);
        let values = kept.flat_map(|secret| verdict::forms(&secret.value)).map(|form| (form, None));
        for (never, tool) in own.chain(values) {
            for (location, text) in [("a record", &records), ("the log", &log)] {
                let holds = |line: &&str| line.contains(&never) && tool.is_none_or(|tool| line.contains(tool));
                if let Some(line) = text.lines().find(holds) {
                    let line: String = line.chars().take(1_000).collect();
                    faults.push(format!("tests/hostile/{}: {location} contains {never:?}: {line}", case.file));
                }
            }
        }
    }
    faults
}

/// Worker processes that still exist after their sandbox was closed.
#[cfg(target_os = "linux")]
pub fn left_running() -> Vec<String> {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|path| std::fs::read_to_string(path.join("status")).is_ok_and(|status| status.contains(&parent)))
        .filter_map(|path| std::fs::read_to_string(path.join("cmdline")).ok())
        .filter(|command| command.contains("sandbox-worker"))
        .map(|command| format!("a worker process still exists after the sandbox was closed: {command:?}"))
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub fn left_running() -> Vec<String> {
    Vec::new()
}
