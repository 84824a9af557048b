//! Axes: how values are mapped to positions, and which values get a line and a label.

use super::escape;
use crate::report::format::{millis, rate};

/// How values are mapped to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Logarithmically.
    Log,
    /// Percentages by their distance from 100: 0, 90, 99, 99.9, …
    Nines,
    /// Names at equal distances: 1 is the first of [`Axis::names`].
    Names,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How values are mapped to positions.
    pub scale: Scale,
    /// The names at the values 1, 2, 3 and so on, for [`Scale::Names`]; empty for other scales.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of values.
    pub fn new(label: &str, scale: Scale) -> Self {
        Axis { label: label.to_owned(), scale, names: Vec::new() }
    }

    /// An axis of names.
    pub fn of_names(label: &str, names: Vec<String>) -> Self {
        Axis { label: label.to_owned(), scale: Scale::Names, names }
    }

    /// Formats a value for SVG. `millis` and `rate` only choose the number of digits: the unit is in the label.
    pub(super) fn show(&self, value: f64) -> String {
        match self.scale {
            Scale::Nines => format!("{value:.3}%"),
            Scale::Log => millis(value),
            Scale::Linear => rate(value),
            // Names are counted from 1.
            Scale::Names => {
                self.names.get((value as usize).wrapping_sub(1)).map(|name| escape(name)).unwrap_or_default()
            }
        }
    }
}

/// An axis with known ends.
pub(super) struct Range<'a> {
    scale: Scale,
    low: f64,
    high: f64,
    names: &'a [String],
}

impl Range<'_> {
    /// A range that contains all finite values. With `round`, a linear axis extends to the next tick.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, round: bool) -> Range<'_> {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = match axis.scale {
            Scale::Names => (0.4, axis.names.len().max(1) as f64 + 0.6),
            Scale::Linear if most == 0.0 => (0.0, 1.0),
            Scale::Linear if round => (0.0, step(most) * (most / step(most) - 1e-9).ceil()),
            Scale::Linear => (0.0, most),
            Scale::Nines => {
                let nines = values.iter().copied().filter(|value| *value < 100.0).map(nines);
                // The additional length at the end is for 100%, which would be infinitely far away.
                (0.0, nines.fold(1.0, f64::max) + 0.35)
            }
            Scale::Log => {
                let least = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                if least.is_finite() { magnitudes(least, most) } else { (-1.0, 1.0) }
            }
        };
        Range { scale: axis.scale, low, high, names: &axis.names }
    }

    /// The position of a value on the axis, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear | Scale::Names => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines if value >= 100.0 => self.high,
            Scale::Nines => nines(value),
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The values that get a line, with their labels for SVG.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Names => {
                self.names.iter().enumerate().map(|(at, name)| (at as f64 + 1.0, escape(name))).collect()
            }
            Scale::Linear => {
                let step = step(self.high);
                let count = (self.high / step + 1e-9).floor() as u32;
                (0..=count).map(|index| step * f64::from(index)).map(|value| (value, short(value))).collect()
            }
            Scale::Nines => {
                let ticks = (0..=self.high.floor() as i32)
                    .map(|nines| (nines, 100.0 * (1.0 - 10f64.powi(-nines))))
                    .map(|(nines, value)| (value, format!("{value:.0$}%", nines.max(2) as usize - 2)));
                let mut ticks: Vec<_> = ticks.collect();
                ticks.insert(1, (50.0, "50%".to_owned()));
                ticks
            }
            Scale::Log => {
                let steps: &[f64] = if self.high - self.low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                (self.low.floor() as i32..=self.high.ceil() as i32)
                    .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                    .filter(|value| (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10()))
                    .map(|value| (value, short(value)))
                    .collect()
            }
        }
    }
}

/// The number of nines that a percentage begins with, with fractions: 1 for 90%, 2 for 99%.
fn nines(percent: f64) -> f64 {
    -((100.0 - percent) / 100.0).log10()
}

/// A round step that divides the range from 0 to `most` into four to eight parts.
fn step(most: f64) -> f64 {
    let decade = 10f64.powf((most / 8.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    decade * steps.into_iter().find(|step| most <= 8.0 * step * decade).unwrap_or(10.0)
}

/// The ends of a logarithmic axis, as exponents of ten. The ends are 1, 2 or 5 times a power of ten, and the values lie
/// between them.
fn magnitudes(least: f64, most: f64) -> (f64, f64) {
    let decade = |value: f64| 10f64.powf(value.log10().floor());
    let below = [5.0, 2.0, 1.0].into_iter().find(|step| step * decade(least) <= least * 1.001);
    let above = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * decade(most) >= most * 0.999);
    let low = below.unwrap_or(1.0) * decade(least);
    let high = above.unwrap_or(10.0) * decade(most);
    (low.log10(), if high <= low * 1.5 { low * 10.0 } else { high }.log10())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of an axis for these values.
    fn labels(scale: Scale, values: &[f64], round: bool) -> Vec<String> {
        let axis = Axis::new("", scale);
        let range = Range::new(&axis, values.iter().copied(), round);
        let ends = [range.place(values[0]), range.place(values[values.len() - 1])];
        assert!(ends[0] >= 0.0 && ends[1] <= 1.0 && ends[0] < ends[1], "{ends:?}");
        range.ticks().into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn ticks_are_round_and_the_axis_contains_all_values() {
        assert_eq!(
            labels(Scale::Linear, &[3.0, 170.0], true),
            ["0", "25", "50", "75", "100", "125", "150", "175"]
        );
        assert_eq!(labels(Scale::Linear, &[1.0, 4.1], false), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(Scale::Log, &[3.0, 145.0], true), ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(Scale::Log, &[0.03, 1465.0], true), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::Nines, &[0.0, 99.9, 100.0], false), ["0%", "50%", "90%", "99%", "99.9%"]);
    }
}
