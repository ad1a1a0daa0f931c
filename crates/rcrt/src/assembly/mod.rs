//! Puts the parts together: Postgres → store → server → runner. Each file starts one part; [`stop`](Running::stop)s
//! go the other way.

mod agents;
mod data_folder;
mod database;
mod execution;
mod http;
mod native;
mod port_holder;
mod postgres_used;
mod posting;
mod protection;
mod serving;
mod system;
mod token_file;
mod working_folder;

pub use agents::Agents;
pub use data_folder::DataFolder;
pub use database::{Database, DatabaseOptions, open_store};
pub use execution::{Execution, ExecutionOptions, Prepared, sandbox_level, worker_command};
use http::{Front, base_url, bind};
pub use native::{Native, NativeOptions};
pub use postgres_used::{PostgresUsed, ask, check_url, place};
pub use posting::{Posting, PostingOptions};
pub use serving::{Served, ServingOptions};
pub use system::System;
pub use token_file::TokenFile;
