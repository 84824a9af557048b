use crate::header::{Header, Kind};
use crate::image::Image;
use crate::palette::Palette;
use crate::tile::{AREA, Grid, MAX_OWN, bits};

/// When a picture was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The emulator's frame counter.
    pub frame: u32,
    /// The number of frames that have run since the emulator started.
    pub tick: u32,
}

/// Encodes messages. Between messages it keeps its buffers, but no part of a picture, so one encoder can serve any
/// number of streams.
#[derive(Debug, Default)]
pub struct Encoder {
    palette: Palette,
    /// The tiles to send, in order.
    tiles: Vec<usize>,
    /// The palette indexes of their pixels, tile after tile.
    places: Vec<[u16; AREA]>,
}

impl Encoder {
    /// Creates an encoder.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Encodes all of `image`.
    pub fn key(&mut self, image: Image, stamp: Stamp) -> Vec<u8> {
        let grid = Grid::new(image.width(), image.height());
        self.tiles.clear();
        self.tiles.extend(0..grid.tiles());
        self.message(Kind::Key, 0, image, stamp)
    }

    /// Encodes what changes from `before`, which was drawn at tick `base`, to `image`. If their sizes differ, encodes
    /// all of `image`.
    pub fn delta(&mut self, before: Image, base: u32, image: Image, stamp: Stamp) -> Vec<u8> {
        if (before.width(), before.height()) != (image.width(), image.height()) {
            return self.key(image, stamp);
        }
        let grid = Grid::new(image.width(), image.height());
        self.tiles.clear();
        self.tiles.extend(grid.changed(before.pixels(), image.pixels()));
        self.message(Kind::Delta, base, image, stamp)
    }

    fn message(&mut self, kind: Kind, base: u32, image: Image, stamp: Stamp) -> Vec<u8> {
        self.collect(&image);
        let colors = self.palette.colors();
        let header = Header {
            kind,
            width: image.width(),
            height: image.height(),
            colors: colors.len() as u16,
            frame: stamp.frame,
            tick: stamp.tick,
            base,
        };
        let mut message = Vec::with_capacity(Header::LEN + colors.len() * 3 + self.tiles.len() * 32);
        header.write(&mut message);
        message.extend(colors.as_flattened());
        let wide = is_wide(colors.len());
        let mut next = 0;
        let mut places = self.places.iter();
        for run in self.tiles.chunk_by(|tile, after| tile + 1 == *after) {
            // A run is the number of unchanged tiles before it, its own number of tiles, and the tiles. A picture has
            // fewer than 65,536 pixels, and not more tiles than pixels, so these numbers fit.
            message.extend(((run[0] - next) as u16).to_le_bytes());
            message.extend((run.len() as u16).to_le_bytes());
            for places in places.by_ref().take(run.len()) {
                write_tile(&mut message, places, wide);
            }
            next = run[0] + run.len();
        }
        message
    }

    /// Looks up the palette indexes of the tiles to send.
    fn collect(&mut self, image: &Image) {
        let grid = Grid::new(image.width(), image.height());
        self.palette.clear();
        self.places.clear();
        for tile in &self.tiles {
            let mut pixels = grid.pixels(*tile, image);
            let mut last = None;
            self.places.push(std::array::from_fn(|_| {
                let colour = pixels.next().unwrap_or_default();
                match last {
                    Some((same, place)) if same == colour => place,
                    _ => {
                        let place = self.palette.index_of(colour);
                        last = Some((colour, place));
                        place
                    }
                }
            }));
        }
    }
}

/// Whether an index into a palette of this many colours takes two bytes.
pub(crate) fn is_wide(colors: usize) -> bool {
    colors > 256
}

/// Writes a tile: the length of its own list of palette indexes, the list, and for each pixel its position in the list.
/// For a tile with more than [`MAX_OWN`] colours, writes 0 and the palette index of each pixel instead.
fn write_tile(message: &mut Vec<u8>, places: &[u16; AREA], wide: bool) {
    let mut own = [0; MAX_OWN];
    let mut count = 0;
    let mut pixels = [0; AREA];
    for (pixel, place) in pixels.iter_mut().zip(places) {
        let found = own[..count].iter().position(|own| own == place);
        *pixel = found.unwrap_or(count);
        if found.is_none() {
            if count == MAX_OWN {
                message.push(0);
                return places.iter().for_each(|place| write_place(message, *place, wide));
            }
            own[count] = *place;
            count += 1;
        }
    }
    message.push(count as u8);
    own[..count].iter().for_each(|place| write_place(message, *place, wide));
    // Each byte has several positions, the first one in its lowest bits. A list of one colour needs no positions.
    if let Some(bits @ 1..) = bits(count) {
        let bytes = pixels.chunks_exact(8 / bits);
        message.extend(
            bytes.map(|pixels| pixels.iter().rev().fold(0, |byte, pixel| byte << bits | *pixel as u8)),
        );
    }
}

fn write_place(message: &mut Vec<u8>, place: u16, wide: bool) {
    let [low, high] = place.to_le_bytes();
    message.push(low);
    if wide {
        message.push(high);
    }
}
