/// The size of the hash table: a power of two, more than twice the largest number of colours, so that searches are
/// short.
const SLOTS: usize = 1 << 17;

/// The colours of a message (one picture of the stream that `docs/video.md` describes), each with its index.
#[derive(Debug)]
pub(crate) struct Palette {
    /// The colours, in the order of their first use.
    colors: Vec<[u8; 3]>,
    /// A hash table with open addressing: an index into `colors` plus one, or 0 for a free slot.
    slots: Box<[u16]>,
    /// The positions of the used slots, so that `clear` can empty them quickly.
    taken: Vec<u32>,
}

impl Default for Palette {
    fn default() -> Palette {
        Palette { colors: Vec::new(), slots: vec![0; SLOTS].into(), taken: Vec::new() }
    }
}

impl Palette {
    pub fn clear(&mut self) {
        self.colors.clear();
        for slot in self.taken.drain(..) {
            self.slots[slot as usize] = 0;
        }
    }

    pub fn colors(&self) -> &[[u8; 3]] {
        &self.colors
    }

    /// The index of `colour`, which is added if it is new. A picture has at most 65,535 pixels, so an index plus one
    /// fits into the 16 bits of a slot.
    pub fn index_of(&mut self, colour: [u8; 3]) -> u16 {
        let [red, green, blue] = colour.map(u32::from);
        let hash = (red << 16 | green << 8 | blue).wrapping_mul(0x9E37_79B1);
        let mut slot = (hash >> 15) as usize;
        loop {
            match self.slots[slot] {
                0 => break,
                found if self.colors[usize::from(found) - 1] == colour => return found - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
        let place = self.colors.len() as u16;
        self.colors.push(colour);
        self.slots[slot] = place + 1;
        self.taken.push(slot as u32);
        place
    }
}
