//! What a call holds of memory, as one sum: the engine's heap (strings included), array buffers, WebAssembly's
//! memories. A buffer that does not fit is refused; a sum that is too large ends the call.

mod account;
mod buffers;
mod meter;

pub use account::Account;
pub use meter::Meter;
