use crate::encode::is_wide;
use crate::header::{Header, Kind};
use crate::image::{Image, ImageError};
use crate::tile::{AREA, Grid, bits};

/// A message that is none, or does not belong here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends too early.
    #[error("the message ends too early")]
    Short,
    /// It is of no kind.
    #[error("a message of kind {0}; 1 (key) and 2 (delta) are known")]
    Kind(u8),
    /// It is of another format.
    #[error("a message of version {0}; 1 is known")]
    Version(u8),
    /// Its picture has a size that none has.
    #[error(transparent)]
    Size(#[from] ImageError),
    /// A delta came first, or one of another picture than the one here.
    #[error("a delta of a picture that is not here")]
    Base,
    /// Its tiles go beyond the last one.
    #[error("a tile that is not in the picture")]
    Tile,
    /// A key picture lacks tiles.
    #[error("a key picture without some of its tiles")]
    Gaps,
    /// A tile has an impossible number of colours.
    #[error("a tile of {0} colours; 0 to 16 are known")]
    Colours(u8),
    /// A pixel has a colour that is not in the list.
    #[error("a colour that is not in the list")]
    Place,
}

/// The viewer's end of a stream.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Of the last message; `None` before the first.
    header: Option<Header>,
    pixels: Vec<u8>,
}

impl Decoder {
    /// A decoder that has seen nothing yet.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Takes a message.
    ///
    /// # Errors
    /// If it is wrong in any way; the picture is as before then.
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
            grid.draw(tile, &mut self.pixels, |pixel| body.colours[usize::from(places[pixel])]);
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

/// Whether a delta belongs to the picture of the message before.
fn follows(delta: &Header, last: &Header) -> bool {
    (delta.base, delta.width, delta.height) == (last.tick, last.width, last.height)
}

/// A message behind its header.
struct Body<'a> {
    colours: &'a [[u8; 3]],
    runs: &'a [u8],
}

impl<'a> Body<'a> {
    fn new(header: &Header, bytes: &'a [u8]) -> Result<Body<'a>, DecodeError> {
        let len = usize::from(header.colours) * 3;
        let (colours, runs) = bytes.split_at_checked(len).ok_or(DecodeError::Short)?;
        Ok(Body { colours: colours.as_chunks().0, runs })
    }

    /// Goes through the tiles, each with the places of its pixels in the palette, all of them valid.
    fn walk(&self, tiles: usize, mut found: impl FnMut(usize, &[u16; AREA])) -> Result<(), DecodeError> {
        let mut bytes = Bytes { rest: self.runs, colours: self.colours.len() };
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

/// What is still to be read.
struct Bytes<'a> {
    rest: &'a [u8],
    /// Size of the palette.
    colours: usize,
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

    /// A place in the palette.
    fn place(&mut self) -> Result<u16, DecodeError> {
        let place = if is_wide(self.colours) { self.short()? } else { self.take(1)?[0].into() };
        if usize::from(place) < self.colours { Ok(place) } else { Err(DecodeError::Place) }
    }

    fn tile(&mut self) -> Result<[u16; AREA], DecodeError> {
        let count = self.take(1)?[0];
        let mut places = [0; AREA];
        if count == 0 {
            for place in &mut places {
                *place = self.place()?;
            }
            return Ok(places);
        }
        let bits = bits(count.into()).ok_or(DecodeError::Colours(count))?;
        let mut own = [0; 16];
        let own = &mut own[..usize::from(count)];
        for place in own.iter_mut() {
            *place = self.place()?;
        }
        let packed = self.take(bits * 8)?;
        for (pixel, place) in places.iter_mut().enumerate() {
            let at = pixel * bits;
            let byte = packed.get(at / 8).copied().unwrap_or(0); // none if all are of one colour
            let which = usize::from(byte >> (at % 8)) & ((1 << bits) - 1);
            *place = *own.get(which).ok_or(DecodeError::Place)?;
        }
        Ok(places)
    }
}
