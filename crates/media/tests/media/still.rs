use fastrand::Rng;
use framewire_media::{Image, ImageError, jpeg, png};

use crate::scene::Scene;

#[test]
fn a_png_keeps_every_pixel() {
    let random = &mut Rng::with_seed(5);
    for _ in 0..60 {
        let scene = Scene::random(random);
        let read = png::decode(&png::encode(scene.image())).unwrap();
        assert_eq!((read.width, read.height), (scene.width, scene.height));
        assert!(read.rgb == scene.pixels);
    }
}

#[test]
fn an_invalid_or_too_large_png_is_refused() {
    let scene = Scene::random(&mut Rng::with_seed(5));
    let file = png::encode(scene.image());
    assert!(png::decode(&file[..file.len() / 2]).is_err());
    assert!(png::decode(b"").is_err());
    assert!(png::decode(b"GIF89a").is_err());

    // A small file may claim a huge size, which must not be allocated.
    let mut huge = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut huge, 100_000, 100_000);
    encoder.set_color(::png::ColorType::Rgba);
    drop(encoder.write_header().unwrap());
    let error = png::decode(&huge).unwrap_err();
    assert!(matches!(error, png::PngError::Size(ImageError::Size(100_000, 100_000))), "{error}");
}

#[test]
fn pngs_with_other_colour_types_and_depths_are_read() {
    use ::png::{BitDepth, ColorType, Encoder};
    let cases: [(ColorType, BitDepth, &[u8], &[u8]); 4] = [
        (ColorType::Grayscale, BitDepth::Eight, &[7, 9], &[7, 7, 7, 9, 9, 9]),
        (ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 0, 9, 255], &[7, 7, 7, 9, 9, 9]),
        (ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 7], &[1, 2, 3, 4, 5, 6]),
        (ColorType::Rgb, BitDepth::Sixteen, &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], &[1, 2, 3, 4, 5, 6]),
    ];
    for (colour, depth, data, expected) in cases {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 2, 1);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        assert_eq!(png::decode(&file).unwrap().rgb, expected, "{colour:?} {depth:?}");
    }
}

#[test]
fn a_jpeg_has_its_start_and_end_markers() {
    let grey = vec![128; 240 * 160 * 3];
    let file = jpeg::encode(Image::new(240, 160, &grey).unwrap());
    assert!(file.starts_with(&[0xFF, 0xD8]) && file.ends_with(&[0xFF, 0xD9]));
}

#[test]
fn an_image_of_a_wrong_size_or_length_is_refused() {
    assert_eq!(Image::new(0, 5, &[]), Err(ImageError::Size(0, 5)));
    assert_eq!(Image::new(u32::MAX, u32::MAX, &[]), Err(ImageError::Size(u32::MAX, u32::MAX)));
    assert_eq!(Image::new(2, 1, &[0; 5]), Err(ImageError::Bytes { width: 2, height: 1, bytes: 5 }));
}
