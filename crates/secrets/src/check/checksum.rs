//! The checksums at the end of GitHub, npm and Grafana tokens.

/// `prefix_` + body + six characters: the CRC-32 of the body in base 62, padded with leading zeroes.
pub(super) fn is_sound(token: &[u8]) -> bool {
    let Some(start) = memchr::memchr(b'_', token) else { return false };
    let Some((body, sum)) = token.get(start + 1..).and_then(|rest| rest.split_last_chunk::<6>()) else {
        return false;
    };
    let stated = sum.iter().try_fold(0_u64, |sum, byte| Some(sum * 62 + base62(*byte)?));
    stated == Some(u64::from(crc32(body)))
}

/// `prefix_` + body + `_` + eight hex digits: the CRC-32 of the part before the last `_`, lowest byte first.
pub(super) fn is_sound_in_hex(token: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b'_', token) else { return false };
    let (summed, sum) = token.split_at(at);
    let sum = sum.get(1..).and_then(|sum| std::str::from_utf8(sum).ok()).filter(|sum| sum.len() == 8);
    let stated = sum.and_then(|sum| u32::from_str_radix(sum, 16).ok());
    stated.map(u32::swap_bytes) == Some(crc32(summed))
}

fn base62(byte: u8) -> Option<u64> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'Z' => byte - b'A' + 10,
        b'a'..=b'z' => byte - b'a' + 36,
        _ => return None,
    };
    Some(u64::from(digit))
}

/// Bit by bit is fast enough for thirty bytes per candidate.
fn crc32(bytes: &[u8]) -> u32 {
    let fold = |mut sum: u32, byte: &u8| {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let low = sum & 1;
            sum = sum >> 1 ^ (low.wrapping_neg() & REVERSED_POLYNOMIAL);
        }
        sum
    };
    !bytes.iter().fold(u32::MAX, fold)
}

const REVERSED_POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
