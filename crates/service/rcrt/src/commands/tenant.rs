//! `rcrt tenant`: the quotas of a tenant, and what publishes the tools of its agents.

use clap::{Args, Subcommand};
use rcrt_breadcrumb::{PublishRule, TenantInfo, TenantQuotas};
use rcrt_client::{Client, TenantDetails, TenantSettings};
use uuid::Uuid;

use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::Output;

/// Show and change the settings of a tenant
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Without TENANT, a name or an id, the command is about the agent's own tenant.

Examples:
  rcrt tenant show
  rcrt tenant set --publish curator
  RCRT_TOKEN=$(rcrt token --operator) rcrt tenant set second --max-tools 100")]
pub enum Tenant {
    /// Show what a tenant stores, its quotas, and what publishes its tools
    Show {
        tenant: Option<String>,
    },
    Set(Set),
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
}

impl Tenant {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let id = match self {
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
            let message = "name a setting: --publish, or a quota such as --max-tools";
            return Err(Failure::Usage(message.into()).into());
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
    }
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
    let is_wanted = |tenant: &TenantInfo| tenant.name == wanted || tenant.id.to_string() == wanted;
    let found = tenants.into_iter().find(is_wanted);
    Ok(found.ok_or_else(|| Failure::NotFound(format!("there is no tenant {wanted:?}, or it is not yours")))?)
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
