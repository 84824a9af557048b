use crate::image::Image;

/// The side of a tile in pixels.
pub(crate) const SIDE: usize = 8;
/// The number of pixels in a tile.
pub(crate) const AREA: usize = SIDE * SIDE;
/// The largest number of colours in a tile with its own list.
pub(crate) const MAX_OWN: usize = 16;

/// The bits per pixel in a tile with a list of `colors` colours; `None` if no list can have this number of colours.
pub(crate) fn bits(colors: usize) -> Option<usize> {
    match colors {
        1 => Some(0),
        2 => Some(1),
        3..=4 => Some(2),
        5..=MAX_OWN => Some(4),
        _ => None,
    }
}

/// The division of a picture into tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    width: usize,
    height: usize,
    /// The number of tiles in a row.
    across: usize,
}

impl Grid {
    pub fn new(width: u16, height: u16) -> Grid {
        let (width, height) = (usize::from(width), usize::from(height));
        Grid { width, height, across: width.div_ceil(SIDE) }
    }

    /// The number of tiles.
    pub fn tiles(&self) -> usize {
        self.across * self.height.div_ceil(SIDE)
    }

    /// The numbers of the tiles in which two pictures of this size differ.
    pub fn changed<'a>(&'a self, before: &'a [u8], after: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let row = self.width * 3;
        let bands = before.chunks(row * SIDE).zip(after.chunks(row * SIDE)).enumerate();
        bands.filter(|(_, (before, after))| before != after).flat_map(move |(band, (before, after))| {
            (0..self.across)
                .filter(move |column| {
                    let start = column * SIDE * 3;
                    let end = row.min(start + SIDE * 3);
                    let rows = before.chunks_exact(row).zip(after.chunks_exact(row));
                    rows.into_iter().any(|(before, after)| before[start..end] != after[start..end])
                })
                .map(move |column| band * self.across + column)
        })
    }

    /// A tile's pixels. Pixels outside the picture repeat its edge.
    pub fn pixels<'a>(&self, tile: usize, image: &Image<'a>) -> impl Iterator<Item = [u8; 3]> + 'a {
        let Grid { width, height, .. } = *self;
        let (left, top) = self.corner(tile);
        let pixels = image.pixels();
        (0..AREA).map(move |pixel| {
            let x = (left + pixel % SIDE).min(width - 1);
            let y = (top + pixel / SIDE).min(height - 1);
            let at = (y * width + x) * 3;
            [pixels[at], pixels[at + 1], pixels[at + 2]]
        })
    }

    /// Draws a tile; `colour` returns the colour of each pixel.
    pub fn draw(&self, tile: usize, pixels: &mut [u8], colour: impl Fn(usize) -> [u8; 3]) {
        let (left, top) = self.corner(tile);
        for y in 0..SIDE.min(self.height - top) {
            for x in 0..SIDE.min(self.width - left) {
                let at = ((top + y) * self.width + left + x) * 3;
                pixels[at..at + 3].copy_from_slice(&colour(y * SIDE + x));
            }
        }
    }

    /// The position of a tile's first pixel.
    fn corner(&self, tile: usize) -> (usize, usize) {
        (tile % self.across * SIDE, tile / self.across * SIDE)
    }
}
