//! Plots as SVG text. Colours are CSS variables, so that the page can choose light or dark colours.

mod axis;

use std::fmt::Write;

use axis::Range;
pub use axis::{Axis, Scale};

/// The width of a plot, in units of the `viewBox`.
pub const WIDTH: f64 = 560.0;
/// The height of a plot, in units of the `viewBox`.
pub const HEIGHT: f64 = 300.0;
// The margins around the area between the axes.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line.
    Line,
    /// A line with a dot at each value.
    Dots,
    /// A thin dashed line: something to compare with.
    Dashes,
    /// Bars from zero; those of several series are stacked.
    Bars,
}

/// Values to draw.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend. A series without a name is not in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// The number of its colour: 0 to 7 for the page's `--c0` to `--c7`. Higher numbers begin again with `--c0`.
    pub colour: usize,
    /// Horizontal and vertical values; a value that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows; read out by screen readers.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Escapes a text for SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Plot {
    /// The plot as an `svg` element.
    pub fn svg(&self) -> String {
        let stacked = self.stacked();
        let xs = stacked.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let ys = stacked.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let (x, y) = (Range::new(&self.x, xs, false), Range::new(&self.y, ys, true));
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.axes(&x, &y, &mut out);
        let across = |value: f64| LEFT + x.place(value) * (WIDTH - LEFT - RIGHT);
        let up = |value: f64| HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM);
        // The highest bar of a stack is drawn first, so that the lower bars cover it. Lines are drawn over all bars.
        let bars = |series: &&(usize, &Series)| series.1.mark == Mark::Bars;
        let numbered: Vec<_> = stacked.iter().enumerate().collect();
        let lines = numbered.iter().filter(|series| !bars(series));
        for (index, series) in numbered.iter().rev().filter(bars).chain(lines) {
            self.draw(*index, series, &across, &up, &mut out);
        }
        out += "</svg>\n";
        out
    }

    /// The series, with bars stacked on top of each other.
    fn stacked(&self) -> Vec<Series> {
        let mut base: Vec<(f64, f64)> = Vec::new();
        let mut stacked = self.series.clone();
        for series in stacked.iter_mut().filter(|series| series.mark == Mark::Bars) {
            for point in &mut series.points {
                match base.iter_mut().find(|below| below.0 == point.0) {
                    Some(below) => {
                        below.1 += point.1;
                        point.1 = below.1;
                    }
                    None => base.push(*point),
                }
            }
        }
        stacked
    }

    fn axes(&self, x: &Range<'_>, y: &Range<'_>, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in y.ticks() {
            let at = bottom - y.place(value) * (bottom - TOP);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 3.5
            );
        }
        for (value, label) in x.ticks() {
            let at = LEFT + x.place(value) * (right - LEFT);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{label}</text>",
                bottom + 15.0
            );
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\n\
             <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text class=\"label\" transform=\"translate(13 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + right) / 2.0,
            HEIGHT - 7.0,
            escape(&self.x.label),
            (TOP + bottom) / 2.0,
            escape(&self.y.label),
        );
    }

    fn draw(
        &self,
        index: usize,
        series: &Series,
        across: &dyn Fn(f64) -> f64,
        up: &dyn Fn(f64) -> f64,
        out: &mut String,
    ) {
        let colour = format!("var(--c{})", series.colour % 8);
        // The tooltip of a bar shows its own value, not the top of the stack.
        let tooltip = |number: usize, point: &(f64, f64)| {
            let value = self.series[index].points[number].1;
            let (x, y) = (self.x.show(point.0), self.y.show(value));
            format!("<title>{} {x}: {y}</title>", escape(&series.name))
        };
        if series.mark == Mark::Bars {
            let width = (WIDTH - LEFT - RIGHT) / (series.points.len().max(1) as f64 * 1.6).max(6.0);
            for (number, point) in series.points.iter().enumerate() {
                let (left, top) = (across(point.0) - width / 2.0, up(point.1));
                let _ = writeln!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\">{}\
                     </rect>",
                    HEIGHT - BOTTOM - top,
                    tooltip(number, point)
                );
            }
            return;
        }
        let mut path = String::new();
        let mut pen_up = true;
        for point in &series.points {
            if !(point.0.is_finite() && point.1.is_finite()) {
                pen_up = true;
                continue;
            }
            let _ =
                write!(path, "{}{:.1} {:.1}", if pen_up { 'M' } else { 'L' }, across(point.0), up(point.1));
            pen_up = false;
        }
        let class = if series.mark == Mark::Dashes { "line dashes" } else { "line" };
        let name = escape(&series.name);
        let _ = writeln!(
            out,
            "<path class=\"{class}\" stroke=\"{colour}\" d=\"{path}\"><title>{name}</title></path>"
        );
        if series.mark == Mark::Dots {
            for (number, point) in series.points.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\" fill=\"{colour}\">{}</circle>",
                    across(point.0),
                    up(point.1),
                    tooltip(number, point)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_plot_is_drawn() {
        for (x, y) in [(Scale::Linear, Scale::Log), (Scale::Nines, Scale::Linear), (Scale::Log, Scale::Names)]
        {
            let (x, y) = (Axis::new("<&>", x), Axis::new("<&>", y));
            let svg = Plot { title: "\"".to_owned(), x, y, series: vec![] }.svg();
            assert!(svg.contains("&lt;&amp;&gt;") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
