//! Makes an observation from the console's pictures: crops them, computes luminance, takes the maximum of two frames,
//! resizes the result, and stacks the pictures of several steps.
//!
//! All arithmetic uses integers, so that observations are equal on every machine.

use framewire_game::Screen;
use framewire_libmgba::Frame;
use pulp::{Arch, NullaryFnOnce};

/// How an observation is made from pictures.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// x, y, width and height of the observed part.
    part: [usize; 4],
    width: usize,
    height: usize,
    /// Values per pixel: 1 or 3.
    channels: usize,
    /// The number of steps in an observation.
    stack: usize,
    /// 2 if the picture of a step is the maximum of the newest two pictures, otherwise 1.
    pub(crate) max: u32,
    columns: Taps,
    rows: Vec<Covered>,
    /// Divides by the number of pixels of the part.
    mean: Divisor,
    /// The processor's vector instructions.
    simd: Arch,
}

/// The source pixels, along one axis, that a pixel of the observation covers. The weights say how much of each it
/// covers.
#[derive(Debug, Clone)]
struct Covered {
    first: usize,
    weights: Vec<u16>,
}

impl Layout {
    /// The layout for pictures of this size.
    ///
    /// # Errors
    /// If the observed part is not within the picture.
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
            columns: Taps::new(&sources(part_width, to_width)),
            rows: sources(part_height, to_height),
            mean: Divisor::new(part_width * part_height),
            simd: Arch::new(),
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

    /// The number of values in a row of the observed part.
    fn row_len(&self) -> usize {
        self.part[2] * self.channels
    }

    fn part_len(&self) -> usize {
        self.part[3] * self.row_len()
    }

    fn step_len(&self) -> usize {
        self.width * self.height * self.channels
    }

    fn buffers(&self) -> Buffers {
        Buffers {
            row: vec![0; self.row_len()],
            sums: vec![0; (self.part[2] + self.columns.each) * self.channels],
        }
    }

    /// The number of values in the whole observation.
    pub(crate) fn len(&self) -> usize {
        self.step_len() * self.stack
    }
}

/// For each of the `to` pixels of the observation: which of the `from` source pixels it covers. The weights of a pixel
/// add up to `from`.
fn sources(from: u32, to: u32) -> Vec<Covered> {
    let (from, to) = (from as usize, to as usize);
    let source = |pixel: usize| {
        // Positions are in units of 1 / `to` of a source pixel.
        let (start, end) = (pixel * from, (pixel + 1) * from);
        let first = start / to;
        let last = (end - 1) / to;
        let weight = |at: usize| (end.min((at + 1) * to) - start.max(at * to)) as u16;
        Covered { first, weights: (first..=last).map(weight).collect() }
    };
    (0..to).map(source).collect()
}

/// A [`Covered`] for each pixel of a row, as flat lists. Here, all pixels have the same number of weights, so that the
/// compiler can unroll the loop over the weights.
#[derive(Debug, Clone)]
struct Taps {
    /// The number of weights of each pixel. Weights after the last source pixel that it covers are 0.
    each: usize,
    /// For each pixel, the first source pixel that it covers.
    first: Vec<usize>,
    weights: Vec<u32>,
}

impl Taps {
    fn new(sources: &[Covered]) -> Taps {
        let each = sources.iter().map(|source| source.weights.len()).max().unwrap_or(1);
        let weights = sources.iter().flat_map(|source| {
            let weights = source.weights.iter().copied().map(u32::from);
            weights.chain(std::iter::repeat(0)).take(each)
        });
        Taps { each, first: sources.iter().map(|source| source.first).collect(), weights: weights.collect() }
    }

