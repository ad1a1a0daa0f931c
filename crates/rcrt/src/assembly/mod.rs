//! Puts the parts together: Postgres → store → server → runner. Each file starts one part; [`stop`](Running::stop)s
//! go the other way.

mod agents;
mod data_folder;
mod database;
mod direct;
mod egress_writing;
mod embedding;
mod execution;
mod http;
mod limit_options;
mod native;
mod port_holder;
mod postgres_used;
mod posting;
mod protection;
mod serving;
mod system;
mod token_file;
mod working_folder;

pub use agents::{Agents, DEFAULT_TENANT};
pub use data_folder::DataFolder;
pub use database::{Database, DatabaseOptions, admit_app_role, open_store};
pub use direct::Direct;
pub use egress_writing::{EgressRecords, EgressWriting};
pub use embedding::{EmbeddingArgs, Embeddings};
pub use execution::{Execution, ExecutionOptions, Prepared, sandbox_level, worker_command};
use http::{Front, FrontOptions, base_url, bind};
pub use native::{Native, NativeOptions};
pub use postgres_used::{PostgresUsed, ask, check_url, place};
pub use posting::{Posting, PostingHosts, PostingOptions};
pub use serving::{Served, ServingOptions};
pub use system::System;
pub use token_file::TokenFile;
