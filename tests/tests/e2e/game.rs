//! The lamps in the demo game's picture, which show the held keys.

use framewire_e2e::demo;
use framewire_media::png;

use super::served::{Served, wait_until};

#[test]
fn a_held_key_lights_its_lamp_on_both_kinds_of_emulator() {
    let lamp = demo::lamp("A");
    for served in [Served::embedded(), Served::stock()] {
        let colour = || pixel(&served.get("/screen.png").body, lamp.x, lamp.y);
        wait_until("the lamp is there", || Ok(colour() == lamp.unlit));
        served.post("/mgba-http/button/add?button=A");
        wait_until("the lamp is lit", || Ok(colour() == lamp.lit));
        served.post("/mgba-http/button/clear?button=A");
        wait_until("the lamp is dark", || Ok(colour() == lamp.unlit));
    }
}

/// The colour of a pixel as `#rrggbb`.
fn pixel(picture: &[u8], x: usize, y: usize) -> String {
    let picture = png::decode(picture).unwrap();
    let start = 3 * (y * picture.width as usize + x);
    picture.rgb[start..start + 3].iter().fold("#".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
