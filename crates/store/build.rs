//! Rebuilds when a migration is added: `sqlx::migrate!` cannot tell cargo itself.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
