//! `make bench`: floors, peers and RCRT in one run, on one machine.

fn main() {}
