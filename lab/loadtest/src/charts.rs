//! Plots of what happened over time, as SVG that stands inside a page.
//!
//! Text, axes and grid have colours of their own that the page's style replaces, so that the plots fit
//! a light page and a dark one. The legend is the page's.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// What text is drawn in, for the page to replace.
pub const INK: &str = "#010203";
/// What axes and grid are drawn in, for the page to replace.
pub const GRID: &str = "#040506";
const INK_RGB: RGBColor = RGBColor(1, 2, 3);
const GRID_RGB: RGBColor = RGBColor(4, 5, 6);
/// Twice as large as it is shown: the library rounds to whole units.
const SIZE: (u32, u32) = (1600, 600);
const FONT: i32 = 42;
const STROKE: u32 = 4;
const LABELS: usize = 5;
/// Colours that can be told apart, on white and on black.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x3b, 0x82, 0xd9),
    RGBColor(0xe2, 0x7a, 0x22),
    RGBColor(0x2f, 0xa3, 0x66),
    RGBColor(0xcf, 0x4a, 0x6d),
    RGBColor(0x92, 0x69, 0xd8),
    RGBColor(0xb5, 0x93, 0x1e),
    RGBColor(0x1f, 0xa5, 0xb2),
    RGBColor(0x86, 0x8e, 0x99),
];

/// One line or one layer.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its colour, by number.
    pub colour: usize,
    /// Its points, from left to right; the same moments as those of every other curve of a stack.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve in the colour of this number.
    pub fn new(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, points }
    }

    /// Its colour, as a page writes it.
    #[must_use]
    pub fn css(&self) -> String {
        let RGBColor(red, green, blue) = self.rgb();
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    fn rgb(&self) -> RGBColor {
        COLOURS[self.colour % COLOURS.len()]
    }
}

/// Why a plot cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a plot cannot be drawn: {0}")]
pub struct Error(String);

type Drawn<T> = Result<T, DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

/// Lines over seconds.
///
/// # Errors
/// The library cannot draw it.
pub fn lines(curves: &[Curve]) -> Result<String, Error> {
    let (seconds, most) = extent(curves);
    draw(OVER_SECONDS, 0.0..seconds, 0.0..most * 1.05, |chart| {
        for curve in curves {
            let style = curve.rgb().stroke_width(STROKE);
            chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?;
        }
        Ok(())
    })
}

/// Lines over seconds, on a logarithmic scale that begins at `least`; what is less is drawn there.
///
/// # Errors
/// The library cannot draw it.
pub fn logarithmic(curves: &[Curve], least: f64) -> Result<String, Error> {
    let (seconds, most) = extent(curves);
    let values = (least..most.max(least * 10.0) * 1.3).log_scale();
    draw(OVER_SECONDS, 0.0..seconds, values, |chart| {
        for curve in curves {
            let points = curve.points.iter().map(|(x, y)| (*x, y.max(least)));
            chart.draw_series(LineSeries::new(points, curve.rgb().stroke_width(STROKE)))?;
        }
        Ok(())
    })
}

/// Lines over numbers, both on logarithmic scales; the values begin at `least`, and what is less is drawn there.
///
/// # Errors
/// The library cannot draw it.
pub fn logarithmic_over_numbers(curves: &[Curve], least: f64) -> Result<String, Error> {
    let (last, most) = extent(curves);
    let xs = curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let first = xs.fold(last, f64::min).max(f64::MIN_POSITIVE);
    let numbers = (first..last.max(first * 10.0)).log_scale();
    let values = (least..most.max(least * 10.0) * 1.3).log_scale();
    draw(short, numbers, values, |chart| {
        for curve in curves {
            let points: Vec<(f64, f64)> =
                curve.points.iter().map(|(x, y)| (*x, y.max(least))).collect();
            let style = curve.rgb().stroke_width(STROKE);
            chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            let dots = points.iter().map(|point| Circle::new(*point, 8, curve.rgb().filled()));
            chart.draw_series(dots)?;
        }
        Ok(())
    })
}

