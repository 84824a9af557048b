//! Random pictures that change like the pictures of games.

use fastrand::Rng;
use framewire_media::Image;

/// A picture, and the colours with which it can be changed.
#[derive(Clone)]
pub struct Scene {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
    colors: Vec<[u8; 3]>,
}

impl Scene {
    pub fn random(random: &mut Rng) -> Scene {
        let sizes = [(240, 160), (160, 144), (256, 224), (1, 1), (8, 8), (9, 17), (65_535, 1), (3, 2000)];
        Scene::sized(random, &sizes)
    }

    /// A picture that is encoded quickly.
    pub fn small(random: &mut Rng) -> Scene {
        Scene::sized(random, &[(1, 1), (8, 8), (9, 17), (32, 24)])
    }

    fn sized(random: &mut Rng, sizes: &[(u32, u32)]) -> Scene {
        let (width, height) = *random.choice(sizes).unwrap();
        let count = *random.choice(&[1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 300, 20_000]).unwrap();
        let colors = (0..count).map(|_| [random.u8(..), random.u8(..), random.u8(..)]).collect();
        let mut scene = Scene { width, height, pixels: vec![0; (width * height * 3) as usize], colors };
        for _ in 0..random.usize(0..40) {
            scene.change(random);
        }
        if random.bool() {
            scene.noise(random, 1);
        }
        scene
    }

    /// Fills a rectangle with a colour, or with noise.
    pub fn change(&mut self, random: &mut Rng) {
        let (left, top) = (random.u32(0..self.width), random.u32(0..self.height));
        let (right, bottom) = (random.u32(left..self.width), random.u32(top..self.height));
        let noise = random.u8(0..4) == 0;
        let mut colour = *random.choice(&self.colors).unwrap();
        for y in top..=bottom {
            for x in left..=right {
                if noise {
                    colour = *random.choice(&self.colors).unwrap();
                }
                self.put(y * self.width + x, colour);
            }
        }
    }

    /// Changes about one in `one_in` pixels.
    pub fn noise(&mut self, random: &mut Rng, one_in: u32) {
        for pixel in 0..self.width * self.height {
            if random.u32(0..one_in) == 0 {
                self.put(pixel, *random.choice(&self.colors).unwrap());
            }
        }
    }

    pub fn image(&self) -> Image<'_> {
        Image::new(self.width, self.height, &self.pixels).unwrap()
    }

    fn put(&mut self, pixel: u32, colour: [u8; 3]) {
        self.pixels[pixel as usize * 3..][..3].copy_from_slice(&colour);
    }
}
