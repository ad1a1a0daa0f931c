//! Bars side by side, such as a rate beside those of its peers.

use plotters::chart::ChartBuilder;
use plotters::element::{Rectangle, Text};
use plotters::prelude::{IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, Palette, Palette99, WHITE};

use crate::plot::PlotError;
use crate::report::number;

const WIDTH: u32 = 900;
/// Above and below the bars.
const FRAME: u32 = 80;
const BAR: u32 = 34;
const FONT: &str = "sans-serif";
/// The share of the width for the names, and the extra share of the longest bar for its number.
const NAMES: u32 = 260;
const NUMBERS: f64 = 0.18;

/// A picture of one value for each of some names, from the top down.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub title: String,
    /// The unit, shown after each number.
    pub unit: String,
    /// Values of 0 or more; others are shown as 0.
    pub bars: Vec<(String, f64)>,
}

impl Bars {
    pub fn new(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), bars: Vec::new() }
    }

    #[must_use]
    pub fn bar(mut self, name: impl Into<String>, value: f64) -> Self {
        self.bars.push((name.into(), value));
        self
    }

    /// The picture as an SVG text.
    pub fn svg(&self) -> Result<String, PlotError> {
        if self.bars.is_empty() {
            return Err(PlotError::Nothing);
        }
        let failed = |error: &dyn std::fmt::Display| PlotError::Drawing(error.to_string());
        let count = self.bars.len();
        let longest = self.bars.iter().map(|&(_, value)| length(value)).fold(0.0, f64::max);
        let reach = if longest > 0.0 { longest * (1.0 + NUMBERS) } else { 1.0 };
        let mut svg = String::new();
        {
            let size = (WIDTH, FRAME + BAR * u32::try_from(count).unwrap_or(u32::MAX / BAR / 2));
            let page = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            page.fill(&WHITE).map_err(|error| failed(&error))?;
            let mut chart = ChartBuilder::on(&page)
                .caption(&self.title, (FONT, 20))
                .margin(14)
                .margin_left(NAMES)
                .build_cartesian_2d(0.0..reach, 0.0..count as f64)
                .map_err(|error| failed(&error))?;
            // From the top down, each in the middle of its own row.
            let middle = |index: usize| (count - index) as f64 - 0.5;
            let text = |at: HPos| (FONT, 15).into_font().color(&BLACK).pos(Pos::new(at, VPos::Center));
            chart
                .draw_series(self.bars.iter().enumerate().map(|(index, &(_, value))| {
                    let (from, to) = (middle(index) - 0.32, middle(index) + 0.32);
                    Rectangle::new([(0.0, from), (length(value), to)], Palette99::pick(index).filled())
                }))
                .map_err(|error| failed(&error))?;
            let gap = reach * 0.008;
            chart
                .draw_series(self.bars.iter().enumerate().map(|(index, (_, value))| {
                    let label = format!("{} {}", number(*value), self.unit);
                    Text::new(label, (length(*value) + gap, middle(index)), text(HPos::Left))
                }))
                .map_err(|error| failed(&error))?;
            let names = chart.plotting_area();
            for (index, (name, _)) in self.bars.iter().enumerate() {
                let (x, y) = names.map_coordinate(&(0.0, middle(index)));
                page.draw(&Text::new(name.clone(), (x - 8, y), text(HPos::Right))).map_err(|error| failed(&error))?;
            }
            page.present().map_err(|error| failed(&error))?;
        }
        Ok(svg)
    }
}

fn length(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}
