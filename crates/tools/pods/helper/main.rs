//! The jail's helper as a separate program, for this crate's tests. `rcrt` calls the same entry
//! from its hidden subcommand.

fn main() -> std::process::ExitCode {
    rcrt_jail::command::jailed_command()
}
