//! Assembles the parts: Postgres → store → server → runner. Each file starts one part.
//! [`System::close`] stops them in reverse order.

mod agents;
mod data_folder;
mod database;
mod database_info;
mod direct_database;
mod egress_log_writer;
mod elsewhere;
mod embedding;
mod http_server;
mod limit_options;
mod metrics_listener;
mod native_tools;
mod pod_options;
mod port_holder;
mod protection;
mod retention;
mod runner_task;
mod secrets_keys;
mod serving;
mod stores;
mod system;
mod token_file;
mod webhook_delivery;
mod working_folder;

pub use agents::{Agents, DEFAULT_TENANT};
pub use data_folder::DataFolder;
pub use database::{APP_ROLE, Database, DatabaseOptions, open_runner_store};
pub use database_info::{DatabaseInfo, check_url, check_url_of, database_address};
pub use direct_database::DirectDatabase;
pub use egress_log_writer::{EgressLogChannel, EgressLogWriter};
pub use elsewhere::Elsewhere;
pub use embedding::{EmbeddingArgs, Embeddings};
use http_server::{HttpServer, base_url, bind};
pub use limit_options::DrainOption;
pub use metrics_listener::MetricsOptions;
pub use native_tools::{NativeToolOptions, NativeTools};
pub use pod_options::PodOptions;
pub use retention::{Pruning, RetentionOptions};
pub use runner_task::{PreparedRunner, RunnerTask, RunnerTaskOptions, host_name, sandbox_level, worker_command};
pub use secrets_keys::check_secrets_keys;
pub use serving::{ServingOptions, StartedServer, metrics_token, public_url};
pub use stores::Stores;
pub use system::System;
pub use token_file::TokenFile;
pub use webhook_delivery::{WebhookDelivery, WebhookHosts, WebhookOptions};
