//! Searches thousands of keywords in one pass over the bytes, with one lookup per byte.
//!
//! Every four bytes are hashed and looked up in a filter that fits the second-level cache. The lookups are independent,
//! so the processor overlaps them; the steps of an automaton would wait for each other. Hits are looked up in a second
//! filter with the next byte. The filter contains the keywords as they are and in base64 and hex: encoded keywords are
//! found without decoding.

/// The meaning of a needle in the filter.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum NeedleMeaning {
    /// A keyword of the rule with this index.
    Rule(usize),
    /// Part of an encoded keyword; `keyword` is the index of the decoded one.
    Coded { coding: LiteralCoding, keyword: usize },
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum LiteralCoding {
    /// The keyword begins this many bytes into a group of three.
    Base64 {
        offset: usize,
    },
    Hex,
}

pub(crate) struct Needle {
    pub text: Box<[u8]>,
    pub folds_case: bool,
    pub meaning: NeedleMeaning,
}

pub(crate) struct Literals {
    /// Beginnings of needles, by their first four bytes.
    filter: Box<[u64; FILTER_WORDS]>,
    /// The same with the fifth byte, for the few positions that pass the first filter.
    second: Box<[u64; SECOND_WORDS]>,
    /// The first slot of each bucket; one more entry than buckets.
    buckets: Vec<u32>,
    slots: Vec<LiteralSlot>,
    needles: Vec<Needle>,
}

/// The beginning of a needle. It rules out most needles without a full comparison.
#[derive(Clone, Copy)]
struct LiteralSlot {
    /// Its first four bytes, in one of their possible cases.
    quad: u32,
    /// Its next four bytes, as far as `mask` has bits.
    next: u32,
    mask: u32,
    needle: u32,
}

