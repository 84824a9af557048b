//! Compares two cores with the same game. In the first, libmgba does everything itself; the second uses the faster code
//! of this crate.

use framewire_libmgba::Core;

/// Pseudo-random numbers, which are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// Chooses one of these values.
    pub fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }
}

/// How many random programs a test runs; `FRAMEWIRE_SEEDS` sets another number.
pub fn seeds(usual: u64) -> u64 {
    std::env::var("FRAMEWIRE_SEEDS").map_or(usual, |seeds| seeds.parse().unwrap())
}

/// Two cores with the same game. In the first, libmgba runs all instructions and mixes all sound.
pub fn pair(rom: &[u8]) -> [Core; 2] {
    let mut pair = [(); 2].map(|()| Core::from_bytes(rom).unwrap());
    pair[0].step_all_cycles(true);
    pair[0].mix_all_sound(true);
    pair
}

/// Compares the states and the pictures of two cores.
pub fn assert_equal(cores: &mut [Core; 2], what: &str) {
    let [libmgba, ours] = cores.each_mut().map(|core| core.save_state(0).unwrap());
    if libmgba != ours {
        let at: Vec<_> = (0..libmgba.len()).filter(|&at| libmgba[at] != ours[at]).take(16).collect();
        panic!("{what}: the states differ at {at:x?}");
    }
    let [libmgba, ours] = cores.each_ref().map(|core| core.frame().to_rgb());
    assert!(libmgba == ours, "{what}: the pictures differ");
}
