//! Queue, claim, lease, answer.