    /// Writes each pixel: the mean of the source pixels that it covers. `sums` has `channels` values for each source
    /// pixel. After them, it has further values, which are only ever multiplied by weights of 0.
    #[inline(always)]
    fn write(&self, sums: &[u16], channels: usize, mean: Divisor, to: &mut [u8]) {
        match self.each {
            1 => self.write_each::<1>(sums, channels, mean, to),
            2 => self.write_each::<2>(sums, channels, mean, to),
            3 => self.write_each::<3>(sums, channels, mean, to),
            4 => self.write_each::<4>(sums, channels, mean, to),
            _ => {
                let weights = self.weights.chunks_exact(self.each);
                let pixels = self.first.iter().zip(weights).zip(to.chunks_exact_mut(channels));
                for ((first, weights), to) in pixels {
                    write_pixel(&sums[first * channels..], weights, channels, mean, to);
                }
            }
        }
    }

    #[inline(always)]
    fn write_each<const EACH: usize>(&self, sums: &[u16], channels: usize, mean: Divisor, to: &mut [u8]) {
        let (weights, _) = self.weights.as_chunks::<EACH>();
        if channels == 1 {
            for ((first, weights), to) in self.first.iter().zip(weights).zip(to) {
                write_pixel(&sums[*first..first + EACH], weights, 1, mean, std::slice::from_mut(to));
            }
            return;
        }
        for ((first, weights), to) in self.first.iter().zip(weights).zip(to.chunks_exact_mut(channels)) {
            write_pixel(&sums[first * channels..(first + EACH) * channels], weights, channels, mean, to);
        }
    }
}

#[inline(always)]
fn write_pixel(sums: &[u16], weights: &[u32], channels: usize, mean: Divisor, to: &mut [u8]) {
    for (channel, to) in to.iter_mut().enumerate() {
        let terms =
            weights.iter().enumerate().map(|(at, weight)| weight * u32::from(sums[at * channels + channel]));
        *to = mean.divide_rounded(terms.sum()) as u8;
    }
}

/// Divides by a fixed number, by means of a multiplication.
#[derive(Debug, Clone, Copy)]
struct Divisor {
    half: u32,
    reciprocal: u64,
}

impl Divisor {
    /// The number of fraction bits in `reciprocal`. With it, division is exact for sums of 24 bits and divisors of 16
    /// bits.
    const BITS: u32 = 44;

    fn new(divisor: u32) -> Divisor {
        Divisor { half: divisor / 2, reciprocal: (1u64 << Divisor::BITS).div_ceil(divisor.into()) }
    }

    #[inline(always)]
    fn divide_rounded(self, sum: u32) -> u32 {
        ((u64::from(sum + self.half) * self.reciprocal) >> Divisor::BITS) as u32
    }
}

/// The pictures of one environment.
#[derive(Debug, Clone)]
pub(crate) struct Pictures {
    /// With `max` 2, the observed part of the newest picture, and of the one drawn before it; otherwise empty.
    newest: Vec<u8>,
    before: Vec<u8>,
    /// With `max` 1, the newest picture in the size of the observation; otherwise empty.
    image: Vec<u8>,
    buffers: Buffers,
    /// The pictures of the last steps, as a ring buffer.
    steps: Vec<u8>,
    /// The position of the oldest step in `steps`.
    oldest: usize,
}

/// Buffers for [`resize`], kept so that they are allocated only once.
#[derive(Debug, Clone)]
struct Buffers {
    /// One row of the observed part.
    row: Vec<u8>,
    /// One row of weighted sums over source rows, and then values that are only ever multiplied by weights of 0.
    sums: Vec<u16>,
}

impl Pictures {
    pub(crate) fn new(layout: &Layout) -> Pictures {
        let (part, image) = if layout.max == 2 { (layout.part_len(), 0) } else { (0, layout.step_len()) };
        Pictures {
            newest: vec![0; part],
            before: vec![0; part],
            image: vec![0; image],
            buffers: layout.buffers(),
            steps: vec![0; layout.len()],
            oldest: 0,
        }
    }

    /// Takes a picture that the core has drawn.
    pub(crate) fn take(&mut self, layout: &Layout, frame: Frame<'_>) {
        layout.simd.dispatch(Take { pictures: self, layout, frame });
    }

    /// Ends a step. Its picture is the newest one or, with `maximum`, the maximum of the newest two.
    pub(crate) fn end_step(&mut self, layout: &Layout, maximum: bool) {
        layout.simd.dispatch(EndStep { pictures: self, layout, maximum });
    }

