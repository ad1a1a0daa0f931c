//! The worker as a separate program, for this crate's tests. The binary `rcrt` calls the same entry
//! point from its hidden subcommand.

fn main() -> std::process::ExitCode {
    rcrt_isolate::worker_main(rcrt_sandbox::protocol::SOCKET_FD)
}
