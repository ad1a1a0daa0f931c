//! Pictures as SVG: lines over an axis, bars side by side, and latency by share of calls.

mod axis;
mod bars;
mod lines;
mod percentiles;

pub use axis::{Axis, Scale};
pub use bars::Bars;
pub use lines::{Lines, Series};
pub use percentiles::percentiles;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// No point can be shown: there are none, or the axis cannot show them (on a logarithmic one,
    /// values of 0 or below).
    #[error("there is nothing to show")]
    Nothing,
    #[error("drawing failed: {0}")]
    Drawing(String),
}