    /// Begins an episode: all steps of the stack are the newest picture.
    pub(crate) fn begin(&mut self, layout: &Layout) {
        (0..layout.stack).for_each(|_| self.end_step(layout, false));
    }

    /// The parts for a saved state: the two newest pictures, the newest one in the size of the observation, and the
    /// steps.
    pub(crate) fn parts(&self) -> [Vec<u8>; 4] {
        let steps = self.observation().concat();
        [self.newest.clone(), self.before.clone(), self.image.clone(), steps]
    }

    /// Whether saved parts have the sizes of these pictures.
    pub(crate) fn fits(&self, parts: &[Vec<u8>; 4]) -> bool {
        let own = [&self.newest, &self.before, &self.image, &self.steps];
        own.iter().zip(parts).all(|(own, new)| own.len() == new.len())
    }

    /// Replaces the parts with saved ones that [`fits`](Pictures::fits) accepts.
    pub(crate) fn set_parts(&mut self, parts: [Vec<u8>; 4]) {
        [self.newest, self.before, self.image, self.steps] = parts;
        self.oldest = 0;
    }

    /// The observation, in two pieces. The first piece has the older steps.
    pub(crate) fn observation(&self) -> [&[u8]; 2] {
        let (newer, older) = self.steps.split_at(self.oldest);
        [older, newer]
    }
}

/// [`Pictures::take`], compiled for this processor's vector instructions. Because of `inline(always)`, here and below,
/// the loops are compiled for these instructions, too. This is not a closure, because a closure may be compiled
/// separately, for the instructions that every processor has.
struct Take<'a> {
    pictures: &'a mut Pictures,
    layout: &'a Layout,
    frame: Frame<'a>,
}

impl NullaryFnOnce for Take<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Take { pictures: Pictures { newest, before, image, buffers, .. }, layout, frame } = self;
        let rows = Drawn { frame, layout };
        if layout.max == 2 {
            std::mem::swap(newest, before);
            for (at, to) in newest.chunks_exact_mut(layout.row_len()).enumerate() {
                rows.read(at, to);
            }
        } else {
            resize(layout, &rows, buffers, image);
        }
    }
}

/// [`Pictures::end_step`], compiled in the same way.
struct EndStep<'a> {
    pictures: &'a mut Pictures,
    layout: &'a Layout,
    maximum: bool,
}

impl NullaryFnOnce for EndStep<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let EndStep { pictures, layout, maximum } = self;
        let Pictures { newest, before, image, buffers, steps, oldest } = pictures;
        let len = layout.step_len();
        let to = &mut steps[*oldest..*oldest + len];
        *oldest = (*oldest + len) % (len * layout.stack);
        if layout.max == 1 {
            to.copy_from_slice(image);
        } else {
            let before = if maximum { &before[..] } else { &newest[..] };
            resize(layout, &Greatest { newest, before, layout }, buffers, to);
        }
    }
}

/// The observed part of a picture.
trait Part {
    /// Copies row `at` of the part, which has [`Layout::row_len`] values, to `to`.
    fn read(&self, at: usize, to: &mut [u8]);
}

/// The observed part of a picture that the core has drawn, which has 4 bytes per pixel.
struct Drawn<'a> {
    frame: Frame<'a>,
    layout: &'a Layout,
}

impl Part for Drawn<'_> {
    #[inline(always)]
    fn read(&self, at: usize, to: &mut [u8]) {
        let [x, y, width, _] = self.layout.part;
        let row = &self.frame.row(y + at)[4 * x..4 * (x + width)];
        if self.layout.channels == 1 {
            for (pixel, to) in row.as_chunks().0.iter().zip(to) {
                *to = luminance(u32::from_le_bytes(*pixel));
            }
        } else {
            for (pixel, to) in row.chunks_exact(4).zip(to.chunks_exact_mut(3)) {
                to.copy_from_slice(&pixel[..3]);
            }
        }
    }
}

/// The maximum of the observed parts of two pictures.
struct Greatest<'a> {
    newest: &'a [u8],
    before: &'a [u8],
    layout: &'a Layout,
}

