//! Images of distorted characters.
//!
//! Drawn from the font of the crate `font8x8`, which is in the public domain: each character in a size,
//! slant and height of its own, all of it waved, crossed by lines and specked. Programs read such images
//! too, by 2026 often better than people: they cost a bot a program and some computing, no more, and
//! shut out whoever does not see them. The kind is for operators who must have it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use font8x8::legacy::BASIC_LEGACY;

/// Letters and digits of which no two look alike.
const ALPHABET: &[u8] = b"ACDEFHJKLMNPRTUWXY347";
/// Pixels across one character, and of the whole image from top to bottom.
const CELL: i32 = 40;
const HEIGHT: i32 = 64;
/// A wave, in quarters of a pixel.
const WAVE: [i32; 12] = [0, 5, 9, 10, 9, 5, 0, -5, -9, -10, -9, -5];
/// Lines across the image.
const LINES: u64 = 3;
/// Specks for each thousand pixels.
const SPECKS: u64 = 40;

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
#[error("an image could not be written: {0}")]
pub struct Unwritten(#[from] png::EncodingError);

/// Text of this many characters, by chance.
pub(super) fn text(characters: u8, chance: [u8; 16]) -> String {
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    chance.iter().take(usize::from(characters)).map(letter).collect()
}

/// Random numbers from a seed (SplitMix64). What an image hides is its text, not its noise.
/// Source: <https://prng.di.unimi.it/splitmix64.c>
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both included.
    fn between(&mut self, least: i32, most: i32) -> i32 {
        let span = u64::from(most.abs_diff(least)) + 1;
        least + i32::try_from(self.next() % span).unwrap_or(0)
    }
}

/// One character on the image. Lengths are in sixteenths of a pixel where they say so.
struct Glyph {
    bits: [u8; 8],
    left: i32,
    top: i32,
    /// Width and height of one of its 8 × 8 dots, in sixteenths of a pixel.
    dot: (i32, i32),
    /// Sixteenths of a pixel to the right for each pixel down.
    slant: i32,
}

impl Glyph {
    fn new(letter: u8, index: i32, noise: &mut Noise) -> Self {
        Self {
            bits: BASIC_LEGACY.get(usize::from(letter)).copied().unwrap_or_default(),
            left: index * CELL + noise.between(4, 12),
            top: noise.between(10, 22),
            dot: (noise.between(56, 72), noise.between(64, 80)),
            slant: noise.between(-5, 5),
        }
    }

    fn covers(&self, x: i32, y: i32) -> bool {
        let down = y - self.top;
        let across = (x - self.left) * 16 - down * self.slant;
        let (column, row) = (across.div_euclid(self.dot.0), (down * 16).div_euclid(self.dot.1));
        let bits = usize::try_from(row).ok().and_then(|row| self.bits.get(row));
        let is_column = (0..8).contains(&column);
        is_column && bits.is_some_and(|bits| bits >> column & 1 == 1)
    }
}

fn wave(at: i32) -> i32 {
    let index = usize::try_from(at.rem_euclid(12)).unwrap_or(0);
    WAVE[index] / 4
}

/// Draws text as a `data:` URL of a PNG in black and white; the same seed draws the same image.
pub(super) fn draw(text: &str, seed: u64) -> Result<String, Unwritten> {
    let mut noise = Noise(seed);
    let glyphs: Vec<Glyph> = (0..)
        .zip(text.bytes())
        .map(|(index, letter)| Glyph::new(letter, index, &mut noise))
        .collect();
    let width = CELL * i32::try_from(glyphs.len()).unwrap_or(0) + 8;
    let phases = (noise.between(0, 11), noise.between(0, 11));
    let lines: Vec<(i32, i32)> =
        (0..LINES).map(|_| (noise.between(4, HEIGHT - 4), noise.between(4, HEIGHT - 4))).collect();
    let mut is_ink = |x: i32, y: i32| {
        let (waved_x, waved_y) = (x + wave(y / 3 + phases.0), y + wave(x / 4 + phases.1));
        let is_line = |(from, to): &(i32, i32)| {
            let middle = from + (to - from) * x / width + wave(x / 5 + from);
            (middle..middle + 2).contains(&y)
        };
        let is_speck = noise.next() % 1000 < SPECKS;
        let is_drawn = glyphs.iter().any(|glyph| glyph.covers(waved_x, waved_y));
        (is_drawn || lines.iter().any(is_line)) != is_speck
    };
    // Eight pixels a byte, the leftmost in its highest bit; a width is a multiple of eight.
    let mut pixels = Vec::new();
    for y in 0..HEIGHT {
        for left in (0..width).step_by(8) {
            let byte = (left..left + 8).fold(0_u8, |byte, x| byte << 1 | u8::from(!is_ink(x, y)));
            pixels.push(byte);
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width.unsigned_abs(), HEIGHT.unsigned_abs());
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(file)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The pixels of an image: true where it is black.
    fn pixels(url: &str) -> (u32, Vec<bool>) {
        let file = STANDARD.decode(url.strip_prefix("data:image/png;base64,").unwrap()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let is_black = |byte: u8| (0..8).rev().map(move |bit| byte >> bit & 1 == 0);
        (info.width, bytes.into_iter().flat_map(is_black).collect())
    }

    #[test]
    fn every_character_can_be_told_from_the_others() {
        let drawn = |letter: u8| BASIC_LEGACY[usize::from(letter)];
        let shapes: BTreeSet<[u8; 8]> = ALPHABET.iter().map(|letter| drawn(*letter)).collect();
        assert_eq!(shapes.len(), ALPHABET.len());
        for alike in [b'0', b'O', b'1', b'I', b'2', b'Z', b'5', b'S', b'6', b'G', b'8', b'B', b'V']
        {
            assert!(!ALPHABET.contains(&alike));
        }
    }

    #[test]
    fn an_image_shows_its_text_and_no_two_are_alike() {
        let (width, black) = pixels(&draw("ACD", 1).unwrap());
        assert_eq!((width, black.len()), (128, 128 * 64));
        let ink = |black: &[bool]| black.iter().filter(|is_black| **is_black).count();
        // Three characters of some 35 dots of 18 pixels, and a twentieth of the rest, and lines.
        assert!((1000..4000).contains(&ink(&black)), "{}", ink(&black));
        let differing = |one: &str, seed| {
            let (_, other) = pixels(&draw(one, seed).unwrap());
            black.iter().zip(&other).filter(|(one, other)| one != other).count()
        };
        assert_eq!(differing("ACD", 1), 0);
        assert!(differing("ACD", 2) > 500);
        // With the same noise, only the characters that differ do.
        assert!((100..1500).contains(&differing("ACE", 1)), "{}", differing("ACE", 1));
    }

    #[test]
    fn text_is_of_the_length_asked_for_and_of_the_alphabet() {
        let drawn: BTreeSet<String> = (0..=255)
            .map(|byte| text(5, [byte; 16].map(|byte: u8| byte.wrapping_mul(7))))
            .collect();
        assert_eq!(drawn.len(), ALPHABET.len());
        for text in [text(5, [9; 16]), text(7, [200; 16])] {
            assert!(text.bytes().all(|byte| ALPHABET.contains(&byte)), "{text}");
        }
        assert_eq!((text(5, [1; 16]).len(), text(7, [1; 16]).len()), (5, 7));
    }
}
