//! Plots as SVG text, drawn in CSS variables so that a page decides on colours, light or dark.

use std::fmt::Write;

use super::format::{millis, rate};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By magnitude.
    Log,
    /// Percentages by their distance from 100: 0, 90, 99, 99.9, …
    Nines,
}

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

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

/// Values to draw.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend; without one it is not listed.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Colour, 0 to 7: the page's `--c0` to `--c7`.
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

/// An axis with its ends known.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Range {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least =
            |from: f64| values.iter().copied().filter(|value| *value > from).fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match scale {
            Scale::Linear => Range { scale, low: 0.0, high: nice(if most > 0.0 { most } else { 1.0 }) },
            Scale::Nines => {
                let nines = values.iter().copied().filter(|value| *value < 100.0).map(place_nines);
                Range { scale, low: 0.0, high: nines.fold(1.0, f64::max) + 0.35 }
            }
            Scale::Log => {
                let (low, high) = (least(0.0), most);
                if !low.is_finite() || high <= 0.0 {
                    return Range { scale, low: -1.0, high: 1.0 };
                }
                // Out to the next 1, 2 or 5 of a decade.
                let (low, high) = (step_down(low), step_up(high));
                let high = if high <= low * 1.5 { low * 10.0 } else { high };
                Range { scale, low: low.log10(), high: high.log10() }
            }
        }
    }

    /// 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines if value >= 100.0 => self.high,
            Scale::Nines => place_nines(value),
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Values that get a line, and their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => (0..=5)
                .map(|step| self.high * f64::from(step) / 5.0)
                .map(|value| (value, short(value)))
                .collect(),
            Scale::Nines => {
                let count = self.high.floor() as i32;
                let ticks = (0..=count).map(|nines| 100.0 * (1.0 - 10f64.powi(-nines)));
                let mut ticks: Vec<_> = ticks
                    .enumerate()
                    .map(|(nines, value)| (value, format!("{value:.0$}%", nines.saturating_sub(2))))
                    .collect();
                ticks.insert(1, (50.0, "50%".to_owned()));
                ticks
            }
            Scale::Log => {
                let wide = self.high - self.low > 3.0;
                let decades = self.low.floor() as i32..=self.high.ceil() as i32;
                let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
                decades
                    .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                    .filter(|value| (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10()))
                    .map(|value| (value, short(value)))
                    .collect()
            }
        }
    }
}

fn place_nines(percent: f64) -> f64 {
    -((100.0 - percent) / 100.0).log10()
}

fn nice(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    decade * steps.into_iter().find(|step| step * decade >= value * 0.999_999).unwrap_or(10.0)
}

fn step_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    decade * [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * decade >= value * 0.999).unwrap_or(10.0)
}

fn step_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    decade * [5.0, 2.0, 1.0].into_iter().find(|step| step * decade <= value * 1.001).unwrap_or(1.0)
}

/// A tick's label: `0.05`, `2`, `500`, `20k`, `1M`.
fn short(value: f64) -> String {
    let (value, suffix) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = format!("{value:.4}");
    format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Text that may stand in SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Plot {
    /// The plot as an `svg` element.
    pub fn svg(&self) -> String {
        let stacked = self.stacked();
        let xs = stacked.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let ys = stacked.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let (x, y) = (Range::new(self.x.scale, xs), Range::new(self.y.scale, ys));
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.axes(&x, &y, &mut out);
        let across = |value: f64| LEFT + x.place(value) * (WIDTH - LEFT - RIGHT);
        let up = |value: f64| HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM);
        // The highest bar of a stack first, so that the lower ones cover it.
        for (index, series) in stacked.iter().enumerate().rev() {
            self.draw(index, series, &across, &up, &mut out);
        }
        out += "</svg>\n";
        out
    }

    /// The series, bars put on top of each other.
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

    fn axes(&self, x: &Range, y: &Range, out: &mut String) {
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
        // The real value, not the top of the stack.
        let told = |number: usize, point: &(f64, f64)| {
            let value = self.series[index].points[number].1;
            let (x, y) = (self.tell(self.x.scale, point.0), self.tell(self.y.scale, value));
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
                    told(number, point)
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
                    told(number, point)
                );
            }
        }
    }

    fn tell(&self, scale: Scale, value: f64) -> String {
        match scale {
            Scale::Nines => format!("{value:.3}%"),
            Scale::Log => millis(value),
            Scale::Linear => rate(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let range = Range::new(Scale::Linear, [3.0, 181.0].into_iter());
        assert_eq!(range.high, 200.0);
        let range = Range::new(Scale::Log, [0.03, 1465.0].into_iter());
        assert!(range.place(0.03) > 0.0 && range.place(1465.0) < 1.0);
        assert!(range.ticks().iter().any(|(_, label)| label == "1000"));
        let range = Range::new(Scale::Nines, [0.0, 50.0, 99.9, 100.0].into_iter());
        let labels: Vec<_> = range.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["0%", "50%", "90%", "99%", "99.9%"]);
    }

    #[test]
    fn nothing_to_draw_is_no_reason_to_fail() {
        let axis = |scale| Axis { label: "<&>".to_owned(), scale };
        for (x, y) in [(Scale::Linear, Scale::Log), (Scale::Nines, Scale::Linear), (Scale::Log, Scale::Nines)]
        {
            let plot = Plot { title: "\"".to_owned(), x: axis(x), y: axis(y), series: vec![] };
            let svg = plot.svg();
            assert!(svg.contains("&lt;&amp;&gt;") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