impl Part for Greatest<'_> {
    #[inline(always)]
    fn read(&self, at: usize, to: &mut [u8]) {
        let len = self.layout.row_len();
        let row = at * len..(at + 1) * len;
        for ((to, newest), before) in to.iter_mut().zip(&self.newest[row.clone()]).zip(&self.before[row]) {
            *to = (*newest).max(*before);
        }
    }
}

/// The luminance of a pixel, with the weights of ITU-R BT.601 in 256ths. The compiler generates faster vector code
/// here with 32-bit numbers than with 16-bit numbers.
#[inline(always)]
fn luminance(pixel: u32) -> u8 {
    let [red, green, blue] = [pixel, pixel >> 8, pixel >> 16].map(|channel| channel & 0xFF);
    ((77 * red + 150 * green + 29 * blue + 128) >> 8) as u8
}

/// Writes a part in the size of the observation. Each pixel is the rounded mean of the source pixels that it covers.
#[inline(always)]
fn resize(layout: &Layout, part: &impl Part, buffers: &mut Buffers, to: &mut [u8]) {
    let [_, _, width, height] = layout.part;
    let channels = layout.channels;
    let rows = to.chunks_exact_mut(layout.width * channels);
    if (width, height) == (layout.width, layout.height) {
        for (at, to) in rows.enumerate() {
            part.read(at, to);
        }
        return;
    }
    let Buffers { row: values, sums } = buffers;
    let mut known = None;
    for (source, to) in layout.rows.iter().zip(rows) {
        // A sum is at most 255 times the height, which is at most 224. So it fits into 16 bits.
        let sums_of_row = &mut sums[..layout.row_len()];
        sums_of_row.fill(0);
        for (at, weight) in (source.first..).zip(&source.weights) {
            // Two rows of the result may share a source row. In that case, `values` still contains that row.
            if known.replace(at) != Some(at) {
                part.read(at, values);
            }
            for (sum, value) in sums_of_row.iter_mut().zip(&*values) {
                *sum += weight * u16::from(*value);
            }
        }
        layout.columns.write(sums, channels, layout.mean, to);
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
        resize(layout, &Greatest { newest: from, before: from, layout }, &mut layout.buffers(), &mut to);
        to
    }

    #[test]
    fn a_pixel_is_the_mean_of_the_source_pixels_that_it_covers() {
        assert_eq!(resized(&layout([1, 1], true, 2, 2), &[0, 10, 20, 30]), [15]);
        assert_eq!(resized(&layout([2, 1], true, 3, 1), &[0, 90, 255]), [30, 200]);
        assert_eq!(resized(&layout([1, 1], false, 2, 1), &[0, 1, 2, 10, 21, 32]), [5, 11, 17]);
        assert_eq!(resized(&layout([4, 1], true, 2, 1), &[7, 9]), [7, 7, 9, 9]);
    }

    #[test]
    fn a_uniform_colour_is_kept_in_every_size() {
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
    fn division_by_multiplication_is_exact() {
        for divisor in (1..=256u32).chain([160 * 144, 240 * 160, 256 * 224]) {
            let mean = Divisor::new(divisor);
            for value in 0..=255 {
                let sum = value * divisor;
                for sum in [sum.saturating_sub(divisor / 2 + 1), sum, sum + divisor / 2] {
                    assert_eq!(mean.divide_rounded(sum), (sum + divisor / 2) / divisor, "{sum} / {divisor}");
                }
            }
        }
    }

    #[test]
    fn luminance_of_white_fits() {
        assert_eq!([0, 0xFF_FFFF, 0xFF, 0xFF00, 0xFF_0000].map(luminance), [0, 255, 77, 149, 29]);
    }

    #[test]
    fn a_part_outside_of_the_picture_is_refused() {
        let screen = Screen { crop: Some([200, 0, 41, 160]), size: None, grey: true, stack: 1, max: 1 };
        let message = Layout::new(&screen, 240, 160).unwrap_err();
        assert!(message.contains("[200, 0, 41, 160]") && message.contains("240x160"), "{message}");
    }
}
