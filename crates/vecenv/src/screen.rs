//! From the console's picture to an observation: crop, luminance, the greatest of two frames, size, stack.
//!
//! All arithmetic is on whole numbers, so that observations are equal on every machine.

use framewire_game::Screen;
use framewire_libmgba::Frame;

/// What the observation of the picture looks like.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// x, y, width and height of the observed part.
    part: [usize; 4],
    width: usize,
    height: usize,
    /// Values per pixel: 1 or 3.
    channels: usize,
    stack: usize,
    pub(crate) max: u32,
    columns: Vec<Source>,
    rows: Vec<Source>,
}

/// The pixels of one axis that a pixel of the observation covers, and how much of each it covers.
#[derive(Debug, Clone)]
struct Source {
    first: usize,
    weights: Vec<u16>,
}

impl Layout {
    /// The layout for pictures of this size.
    ///
    /// # Errors
    /// If the part is not within the picture.
    pub(crate) fn new(screen: &Screen, width: u32, height: u32) -> Result<Layout, String> {
        let [x, y, part_width, part_height] = screen.crop.unwrap_or([0, 0, width, height]);
        let is_within =
            |start: u32, len: u32, end: u32| start.checked_add(len).is_some_and(|past| past <= end);
        if !is_within(x, part_width, width) || !is_within(y, part_height, height) {
            return Err(format!(
                "crop is [{x}, {y}, {part_width}, {part_height}], but the picture has {width}x{height} pixels"
            ));
        }
        let [to_width, to_height] = screen.size.unwrap_or([part_width, part_height]);
        Ok(Layout {
            part: [x, y, part_width, part_height].map(|number| number as usize),
            width: to_width as usize,
            height: to_height as usize,
            channels: if screen.grey { 1 } else { 3 },
            stack: screen.stack as usize,
            max: screen.max,
            columns: sources(part_width, to_width),
            rows: sources(part_height, to_height),
        })
    }

    /// The shape of the observation: steps (if more than one), rows, columns, and colours (if not grey).
    pub(crate) fn shape(&self) -> Vec<usize> {
        let mut shape = Vec::new();
        if self.stack > 1 {
            shape.push(self.stack);
        }
        shape.extend([self.height, self.width]);
        if self.channels > 1 {
            shape.push(self.channels);
        }
        shape
    }

    fn part_len(&self) -> usize {
        self.part[2] * self.part[3] * self.channels
    }

    fn step_len(&self) -> usize {
        self.width * self.height * self.channels
    }

    /// Values of the whole observation.
    pub(crate) fn len(&self) -> usize {
        self.step_len() * self.stack
    }
}

/// For each of `to` pixels, which of `from` pixels it covers. The weights of a pixel add up to `from`.
fn sources(from: u32, to: u32) -> Vec<Source> {
    let (from, to) = (from as usize, to as usize);
    let source = |pixel: usize| {
        // In units of 1 / to of a source pixel.
        let (start, end) = (pixel * from, (pixel + 1) * from);
        let first = start / to;
        let last = (end - 1) / to;
        let weight = |at: usize| (end.min((at + 1) * to) - start.max(at * to)) as u16;
        Source { first, weights: (first..=last).map(weight).collect() }
    };
    (0..to).map(source).collect()
}

/// The pictures of one environment.
#[derive(Debug, Clone)]
pub(crate) struct Pictures {
    /// The observed part of the newest picture, and of the one drawn before it.
    newest: Vec<u8>,
    before: Vec<u8>,
    /// One row of sums over source rows.
    sums: Vec<u16>,
    /// The last steps, the oldest first.
    steps: Vec<u8>,
}

impl Pictures {
    pub(crate) fn new(layout: &Layout) -> Pictures {
        let part = vec![0; layout.part_len()];
        let row = layout.part[2] * layout.channels;
        Pictures { newest: part.clone(), before: part, sums: vec![0; row], steps: vec![0; layout.len()] }
    }

    /// Takes a picture that was drawn.
    pub(crate) fn take(&mut self, layout: &Layout, frame: Frame<'_>) {
        std::mem::swap(&mut self.newest, &mut self.before);
        let [x, y, width, height] = layout.part;
        let rows = frame.rows().skip(y).take(height);
        for (row, to) in rows.zip(self.newest.chunks_exact_mut(width * layout.channels)) {
            let row = &row[4 * x..4 * (x + width)];
            if layout.channels == 1 {
                for (pixel, to) in row.chunks_exact(4).zip(to) {
                    *to = luminance(pixel);
                }
            } else {
                for (pixel, to) in row.chunks_exact(4).zip(to.chunks_exact_mut(3)) {
                    to.copy_from_slice(&pixel[..3]);
                }
            }
        }
    }

