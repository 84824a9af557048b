use crate::encode::is_wide;
use crate::header::{Header, Kind};
use crate::image::{Image, ImageError};
use crate::tile::{AREA, Grid, bits};

/// Why a message cannot be decoded: it is malformed, or it does not fit the current picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is too short.
    #[error("the message ends too early")]
    Short,
    /// The kind is unknown.
    #[error("the message is of kind {0}; 1 (key) and 2 (delta) are known")]
    Kind(u8),
    /// The version is unknown.
    #[error("the message is of version {0}; 1 is known")]
    Version(u8),
    /// The size of the picture is out of range.
    #[error(transparent)]
    Size(#[from] ImageError),
    /// A delta without its base: it came first, or it belongs to another picture.
    #[error("the delta belongs to a picture that the decoder does not have")]
    Base,
    /// A tile is outside the picture.
    #[error("a tile is outside the picture")]
    Tile,
    /// A key picture lacks some tiles.
    #[error("the key picture lacks some of its tiles")]
    Gaps,
    /// A tile's own list has an invalid number of colours.
    #[error("a tile's list has {0} colours; at most 16 are accepted")]
    Colors(u8),
    /// A pixel's colour is not in the palette or in its tile's list.
    #[error("a colour is not in its list")]
    Place,
}

/// Decodes a stream: holds the current picture and updates it with each message.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The header of the last message; `None` before the first.
    header: Option<Header>,
    pixels: Vec<u8>,
}

impl Decoder {
    /// A decoder without a picture.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Applies a message, and returns its header.
    ///
    /// # Errors
    /// If the message is malformed or does not fit the current picture. In this case, the picture is unchanged.
    pub fn decode(&mut self, message: &[u8]) -> Result<Header, DecodeError> {
        let header = Header::read(message)?;
        if header.kind == Kind::Delta && !self.header.is_some_and(|last| follows(&header, &last)) {
            return Err(DecodeError::Base);
        }
        let body = Body::new(&header, &message[Header::LEN..])?;
        let grid = Grid::new(header.width, header.height);
        let mut tiles = 0;
        body.walk(grid.tiles(), |_, _| tiles += 1)?;
        if header.kind == Kind::Key {
            if tiles < grid.tiles() {
                return Err(DecodeError::Gaps);
            }
            self.pixels.resize(usize::from(header.width) * usize::from(header.height) * 3, 0);
        }
        body.walk(grid.tiles(), |tile, places| {
            grid.draw(tile, &mut self.pixels, |pixel| body.colors[usize::from(places[pixel])]);
        })?;
        self.header = Some(header);
        Ok(header)
    }

    /// The picture of the last message, if there was one.
    pub fn image(&self) -> Option<Image<'_>> {
        let header = self.header?;
        Image::new(header.width.into(), header.height.into(), &self.pixels).ok()
    }
}

/// Whether a delta fits the picture of the last message.
fn follows(delta: &Header, last: &Header) -> bool {
    (delta.base, delta.width, delta.height) == (last.tick, last.width, last.height)
}

/// A message after its header.
struct Body<'a> {
    colors: &'a [[u8; 3]],
    /// Runs of tiles: how many tiles to skip, how many tiles follow, and these tiles; see `docs/video.md`.
    runs: &'a [u8],
}

impl<'a> Body<'a> {
    fn new(header: &Header, bytes: &'a [u8]) -> Result<Body<'a>, DecodeError> {
        let len = usize::from(header.colors) * 3;
        let (colors, runs) = bytes.split_at_checked(len).ok_or(DecodeError::Short)?;
        Ok(Body { colors: colors.as_chunks().0, runs })
    }

    /// Calls `found` with each tile and the palette indexes of its pixels, which are all valid.
    fn walk(&self, tiles: usize, mut found: impl FnMut(usize, &[u16; AREA])) -> Result<(), DecodeError> {
        let mut bytes = Bytes { rest: self.runs, colors: self.colors.len() };
        let mut tile = 0;
        while !bytes.rest.is_empty() {
            tile += usize::from(bytes.short()?);
            for _ in 0..bytes.short()? {
                if tile >= tiles {
                    return Err(DecodeError::Tile);
                }
                found(tile, &bytes.tile()?);
                tile += 1;
            }
        }
        Ok(())
    }
}

/// The unread rest of a message.
struct Bytes<'a> {
    rest: &'a [u8],
    /// The size of the palette.
    colors: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16, DecodeError> {
        Ok(self.take(2)?.iter().rev().fold(0, |value, byte| value << 8 | u16::from(*byte)))
    }

    /// Reads a palette index.
    fn place(&mut self) -> Result<u16, DecodeError> {
        let place = if is_wide(self.colors) { self.short()? } else { self.take(1)?[0].into() };
        if usize::from(place) < self.colors { Ok(place) } else { Err(DecodeError::Place) }
    }

    /// Reads a tile: the number of colours in its own list, the palette indexes in this list, and for each pixel a
    /// position in the list, with as few bits as possible. If the number is 0, there is no list, but a palette index
    /// for each pixel.
    fn tile(&mut self) -> Result<[u16; AREA], DecodeError> {
        let count = self.take(1)?[0];
        let mut places = [0; AREA];
        if count == 0 {
            for place in &mut places {
                *place = self.place()?;
            }
            return Ok(places);
        }
        let bits = bits(count.into()).ok_or(DecodeError::Colors(count))?;
        let mut own = [0; 16];
        let own = &mut own[..usize::from(count)];
        for place in own.iter_mut() {
            *place = self.place()?;
        }
        let packed = self.take(bits * 8)?;
        for (pixel, place) in places.iter_mut().enumerate() {
            let at = pixel * bits;
            let byte = packed.get(at / 8).copied().unwrap_or(0); // `packed` is empty if all pixels have one colour
            let which = usize::from(byte >> (at % 8)) & ((1 << bits) - 1);
            *place = *own.get(which).ok_or(DecodeError::Place)?;
        }
        Ok(places)
    }
}
