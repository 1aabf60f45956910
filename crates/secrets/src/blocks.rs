//! Finds positions by a test of each byte and the next one.
//!
//! One pass, block by block without early exit, so the compiler can vectorise the test. Most blocks are skipped without
//! examining single bytes.

/// Calls `each` with every position that passes, in order. `test` gets a block and the same block shifted by one byte,
/// and returns one for each byte that passes and zero for the others. A space follows the last byte.
#[inline]
pub(crate) fn each_position(
    hay: &[u8],
    test: impl Fn(&ByteBlock, &ByteBlock) -> ByteBlock,
    mut each: impl FnMut(usize),
) {
    let mut tell = |from: usize, mut passing: u64| {
        while passing != 0 {
            each(from + passing.trailing_zeros() as usize);
            passing &= passing - 1;
        }
    };
    // The last block has no following byte.
    let blocks = hay.len().saturating_sub(1) / BLOCK;
    let next = hay.get(1..).unwrap_or_default().as_chunks().0;
    for (index, (block, next)) in hay.as_chunks().0.iter().zip(next).enumerate() {
        let passing = test(block, next);
        if is_any(&passing) {
            tell(index * BLOCK, bits(&passing));
        }
    }
    let rest = hay.get(blocks * BLOCK..).unwrap_or_default();
    let (block, next) = (padded(rest), padded(rest.get(1..).unwrap_or_default()));
    tell(blocks * BLOCK, bits(&test(&block, &next)));
}

/// Returns one or zero without branches: an early exit would prevent vectorisation.
pub(crate) fn is_one_of<const N: usize>(byte: u8, of: [u8; N]) -> u8 {
    of.iter().fold(0, |any, one| any | u8::from(byte == *one))
}

#[inline]
fn is_any(bytes: &ByteBlock) -> bool {
    bytes.as_chunks::<8>().0.iter().fold(0, |any, eight| any | u64::from_le_bytes(*eight)) != 0
}

/// A bit for each of the bytes, which are zero or one.
fn bits(bytes: &ByteBlock) -> u64 {
    let eights = bytes.as_chunks::<8>().0;
    eights.iter().rev().fold(0, |bits, eight| {
        // The multiplication moves every byte to its own bit of the highest byte.
        bits << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

fn padded(rest: &[u8]) -> ByteBlock {
    let mut block = [b' '; BLOCK];
    block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    block
}

pub(crate) type ByteBlock = [u8; BLOCK];
pub(crate) const BLOCK: usize = 64;
