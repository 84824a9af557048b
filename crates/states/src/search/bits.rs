/// A set of numbers below a fixed limit, with one bit per number.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    words: Vec<u64>,
}

const WIDTH: usize = u64::BITS as usize;

impl Bits {
    /// The empty set, for numbers below `length`.
    pub fn zeros(length: usize) -> Bits {
        Bits { words: vec![0; length.div_ceil(WIDTH)] }
    }

    /// The set of all numbers below `length`.
    pub fn ones(length: usize) -> Bits {
        let mut bits = Bits { words: vec![u64::MAX; length.div_ceil(WIDTH)] };
        if let (Some(last), used @ 1..) = (bits.words.last_mut(), length % WIDTH) {
            *last = (1 << used) - 1;
        }
        bits
    }

    pub fn set(&mut self, number: usize) {
        self.words[number / WIDTH] |= 1 << (number % WIDTH);
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.iter_from(0)
    }

    /// The numbers in order, without the first `skip` of them.
    pub fn iter_from(&self, mut skip: usize) -> impl Iterator<Item = usize> {
        let mut first = 0;
        while let Some(word) = self.words.get(first)
            && word.count_ones() as usize <= skip
        {
            skip -= word.count_ones() as usize;
            first += 1;
        }
        let words = self.words.iter().enumerate().skip(first);
        words.flat_map(|(at, word)| ones(*word).map(move |bit| at * WIDTH + bit)).skip(skip)
    }
}

/// The positions of the bits that are set in a word, lowest first.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let lowest = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_after_any_skip() {
        for length in [0, 1, 63, 64, 65, 200] {
            let bits = Bits::ones(length);
            assert_eq!(bits.count(), length);
            assert!(bits.iter().eq(0..length));
        }
        let mut bits = Bits::zeros(500);
        let chosen: Vec<usize> = (0..500).filter(|number| number % 7 == 3 || number / 64 == 4).collect();
        chosen.iter().for_each(|number| bits.set(*number));
        for skip in 0..=chosen.len() {
            assert!(bits.iter_from(skip).eq(chosen[skip..].iter().copied()), "{skip}");
        }
    }
}
