//! The worker as a program of its own, for this crate's tests. `rcrt` calls the same entry from its hidden
//! subcommand.

fn main() -> std::process::ExitCode {
    isolate::worker_main(sandbox::protocol::SOCKET_FD)
}
