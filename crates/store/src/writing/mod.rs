//! Writes that wait for the disk, many in one wait.
//!
//! A new record, a start and a response go at once while nothing is under way. What comes meanwhile gathers, and goes
//! together in the next transaction: nobody waits for company, and under load the disk, the round trip and the
//! statement are shared. A batch is of one tenant. One that fails is repeated write by write, so that each fails alone.
//!
//! A write's ids are given before it goes. So when a connection is lost with the answer, the store can look whether the
//! write happened, and repeat it if it did not.

mod batch;
mod batch_writer;
mod prepared;
mod queue;
mod reservations;
mod write;

pub(crate) use self::batch::insert;
pub(crate) use self::prepared::{IdempotencyKey, PreparedRecord};
pub(crate) use self::queue::WriteQueue;
pub(crate) use self::write::{WriteOp, WriteOutcome};
