/// Slots of the table: a power of two, twice as many as there can be colours, so that a search is short.
const SLOTS: usize = 1 << 17;

/// The colours of a message, each with its place.
#[derive(Debug)]
pub(crate) struct Palette {
    /// In the order in which they were first seen.
    colours: Vec<[u8; 3]>,
    /// A hash table with open addressing: places in `colours` plus one, 0 where a slot is free.
    slots: Box<[u16]>,
    /// The slots that are taken, to be freed again.
    taken: Vec<u32>,
}

impl Palette {
    pub fn new() -> Palette {
        Palette { colours: Vec::new(), slots: vec![0; SLOTS].into(), taken: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.colours.clear();
        for slot in self.taken.drain(..) {
            self.slots[slot as usize] = 0;
        }
    }

    pub fn colours(&self) -> &[[u8; 3]] {
        &self.colours
    }

    /// The place of `colour`, which is a new one if it was not seen before. There are no more colours than a picture has
    /// pixels, so places and places plus one fit.
    pub fn place(&mut self, colour: [u8; 3]) -> u16 {
        let [red, green, blue] = colour.map(u32::from);
        let hash = (red << 16 | green << 8 | blue).wrapping_mul(0x9E37_79B1);
        let mut slot = (hash >> 15) as usize;
        loop {
            match self.slots[slot] {
                0 => break,
                found if self.colours[usize::from(found) - 1] == colour => return found - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
        let place = self.colours.len() as u16;
        self.colours.push(colour);
        self.slots[slot] = place + 1;
        self.taken.push(slot as u32);
        place
    }
}
