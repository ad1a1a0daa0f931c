//! The memory of a call, as one sum: the engine's heap (including strings), array buffers, and
//! WebAssembly's memories. A buffer that does not fit is refused; a sum above the limit ends the
//! call. And the stack of the isolate's thread.

mod account;
mod buffers;
mod meter;
pub mod stack;

pub use account::Account;
pub use meter::Meter;