/// Layers over seconds, the first at the bottom.
///
/// # Errors
/// The library cannot draw it.
pub fn stacked(curves: &[Curve]) -> Result<String, Error> {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    let mut layers = Vec::new();
    for curve in curves {
        sums.resize(curve.points.len().max(sums.len()), (0.0, 0.0));
        for (sum, point) in sums.iter_mut().zip(&curve.points) {
            *sum = (point.0, sum.1 + point.1);
        }
        layers.push(Curve { points: sums.clone(), ..curve.clone() });
    }
    let (seconds, most) = extent(&layers);
    draw(OVER_SECONDS, 0.0..seconds, 0.0..most * 1.05, |chart| {
        // From the top down: each layer covers what is below it of the one above.
        for layer in layers.iter().rev() {
            let points = layer.points.iter().copied();
            chart.draw_series(AreaSeries::new(points, 0.0, layer.rgb().filled()))?;
        }
        Ok(())
    })
}

/// The last second and the highest value.
fn extent(curves: &[Curve]) -> (f64, f64) {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let (seconds, most) =
        points.fold((0.0_f64, 0.0_f64), |(seconds, most), (x, y)| (seconds.max(*x), most.max(*y)));
    (seconds.max(1.0), if most > 0.0 { most } else { 1.0 })
}

type Chart<'chart, 'svg, X, Y> = ChartContext<'chart, SVGBackend<'svg>, Cartesian2d<X, Y>>;

/// How an axis of seconds is labelled.
const OVER_SECONDS: fn(f64) -> String = |seconds| format!("{seconds:.0} s");

fn draw<X, Y>(
    label: fn(f64) -> String,
    along: X,
    values: Y,
    series: impl for<'chart, 'svg> FnOnce(
        &mut Chart<'chart, 'svg, X::CoordDescType, Y::CoordDescType>,
    ) -> Drawn<()>,
) -> Result<String, Error>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    paint(&mut svg, label, along, values, series).map_err(|error| Error(error.to_string()))?;
    Ok(svg)
}

fn paint<'svg, X, Y>(
    svg: &'svg mut String,
    label: fn(f64) -> String,
    along: X,
    values: Y,
    series: impl for<'chart> FnOnce(
        &mut Chart<'chart, 'svg, X::CoordDescType, Y::CoordDescType>,
    ) -> Drawn<()>,
) -> Drawn<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let text = ("sans-serif", FONT).into_font().color(&INK_RGB);
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(70)
        .y_label_area_size(130)
        .build_cartesian_2d(along, values)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID_RGB)
        .axis_style(GRID_RGB)
        .label_style(text)
        .x_labels(LABELS * 2)
        .y_labels(LABELS)
        .x_label_formatter(&|x| label(*x))
        .y_label_formatter(&|value| short(*value))
        .draw()?;
    series(&mut chart)?;
    area.present()
}

/// A number as an axis shows it.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 1e9 => format!("{}G", trimmed(value / 1e9)),
        large if large >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        large if large >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_an_axis_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (20.0, "20"),
            (1500.0, "1.5k"),
            (890_000.0, "890k"),
            (2e6, "2M"),
            (1e11, "100G"),
        ] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn every_plot_draws_its_curves_in_colours_that_a_page_can_replace() {
        let curves = [
            Curve::new("a", 0, vec![(0.0, 0.0), (1.0, 5.0), (2.0, 3.0)]),
            Curve::new("b", 1, vec![(0.0, 1.0), (1.0, 2.0), (2.0, 9.0)]),
        ];
        let over_numbers = logarithmic_over_numbers(&curves, 0.1);
        for svg in [lines(&curves), logarithmic(&curves, 0.1), stacked(&curves), over_numbers] {
            let svg = svg.unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
            for curve in &curves {
                assert!(svg.to_lowercase().contains(&curve.css()), "{} is drawn", curve.name);
            }
            assert!(svg.contains(INK) && svg.contains(GRID));
        }
        assert!(lines(&[]).is_ok(), "nothing to draw is no error");
    }
}