impl Literals {
    #[expect(
        clippy::large_stack_arrays,
        reason = "moved into its box at once; a slice would be checked at every byte"
    )]
    pub(crate) fn new(needles: Vec<Needle>) -> Self {
        let mut slots: Vec<LiteralSlot> = Vec::new();
        for (needle, at) in needles.iter().zip(0_u32..) {
            let (next, mask) = needle.next();
            slots.extend(needle.quads().into_iter().map(|quad| LiteralSlot { quad, next, mask, needle: at }));
        }
        slots.sort_by_key(|slot| (bucket(hash(slot.quad)), slot.quad, slot.needle));
        let mut filter = Box::new([0_u64; FILTER_WORDS]);
        let mut second = Box::new([0_u64; SECOND_WORDS]);
        let mut buckets = vec![0_u32; BUCKETS + 1];
        for slot in &slots {
            set(&mut filter[..], filter_place(slot.quad));
            for fifth in needles.get(slot.needle as usize).map(Needle::fifth).unwrap_or_default() {
                set(&mut second[..], second_place(slot.quad, fifth));
            }
            if let Some(count) = buckets.get_mut(bucket(hash(slot.quad)) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut buckets {
            sum += *count;
            *count = sum;
        }
        Self { filter, second, buckets, slots, needles }
    }

    /// Reports every position of a needle, in order.
    pub(crate) fn each(&self, hay: &[u8], mut found: impl FnMut(usize, &Needle)) {
        for (at, four) in hay.array_windows::<4>().enumerate() {
            let quad = u32::from_le_bytes(*four);
            if self.may_begin(quad) && self.may_go_on(quad, hay.get(at + 4)) {
                self.confirm(hay, at, &mut found);
            }
        }
    }

    /// Whether a needle may begin with these bytes.
    #[inline]
    fn may_begin(&self, quad: u32) -> bool {
        let (word, bit) = filter_place(quad);
        self.filter.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    #[inline]
    fn may_go_on(&self, quad: u32, fifth: Option<&u8>) -> bool {
        let has = |fifth| {
            let (word, bit) = second_place(quad, fifth);
            self.second.get(word).is_some_and(|word| word >> bit & 1 == 1)
        };
        has(ANY_BYTE) || fifth.is_some_and(|fifth| has(u32::from(*fifth)))
    }

    #[inline(never)]
    fn confirm(&self, hay: &[u8], at: usize, found: &mut impl FnMut(usize, &Needle)) {
        let rest = hay.get(at..).unwrap_or_default();
        let Some((first, behind)) = rest.split_first_chunk::<4>() else { return };
        let quad = u32::from_le_bytes(*first);
        let next = behind.first_chunk::<4>().map_or_else(|| four(behind), |next| u32::from_le_bytes(*next));
        let bucket = bucket(hash(quad));
        let (Some(&from), Some(&until)) = (self.buckets.get(bucket), self.buckets.get(bucket + 1)) else {
            return;
        };
        let slots = self.slots.get(from as usize..until as usize).unwrap_or_default();
        for slot in slots.iter().filter(|slot| slot.quad == quad && (slot.next ^ next) & slot.mask == 0) {
            let Some(needle) = self.needles.get(slot.needle as usize) else { continue };
            let Some(here) = rest.get(..needle.text.len()) else { continue };
            // The slot has compared the first eight bytes.
            let is_here = needle.text.len() <= 8
                || if needle.folds_case {
                    here.eq_ignore_ascii_case(&needle.text)
                } else {
                    here == &*needle.text
                };
            if is_here {
                found(at, needle);
            }
        }
    }
}

impl Needle {
    /// The first four bytes in every possible case; a needle of three is extended by every token character.
    fn quads(&self) -> Vec<u32> {
        let fourth: Vec<u8> = match self.text.get(3) {
            Some(byte) => vec![*byte],
            None => (0..=u8::MAX).filter(|byte| is_token(*byte)).collect(),
        };
        let Some(&[a, b, c]) = self.text.first_chunk::<3>() else { return Vec::new() };
        let mut quads: Vec<u32> = Vec::new();
        for d in fourth {
            let cases = [a, b, c, d].map(|byte| self.cases(byte));
            let [first, second, third, fourth] = &cases;
            for (a, b, c, d) in product(first, second, third, fourth) {
                quads.push(u32::from_le_bytes([a, b, c, d]));
            }
        }
        quads.sort_unstable();
        quads.dedup();
        quads
    }

    /// The next four bytes, and the bits of them that must be equal: the case of a letter may not matter.
    fn next(&self) -> (u32, u32) {
        let bytes = self.text.get(4..).unwrap_or_default();
        let bits = |byte: &u8| if self.folds_case && byte.is_ascii_alphabetic() { 0xdf } else { 0xff };
        let mask: Vec<u8> = bytes.iter().map(bits).collect();
        (four(bytes), four(&mask))
    }

    /// The fifth byte, in every possible case.
    fn fifth(&self) -> Vec<u32> {
        match self.text.get(4) {
            Some(byte) => self.cases(*byte).into_iter().map(u32::from).collect(),
            None => vec![ANY_BYTE],
        }
    }

    fn cases(&self, byte: u8) -> Vec<u8> {
        if self.folds_case { vec![byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { vec![byte] }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'.' | b'_' | b'~')
}

fn product<'a>(
    first: &'a [u8],
    second: &'a [u8],
    third: &'a [u8],
    fourth: &'a [u8],
) -> impl Iterator<Item = (u8, u8, u8, u8)> + 'a {
    first.iter().flat_map(move |a| {
        second
            .iter()
            .flat_map(move |b| third.iter().flat_map(move |c| fourth.iter().map(move |d| (*a, *b, *c, *d))))
    })
}

/// The first four bytes, or as many as there are.
fn four(bytes: &[u8]) -> u32 {
    let mut four = [0; 4];
    four.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u32::from_le_bytes(four)
}

fn hash(quad: u32) -> u32 {
    quad.wrapping_mul(0x9e37_79b1)
}

fn filter_place(quad: u32) -> (usize, u32) {
    place(hash(quad), FILTER_BITS)
}

fn second_place(quad: u32, fifth: u32) -> (usize, u32) {
    place(hash(quad.rotate_left(16) ^ fifth.wrapping_mul(0x85eb_ca6b)), SECOND_BITS)
}

/// The word and the bit in it, in a filter of 2^`bits` words.
fn place(hash: u32, bits: u32) -> (usize, u32) {
    ((hash >> (32 - bits)) as usize, hash >> (26 - bits) & 63)
}

fn set(filter: &mut [u64], (word, bit): (usize, u32)) {
    if let Some(word) = filter.get_mut(word) {
        *word |= 1 << bit;
    }
}

fn bucket(hash: u32) -> usize {
    (hash >> (32 - BUCKET_BITS)) as usize
}

/// 256 KiB: few bits are set, so few positions are checked twice. The part that ordinary text touches fits the
/// first-level cache.
const FILTER_BITS: u32 = 15;
const FILTER_WORDS: usize = 1 << FILTER_BITS;
/// 64 KiB.
const SECOND_BITS: u32 = 13;
const SECOND_WORDS: usize = 1 << SECOND_BITS;
/// Replaces the fifth byte of a needle that has none.
const ANY_BYTE: u32 = 256;
const BUCKET_BITS: u32 = 16;
const BUCKETS: usize = 1 << BUCKET_BITS;

#[cfg(test)]
mod tests;
