//! The BIP 173 checksum of `age` and Nostr keys.

pub(super) fn is_sound(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some(separator) = memchr::memrchr(b'1', &lower) else { return false };
    let (name, data) = lower.split_at(separator);
    let Some(data) = data.get(1..).filter(|data| data.len() >= 6) else { return false };
    let high = name.iter().map(|byte| Some(byte >> 5));
    let low = name.iter().map(|byte| Some(byte & 31));
    let values = data.iter().map(|byte| memchr::memchr(*byte, ALPHABET).and_then(|at| u8::try_from(at).ok()));
    let sum =
        high.chain([Some(0)]).chain(low).chain(values).try_fold(1_u32, |sum, value| Some(step(sum, value?)));
    sum == Some(1)
}

fn step(sum: u32, value: u8) -> u32 {
    let top = sum >> 25;
    let shifted = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
    let taps = GENERATOR.iter().enumerate().filter(|(bit, _)| top >> bit & 1 == 1);
    taps.fold(shifted, |sum, (_, tap)| sum ^ tap)
}

const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];

#[cfg(test)]
mod tests {
    use super::is_sound;

    #[test]
    fn the_standards_own_examples() {
        assert!(is_sound(b"A12UEL5L"));
        assert!(is_sound(b"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"));
        assert!(!is_sound(b"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxx"));
        assert!(!is_sound(b"A1G7SGD8"));
        assert!(!is_sound(b"no separator"));
    }
}
