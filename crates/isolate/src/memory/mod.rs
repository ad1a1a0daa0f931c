//! What a call holds of memory, as one sum: the engine's heap (strings included), array buffers, WebAssembly's
//! memories. A buffer that does not fit is refused; a sum that is too large ends the call.
//!
//! QuickJS counts buffers into its heap and refuses by itself: nothing is added to it here.

#[cfg(not(feature = "quickjs"))]
mod account;
#[cfg(not(feature = "quickjs"))]
mod buffers;
mod meter;
#[cfg(feature = "quickjs")]
mod uncounted;

#[cfg(not(feature = "quickjs"))]
pub use account::Account;
pub use meter::Meter;
#[cfg(feature = "quickjs")]
pub use uncounted::Account;
