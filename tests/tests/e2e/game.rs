//! What people see: the picture and its lamps.

use framewire_e2e::until;

use super::served::{PATIENCE, Served};

/// Where the lamp of A is, from rom/memory-map.toml.
const LAMP_OF_A: (usize, usize) = (208, 136);

#[test]
fn a_held_key_lights_its_lamp_on_both_kinds() {
    for served in [Served::embedded(), Served::stock()] {
        let unlit = pixel(&served.get("/screen.png").body, LAMP_OF_A);
        served.post("/mgba-http/button/add?button=A");
        until("the lamp is lit", PATIENCE, || Ok(pixel(&served.get("/screen.png").body, LAMP_OF_A) != unlit))
            .unwrap();
        served.post("/mgba-http/button/clear?button=A");
        until(
            "the lamp is dark",
            PATIENCE,
            || Ok(pixel(&served.get("/screen.png").body, LAMP_OF_A) == unlit),
        )
        .unwrap();
    }
}

fn pixel(picture: &[u8], (x, y): (usize, usize)) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(picture)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let width = info.color_type.samples();
    let start = y * info.line_size + x * width;
    pixels[start..start + width].to_vec()
}