    /// Ends a step: its observation is the newest picture, or with `maximum` the greatest values of the newest two.
    pub(crate) fn end_step(&mut self, layout: &Layout, maximum: bool) {
        let len = layout.step_len();
        self.steps.copy_within(len.., 0);
        if maximum {
            for (newest, before) in self.newest.iter_mut().zip(&self.before) {
                *newest = (*newest).max(*before);
            }
        }
        let at = self.steps.len() - len;
        resize(layout, &self.newest, &mut self.sums, &mut self.steps[at..]);
    }

    /// Begins an episode: all steps of the stack are the newest picture.
    pub(crate) fn begin(&mut self, layout: &Layout) {
        let len = layout.step_len();
        let at = self.steps.len() - len;
        resize(layout, &self.newest, &mut self.sums, &mut self.steps[at..]);
        for step in 0..layout.stack - 1 {
            self.steps.copy_within(at.., step * len);
        }
    }

    /// The two newest pictures and the steps, to be saved.
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        [&self.newest, &self.before, &self.steps]
    }

    /// Replaces them by saved ones. Returns whether their sizes fit; if not, nothing was changed.
    pub(crate) fn set_parts(&mut self, parts: [Vec<u8>; 3]) -> bool {
        let fits = self.parts().iter().zip(&parts).all(|(own, new)| own.len() == new.len());
        if fits {
            [self.newest, self.before, self.steps] = parts;
        }
        fits
    }

    /// The observation.
    pub(crate) fn observation(&self) -> &[u8] {
        &self.steps
    }
}

/// ITU-R BT.601's weights, in 256ths.
fn luminance(pixel: &[u8]) -> u8 {
    let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((77 * red + 150 * green + 29 * blue + 128) >> 8) as u8
}

/// Writes `from`, a picture of the layout's part, into `to` in the layout's size. Each pixel is the mean of those that it
/// covers, rounded.
fn resize(layout: &Layout, from: &[u8], sums: &mut [u16], to: &mut [u8]) {
    let [_, _, width, height] = layout.part;
    if (width, height) == (layout.width, layout.height) {
        to.copy_from_slice(from);
        return;
    }
    let channels = layout.channels;
    let all = (width * height) as u32;
    for (row, to) in layout.rows.iter().zip(to.chunks_exact_mut(layout.width * channels)) {
        // At most 255 times the height, which is at most 224.
        sums.fill(0);
        let sources = from.chunks_exact(width * channels).skip(row.first);
        for (weight, source) in row.weights.iter().zip(sources) {
            for (sum, value) in sums.iter_mut().zip(source) {
                *sum += weight * u16::from(*value);
            }
        }
        for (column, to) in layout.columns.iter().zip(to.chunks_exact_mut(channels)) {
            for (channel, to) in to.iter_mut().enumerate() {
                let values = sums[column.first * channels + channel..].iter().step_by(channels);
                let sum: u32 = column
                    .weights
                    .iter()
                    .zip(values)
                    .map(|(weight, sum)| u32::from(*weight) * u32::from(*sum))
                    .sum();
                *to = ((sum + all / 2) / all) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: [u32; 2], grey: bool, width: u32, height: u32) -> Layout {
        Layout::new(&Screen { crop: None, size: Some(size), grey, stack: 1, max: 1 }, width, height).unwrap()
    }

    fn resized(layout: &Layout, from: &[u8]) -> Vec<u8> {
        let mut to = vec![0; layout.step_len()];
        resize(layout, from, &mut vec![0; layout.part[2] * layout.channels], &mut to);
        to
    }

    #[test]
    fn a_pixel_is_the_mean_of_those_that_it_covers() {
        assert_eq!(resized(&layout([1, 1], true, 2, 2), &[0, 10, 20, 30]), [15]);
        assert_eq!(resized(&layout([2, 1], true, 3, 1), &[0, 90, 255]), [30, 200]);
        assert_eq!(resized(&layout([1, 1], false, 2, 1), &[0, 1, 2, 10, 21, 32]), [5, 11, 17]);
        assert_eq!(resized(&layout([4, 1], true, 2, 1), &[7, 9]), [7, 7, 9, 9]);
    }

    #[test]
    fn one_colour_stays_that_colour_in_every_size() {
        for (width, height, size) in [(240, 160, [84, 84]), (160, 144, [84, 84]), (256, 224, [97, 61])] {
            let layout = layout(size, true, width, height);
            for value in [0, 1, 127, 255] {
                let from = vec![value; (width * height) as usize];
                assert!(
                    resized(&layout, &from).iter().all(|pixel| *pixel == value),
                    "{width}x{height} {value}"
                );
            }
        }
    }

    #[test]
    fn a_part_outside_of_the_picture_is_refused() {
        let screen = Screen { crop: Some([200, 0, 41, 160]), size: None, grey: true, stack: 1, max: 1 };
        let said = Layout::new(&screen, 240, 160).unwrap_err();
        assert!(said.contains("[200, 0, 41, 160]") && said.contains("240x160"), "{said}");
    }
}
