//! `rcrt tenant`: the tenants of the server, their quotas, and what publishes the tools of their
//! agents.

use anyhow::Context;
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{PublishRule, TenantInfo, TenantQuotas};
use rcrt_client::{Client, TenantDetails, TenantSettings};
use serde_json::json;
use uuid::Uuid;

use crate::commands::agent;
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::output::{Output, one_line};

/// List, create, change and delete tenants
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Without TENANT, a name or an id, show and set are about the agent's own tenant. Creating and deleting tenants, quotas \
and the list of all tenants require a token of `rcrt token --operator`, which works on the server's machine.

Examples:
  rcrt tenant show
  rcrt tenant set --publish curator
  export RCRT_TOKEN=$(rcrt token --operator)
  rcrt tenant list
  rcrt tenant new second > second.env
  rcrt tenant set second --max-tools 100
  rcrt tenant delete second")]
pub enum Tenant {
    /// List all tenants, or only your own without an operator's token
    List,
    /// Create a tenant, and print the key of its first agent once
    New {
        /// The name, unique on the server
        name: String,
        /// The cell in which it begins; without it, the one of `rcrt cell default`
        #[arg(long)]
        cell: Option<String>,
    },
    /// Show what a tenant stores, its quotas, and what publishes its tools
    Show {
        tenant: Option<String>,
    },
    Set(Set),
    /// Delete a tenant with all its records, agents, calls and secrets
    Delete {
        /// The tenant's name or id
        tenant: String,
    },
}

/// Change a tenant's settings; those that are not named stay
#[derive(Debug, Args)]
pub struct Set {
    tenant: Option<String>,
    /// What publishes the tools of agents: examples, curator or anyone
    #[arg(long, value_name = "RULE")]
    publish: Option<PublishRule>,
    /// Records that it can keep; 0: no limit. Quotas require a token of `rcrt token --operator`
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,
    /// Bytes of contexts that it can keep, including old versions
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Tools that it can have
    #[arg(long, value_name = "N")]
    max_tools: Option<u64>,
    /// Bytes of all its tools
    #[arg(long, value_name = "BYTES")]
    max_tool_bytes: Option<u64>,
    /// Tools that an agent can create in an hour
    #[arg(long, value_name = "N")]
    max_tool_creations: Option<u64>,
    /// Concurrent requests to one server, including event streams, but not those of runners
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
}

impl Tenant {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let id = match self {
            Self::List => return list(&client, output).await,
            Self::New { name, cell } => return new(&client, output, &name, cell.as_deref()).await,
            Self::Delete { tenant } => return delete(&client, output, &tenant).await,
            Self::Show { tenant } => find(&client, tenant.as_deref()).await?.id,
            Self::Set(set) => set.run(&client).await?,
        };
        show(&client.tenant(id).await?, output)
    }
}

impl Set {
    /// Returns the tenant's id.
    async fn run(self, client: &Client) -> anyhow::Result<Uuid> {
        let tenant = find(client, self.tenant.as_deref()).await?;
        let named = self.quotas();
        if self.publish.is_none() && named == TenantQuotas::default() {
            fail!(Usage, "name a setting: --publish, or a quota such as --max-tools");
        }
        let quotas = if named == TenantQuotas::default() {
            None
        } else {
            Some(with(client.tenant(tenant.id).await?.usage.own, named))
        };
        let settings = TenantSettings { name: tenant.name, quotas, publish: self.publish };
        client.set_tenant(tenant.id, &settings).await?;
        Ok(tenant.id)
    }

    fn quotas(&self) -> TenantQuotas {
        TenantQuotas {
            max_records: self.max_records,
            max_bytes: self.max_bytes,
            max_tools: self.max_tools,
            max_tool_bytes: self.max_tool_bytes,
            max_tool_creations: self.max_tool_creations,
            max_requests: self.max_requests,
        }
    }
}

/// The quotas with the named ones replaced.
fn with(own: TenantQuotas, named: TenantQuotas) -> TenantQuotas {
    TenantQuotas {
        max_records: named.max_records.or(own.max_records),
        max_bytes: named.max_bytes.or(own.max_bytes),
        max_tools: named.max_tools.or(own.max_tools),
        max_tool_bytes: named.max_tool_bytes.or(own.max_tool_bytes),
        max_tool_creations: named.max_tool_creations.or(own.max_tool_creations),
        max_requests: named.max_requests.or(own.max_requests),
    }
}

async fn list(client: &Client, output: Output) -> anyhow::Result<()> {
    output.list(&client.tenants().await?, &["ID", "NAME", "PUBLISH", "CREATED (UTC)"], |tenant| {
        let created = tenant.created_at.format("%Y-%m-%d %H:%M").to_string();
        vec![tenant.id.to_string(), one_line(&tenant.name, 60), tenant.publish.as_str().to_owned(), created]
    })
}

async fn new(client: &Client, output: Output, name: &str, cell: Option<&str>) -> anyhow::Result<()> {
    let made = client.put_tenant(Uuid::now_v7(), name, cell).await?;
    agent::print_key(output, &made.context("the server did not create the tenant")?)
}

async fn delete(client: &Client, output: Output, named: &str) -> anyhow::Result<()> {
    let tenant = find(client, Some(named)).await?;
    client.delete_tenant(tenant.id).await?;
    output.either(
        &json!({"deleted": tenant.id, "name": tenant.name}),
        &format!("deleted the tenant {} ({})", one_line(&tenant.name, 200), tenant.id),
    )
}

async fn find(client: &Client, wanted: Option<&str>) -> anyhow::Result<TenantInfo> {
    let mut tenants = client.tenants().await?;
    let Some(wanted) = wanted else {
        return match tenants.len() {
            1 => Ok(tenants.remove(0)),
            _ => {
                let names: Vec<String> = tenants.into_iter().map(|tenant| tenant.name).collect();
                let message = format!("name one of the tenants: {}", names.join(", "));
                Err(Failure::Usage(message).into())
            }
        };
    };
    // The id first: another tenant can have this text as its name.
    let at = tenants.iter().position(|tenant| tenant.id.to_string() == wanted);
    let at = at.or_else(|| tenants.iter().position(|tenant| tenant.name == wanted));
    let missing = || {
        Failure::NotFound(format!(
            "there is no tenant {wanted:?}, or it is not yours; `rcrt tenant list` with a token of `rcrt token --operator` \
             shows all"
        ))
    };
    Ok(tenants.swap_remove(at.ok_or_else(missing)?))
}

fn show(details: &TenantDetails, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        return output.json(details);
    }
    let TenantDetails { tenant, usage } = details;
    let mut rows = vec![
        vec!["name".to_owned(), tenant.name.clone()],
        vec!["id".to_owned(), tenant.id.to_string()],
        vec!["publish".to_owned(), tenant.publish.as_str().to_owned()],
        vec!["records".to_owned(), usage.records.to_string()],
        vec!["bytes".to_owned(), usage.bytes.to_string()],
    ];
    for (quota, limit) in usage.in_force.fields() {
        rows.push(vec![quota.to_owned(), limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())]);
    }
    output.table(&["SETTING", "VALUE"], &rows)
}
