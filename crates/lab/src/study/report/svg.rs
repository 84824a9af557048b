//! Writes a plot as an SVG file that is readable on light and dark pages.

use std::fmt::Write;

use framewire_loadtest::report::plot::{HEIGHT, Mark, Plot, WIDTH, escape};

/// The space around the drawing.
const MARGIN: f64 = 14.0;
/// The height of the title.
const TITLE: f64 = 26.0;
/// The height of a line of the legend.
const LEGEND: f64 = 19.0;
/// The width of a key in the legend.
const KEY: f64 = 26.0;
/// The approximate width of a letter in the legend.
const LETTER: f64 = 6.3;

/// A plot's colours by number, on a light and on a dark background. The files contain these values and no CSS
/// variables, because some viewers do not support variables.
const COLOURS: [(&str, &str); 8] = [
    ("#2563c9", "#6ba3ff"),
    ("#d9730d", "#ffa24d"),
    ("#1a8f5a", "#4fd08f"),
    ("#c2353f", "#ff7a80"),
    ("#7a4fc4", "#b794ff"),
    ("#8a6d1f", "#d9bb5c"),
    ("#0e8a9b", "#4ecbdc"),
    ("#6b7280", "#9aa3af"),
];

/// The text of the SVG file.
pub fn file(plot: &Plot) -> String {
    let named: Vec<_> = plot.series.iter().filter(|series| !series.name.is_empty()).collect();
    let mut legend = String::new();
    let (mut x, mut y) = (MARGIN, MARGIN + TITLE);
    for series in &named {
        let width = KEY + 18.0 + LETTER * series.name.chars().count() as f64;
        if x > MARGIN && x + width > WIDTH + MARGIN {
            (x, y) = (MARGIN, y + LEGEND);
        }
        let class = if series.mark == Mark::Dashes { "line dashes" } else { "line" };
        let _ = writeln!(
            legend,
            "<path class=\"{class}\" stroke=\"{}\" d=\"M{x:.1} {:.1}h20\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}\
             </text>",
            COLOURS[series.colour % COLOURS.len()].0,
            y + 9.0,
            x + KEY,
            y + 13.0,
            escape(&series.name)
        );
        x += width;
    }
    let top = y + LEGEND + 6.0;
    let (width, height) = (WIDTH + 2.0 * MARGIN, top + HEIGHT + MARGIN);
    let mut drawing = plot.svg();
    for (number, (light, _)) in COLOURS.iter().enumerate() {
        drawing = drawing.replace(&format!("var(--c{number})"), light);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n<style>\n{}</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>\n{legend}\
         <svg x=\"{MARGIN}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\n{drawing}</svg>\n</svg>\n",
        style(),
        MARGIN + 14.0,
        escape(&plot.title),
    )
}

fn style() -> String {
    let mut style = "\
        .ground { fill: #ffffff; stroke: #dfe4ea; }\n\
        .title { fill: #1c2430; font-size: 14px; font-weight: 600; }\n\
        .name { fill: #3d4754; font-size: 11.5px; }\n\
        .grid { stroke: #e4e8ed; fill: none; }\n\
        .axis { stroke: #5b6675; fill: none; }\n\
        .tick { fill: #5b6675; font-size: 10.5px; }\n\
        .label { fill: #5b6675; font-size: 11.5px; }\n\
        .line { fill: none; stroke-width: 1.9; stroke-linejoin: round; }\n\
        .dashes { stroke-dasharray: 5 4; stroke-width: 1.4; }\n\
        @media (prefers-color-scheme: dark) {\n\
        .ground { fill: #14181e; stroke: #2d3540; }\n\
        .title { fill: #e6eaf0; }\n\
        .name { fill: #c3ccd8; }\n\
        .grid { stroke: #2d3540; }\n\
        .axis { stroke: #9aa6b5; }\n\
        .tick, .label { fill: #9aa6b5; }\n"
        .to_owned();
    for (light, dark) in COLOURS {
        let _ = writeln!(
            style,
            "[stroke=\"{light}\"] {{ stroke: {dark}; }} [fill=\"{light}\"] {{ fill: {dark}; }}"
        );
    }
    style + "}\n"
}
