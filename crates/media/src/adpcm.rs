//! Sound with four bits per sample: IMA ADPCM, as defined in the Interactive Multimedia Association's "Recommended
//! Practices for Enhancing Digital Audio Compatibility" (1992).
//!
//! A message begins with a header of four bytes per channel: the last sample before the message (`i16`, little-endian),
//! the index of the step size (0 to 88), and 0. Because of the header, each message can be decoded alone. After the
//! header, there is one byte for each pair of samples: the left one in the lower four bits, the right one in the upper
//! four.

/// The number of channels: left and right.
const CHANNELS: usize = 2;

/// The step sizes. Each is about 1.1 times the previous one.
const STEPS: [i32; 89] = [
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88,
    97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658,
    724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660,
    4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818,
    18500, 20350, 22385, 24623, 27086, 29794, 32767,
];

/// How much a code changes the index of the step. The lower three bits of the code select the entry.
const CHANGES: [i32; 8] = [-1, -1, -1, -1, 2, 4, 6, 8];

/// Encodes a stream of pairs of samples.
#[derive(Debug, Default, Clone)]
pub struct AdpcmEncoder {
    channels: [Channel; CHANNELS],
}

#[derive(Debug, Default, Clone, Copy)]
struct Channel {
    /// The last sample, as the decoder reconstructs it.
    last: i32,
    /// The index of the step.
    index: i32,
}

impl AdpcmEncoder {
    /// An encoder for a stream that begins with silence.
    pub fn new() -> AdpcmEncoder {
        AdpcmEncoder::default()
    }

    /// Encodes these samples as a message. Left and right samples alternate, beginning with a left one. A left sample
    /// at the end without its right one is left out.
    pub fn encode(&mut self, samples: &[i16]) -> Vec<u8> {
        let mut message = Vec::with_capacity(CHANNELS * 4 + samples.len() / CHANNELS);
        for channel in &self.channels {
            message.extend_from_slice(&(channel.last as i16).to_le_bytes());
            message.extend_from_slice(&[channel.index as u8, 0]);
        }
        let [left, right] = &mut self.channels;
        for pair in samples.chunks_exact(CHANNELS) {
            message.push(left.encode(pair[0]) | right.encode(pair[1]) << 4);
        }
        message
    }
}

impl Channel {
    fn encode(&mut self, sample: i16) -> u8 {
        let mut step = STEPS[self.index as usize];
        let mut rest = i32::from(sample) - self.last;
        let mut code = 0;
        if rest < 0 {
            code = 8;
            rest = -rest;
        }
        for bit in [4, 2, 1] {
            if rest >= step {
                code |= bit;
                rest -= step;
            }
            step >>= 1;
        }
        self.decode(code);
        code
    }

    /// Decodes a code into the next sample, and updates the channel.
    fn decode(&mut self, code: u8) -> i16 {
        let step = STEPS[self.index as usize];
        let mut change = step >> 3;
        for (bit, part) in [(4, step), (2, step >> 1), (1, step >> 2)] {
            if code & bit != 0 {
                change += part;
            }
        }
        let last = if code & 8 != 0 { self.last - change } else { self.last + change };
        self.last = last.clamp(i16::MIN.into(), i16::MAX.into());
        self.index = (self.index + CHANGES[usize::from(code & 7)]).clamp(0, STEPS.len() as i32 - 1);
        self.last as i16
    }
}

/// Decodes a message into samples. Left and right samples alternate, beginning with a left one. `None` if the message
/// is not valid.
pub fn decode(message: &[u8]) -> Option<Vec<i16>> {
    let (head, codes) = message.split_at_checked(CHANNELS * 4)?;
    let mut channels = [Channel::default(); CHANNELS];
    for (channel, head) in channels.iter_mut().zip(head.chunks_exact(4)) {
        let index = i32::from(head[2]);
        if index >= STEPS.len() as i32 {
            return None;
        }
        *channel = Channel { last: i16::from_le_bytes([head[0], head[1]]).into(), index };
    }
    let [mut left, mut right] = channels;
    Some(codes.iter().flat_map(|code| [left.decode(code & 15), right.decode(code >> 4)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tones of 220 and 660 Hz, in stereo.
    fn tones(count: usize) -> Vec<i16> {
        let tone = |at: usize, hertz: f64| {
            ((at as f64 * hertz * std::f64::consts::TAU / 32768.0).sin() * 12_000.0) as i16
        };
        (0..count).flat_map(|at| [tone(at, 220.0), tone(at, 660.0)]).collect()
    }

    #[test]
    fn decoded_sound_is_close_to_the_original() {
        let samples = tones(32_768);
        let mut encoder = AdpcmEncoder::new();
        let mut back = Vec::new();
        let mut bytes = 0;
        for part in samples.chunks(1096) {
            let message = encoder.encode(part);
            bytes += message.len();
            back.extend(decode(&message).expect("a message"));
        }
        assert_eq!(back.len(), samples.len());
        assert!(bytes < 50_000, "{bytes} bytes for a second");
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        let signal = square(&mut samples.iter().map(|sample| f64::from(*sample)));
        let noise =
            square(&mut samples.iter().zip(&back).map(|(one, other)| f64::from(*one) - f64::from(*other)));
        let decibels = 10.0 * (signal / noise).log10();
        assert!(decibels > 30.0, "{decibels:.1} dB");
    }

    #[test]
    fn each_message_can_be_decoded_alone() {
        let samples = tones(2000);
        let mut encoder = AdpcmEncoder::new();
        let first = encoder.encode(&samples[..2000]);
        let second = encoder.encode(&samples[2000..]);
        let whole = AdpcmEncoder::new().encode(&samples);
        let parts = [decode(&first), decode(&second)].map(|part| part.expect("a message")).concat();
        assert_eq!(Some(parts), decode(&whole));
        assert_eq!(decode(&[0; 7]), None);
        assert_eq!(decode(&[0, 0, 89, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn the_loudest_sound_does_not_overflow() {
        let mut encoder = AdpcmEncoder::new();
        let samples: Vec<i16> =
            (0..4000).map(|at| if at / 2 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        let message = encoder.encode(&samples);
        assert_eq!(decode(&message).expect("a message").len(), samples.len());
    }
}
