//! The colours that the screens of the consoles show.
//!
//! Both formulas come from the emulator higan. In a game's colour, red, green and blue are numbers from 0 to 31.

use std::str::FromStr;
use std::sync::OnceLock;

use crate::png::Pixels;

/// How the colours of a picture are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorCorrection {
    /// The colours that the screen of the first Game Boy Advance shows, which are darker and less saturated. First,
    /// red, green and blue, as numbers from 0 to 1, are raised to the power 4.0, the gamma of that screen. Then
    ///
    /// - red becomes (255 red + 50 green) / 255,
    /// - green becomes (10 red + 230 green + 30 blue) / 255,
    /// - blue becomes (50 red + 10 green + 220 blue) / 255,
    ///
    /// and each result is raised to the power 1 / 2.2 and multiplied by 255 / 280.
    Gba,
    /// The colours that the screen of the Game Boy Color shows. With red, green and blue from 0 to 31,
    ///
    /// - red becomes 26 red + 4 green + 2 blue,
    /// - green becomes 24 green + 8 blue,
    /// - blue becomes 6 red + 4 green + 22 blue,
    ///
    /// and each result is limited to 960 and divided by 4.
    Gbc,
}

/// The error for a text that is not the name of a correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a colour correction; use gba or gbc")]
pub struct UnknownColors(String);

impl FromStr for ColorCorrection {
    type Err = UnknownColors;

    fn from_str(text: &str) -> Result<ColorCorrection, UnknownColors> {
        match text {
            "gba" => Ok(ColorCorrection::Gba),
            "gbc" => Ok(ColorCorrection::Gbc),
            _ => Err(UnknownColors(text.to_owned())),
        }
    }
}

/// The number of different values that red, green and blue can have in a game's colour.
const LEVELS: usize = 32;

/// What the screen shows for each colour of a game.
type Table = [[u8; 3]; LEVELS * LEVELS * LEVELS];

impl ColorCorrection {
    /// Changes the colours of a picture. Only the upper five bits of each component are used, because the console's
    /// colours have no more.
    pub fn apply(self, pixels: &mut Pixels) {
        let table = self.table();
        for pixel in pixels.rgb.as_chunks_mut::<3>().0 {
            let [red, green, blue] = pixel.map(|part| usize::from(part >> 3));
            *pixel = table[(red * LEVELS + green) * LEVELS + blue];
        }
    }

    fn table(self) -> &'static Table {
        static GBA: OnceLock<Box<Table>> = OnceLock::new();
        static GBC: OnceLock<Box<Table>> = OnceLock::new();
        match self {
            ColorCorrection::Gba => GBA.get_or_init(|| filled(gba)),
            ColorCorrection::Gbc => GBC.get_or_init(|| filled(gbc)),
        }
    }
}

fn filled(shown: impl Fn([u32; 3]) -> [u8; 3]) -> Box<Table> {
    let mut table: Box<Table> = vec![[0; 3]; LEVELS * LEVELS * LEVELS].try_into().expect("of this length");
    for (index, place) in table.iter_mut().enumerate() {
        let parts = [index / (LEVELS * LEVELS), index / LEVELS % LEVELS, index % LEVELS];
        *place = shown(parts.map(|part| part as u32));
    }
    table
}

fn gba(color: [u32; 3]) -> [u8; 3] {
    const SCREEN_GAMMA: f64 = 4.0;
    const GAMMA: f64 = 2.2;
    const MIX: [[f64; 3]; 3] = [[255.0, 50.0, 0.0], [10.0, 230.0, 30.0], [50.0, 10.0, 220.0]];
    let light = color.map(|part| (f64::from(part) / (LEVELS - 1) as f64).powf(SCREEN_GAMMA));
    MIX.map(|shares| {
        let mixed: f64 = shares.iter().zip(light).map(|(share, light)| share * light / 255.0).sum();
        (mixed.powf(1.0 / GAMMA) * (255.0 / 280.0) * 255.0).round().min(255.0) as u8
    })
}

fn gbc(color: [u32; 3]) -> [u8; 3] {
    const MIX: [[u32; 3]; 3] = [[26, 4, 2], [0, 24, 8], [6, 4, 22]];
    MIX.map(|shares| {
        let mixed: u32 = shares.iter().zip(color).map(|(share, part)| share * part).sum();
        (mixed.min(960) / 4) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(colors: ColorCorrection, rgb: [u8; 3]) -> [u8; 3] {
        let mut pixels = Pixels { width: 1, height: 1, rgb: rgb.to_vec() };
        colors.apply(&mut pixels);
        pixels.rgb.try_into().unwrap()
    }

    #[test]
    fn colours_are_those_of_the_formulas() {
        for (colors, rgb, shown) in [
            (ColorCorrection::Gba, [0, 0, 0], [0, 0, 0]),
            // 255² / 280 times the components (305, 270, 280) / 255 to the power 1 / 2.2.
            (ColorCorrection::Gba, [255, 255, 255], [252, 238, 242]),
            (ColorCorrection::Gba, [255, 0, 0], [232, 53, 111]),
            (ColorCorrection::Gbc, [0, 0, 0], [0, 0, 0]),
            (ColorCorrection::Gbc, [255, 255, 255], [240, 240, 240]),
            (ColorCorrection::Gbc, [255, 0, 0], [201, 0, 46]),
            (ColorCorrection::Gbc, [0, 0, 248], [15, 62, 170]),
        ] {
            assert_eq!(corrected(colors, rgb), shown, "{colors:?} {rgb:?}");
        }
        // The lower three bits do not matter, because emulators fill them in differently.
        assert_eq!(
            corrected(ColorCorrection::Gba, [0x78, 0x80, 0xF8]),
            corrected(ColorCorrection::Gba, [0x7B, 0x84, 0xFF])
        );
    }

    #[test]
    fn other_names_are_refused() {
        assert_eq!("gbc".parse(), Ok(ColorCorrection::Gbc));
        let error = "GBA".parse::<ColorCorrection>().unwrap_err().to_string();
        assert_eq!(error, "\"GBA\" is not a colour correction; use gba or gbc");
    }
}
