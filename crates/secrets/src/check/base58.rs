//! The Base58Check checksum of Bitcoin private keys.

use sha2::{Digest as _, Sha256};

/// The last four bytes are the beginning of the SHA-256 of the SHA-256 of those before them.
pub(super) fn is_sound(text: &[u8]) -> bool {
    let Some(bytes) = decode(text) else { return false };
    let Some((body, sum)) = bytes.split_last_chunk::<4>() else { return false };
    Sha256::digest(Sha256::digest(body)).starts_with(sum)
}

/// Decodes a number in base 58, highest byte first. Digit by digit is fast enough for a hundred characters per candidate.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut reversed: Vec<u8> = Vec::new();
    for byte in text {
        let mut carry = u32::try_from(memchr::memchr(*byte, ALPHABET)?).ok()?;
        for digit in &mut reversed {
            carry += u32::from(*digit) * 58;
            *digit = u8::try_from(carry & 0xff).ok()?;
            carry >>= 8;
        }
        while carry > 0 {
            reversed.push(u8::try_from(carry & 0xff).ok()?);
            carry >>= 8;
        }
    }
    reversed.reverse();
    Some(reversed)
}

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::is_sound;

    /// A key of BIP 32's first test vector, and the example of the Bitcoin wiki.
    #[test]
    fn the_standards_own_examples() {
        let extended = [
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiCh",
            "kVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
        ]
        .concat();
        let wif = ["5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ", "1jvhTVqvbTLvyTJ"].concat();
        for sound in [&extended, &wif] {
            assert!(is_sound(sound.as_bytes()), "{sound}");
            assert!(!is_sound(sound.replace('v', "w").as_bytes()), "{sound}");
        }
        for unsound in ["", "1", "0OIl", "xprv"] {
            assert!(!is_sound(unsound.as_bytes()), "{unsound}");
        }
    }
}
