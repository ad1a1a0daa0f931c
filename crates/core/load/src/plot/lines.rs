//! Lines over an axis, such as a cost over the size of a store.

use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::{Circle, PathElement};
use plotters::prelude::{IntoDrawingArea, IntoLogRange, LineSeries, SVGBackend};
use plotters::style::{BLACK, Color, Palette, Palette99, WHITE};

use crate::plot::{Axis, PlotError, Scale};
use crate::report::number;

const SIZE: (u32, u32) = (900, 480);
const FONT: &str = "sans-serif";
/// The length of a line in the legend, in pixels.
const SAMPLE: i32 = 18;

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    /// x and y, ordered by x. Points that an axis cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// A picture of some series over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

impl Lines {
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    #[must_use]
    pub fn series(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.series.push(Series { name: name.into(), points });
        self
    }

    /// The picture as an SVG text.
    pub fn svg(&self) -> Result<String, PlotError> {
        let shown = || self.series.iter().flat_map(|series| self.shown(series));
        let x = self.x.range(shown().map(|(x, _)| x)).ok_or(PlotError::Nothing)?;
        let y = self.y.range(shown().map(|(_, y)| y)).ok_or(PlotError::Nothing)?;
        match (self.x.scale, self.y.scale) {
            (Scale::Linear, Scale::Linear) => self.draw(x, y),
            (Scale::Linear, Scale::Logarithmic) => self.draw(x, y.log_scale()),
            (Scale::Logarithmic, Scale::Linear) => self.draw(x.log_scale(), y),
            (Scale::Logarithmic, Scale::Logarithmic) => self.draw(x.log_scale(), y.log_scale()),
        }
    }

    fn shown<'s>(&'s self, series: &'s Series) -> impl Iterator<Item = (f64, f64)> + 's {
        series.points.iter().copied().filter(|&(x, y)| self.x.shows(x) && self.y.shows(y))
    }

    fn draw<X, Y>(&self, x: X, y: Y) -> Result<String, PlotError>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let failed = |error: &dyn std::fmt::Display| PlotError::Drawing(error.to_string());
        let mut svg = String::new();
        {
            let page = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            page.fill(&WHITE).map_err(|error| failed(&error))?;
            let mut chart = ChartBuilder::on(&page)
                .caption(&self.title, (FONT, 20))
                .margin(14)
                .x_label_area_size(44)
                .y_label_area_size(72)
                .build_cartesian_2d(x, y)
                .map_err(|error| failed(&error))?;
            chart
                .configure_mesh()
                .x_desc(&self.x.label)
                .y_desc(&self.y.label)
                .x_label_formatter(&|value| number(*value))
                .y_label_formatter(&|value| number(*value))
                .max_light_lines(1)
                .label_style((FONT, 14))
                .axis_desc_style((FONT, 15))
                .draw()
                .map_err(|error| failed(&error))?;
            for (index, series) in self.series.iter().enumerate() {
                let color = Palette99::pick(index).to_rgba();
                chart
                    .draw_series(LineSeries::new(self.shown(series), color.stroke_width(2)))
                    .map_err(|error| failed(&error))?
                    .label(&series.name)
                    .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + SAMPLE, y)], color.stroke_width(2)));
                chart
                    .draw_series(self.shown(series).map(|point| Circle::new(point, 3, color.filled())))
                    .map_err(|error| failed(&error))?;
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .label_font((FONT, 14))
                .draw()
                .map_err(|error| failed(&error))?;
            page.present().map_err(|error| failed(&error))?;
        }
        Ok(svg)
    }
}
