//! Where does one of thousands of words stand? One pass over the bytes, one lookup each.
//!
//! Every four bytes are hashed and looked up in a filter that fits the cache nearest but one. The lookups do not depend on each other, so the processor overlaps them; an automaton's steps would wait for one another.
//! The words of the rules are in the filter as they are, and as base64 and hex write them: what is encoded is found
//! without decoding anything.

/// What a word in the filter means.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Meaning {
    /// A word of the rule with this index.
    Rule(usize),
    /// Part of an encoded word; `keyword` is the index of what it decodes to.
    Coded { coding: Coding, keyword: usize },
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Coding {
    /// The word begins so many bytes into a group of three.
    Base64 {
        offset: usize,
    },
    Hex,
}

pub(crate) struct Needle {
    pub text: Box<[u8]>,
    pub folds_case: bool,
    pub meaning: Meaning,
}

pub(crate) struct Literals {
    filter: Box<[u64; FILTER_WORDS]>,
    /// Where the slots of each bucket begin; one more entry than there are buckets.
    buckets: Vec<u32>,
    slots: Vec<Slot>,
    needles: Vec<Needle>,
}

#[derive(Clone, Copy)]
struct Slot {
    quad: u32,
    needle: u32,
}

impl Literals {
    #[expect(
        clippy::large_stack_arrays,
        reason = "moved into its box at once; a slice would be checked at every byte"
    )]
    pub(crate) fn new(needles: Vec<Needle>) -> Self {
        let mut slots: Vec<Slot> = Vec::new();
        for (needle, at) in needles.iter().zip(0_u32..) {
            slots.extend(needle.quads().into_iter().map(|quad| Slot { quad, needle: at }));
        }
        slots.sort_by_key(|slot| (bucket(hash(slot.quad)), slot.quad, slot.needle));
        let mut filter = Box::new([0_u64; FILTER_WORDS]);
        let mut buckets = vec![0_u32; BUCKETS + 1];
        for slot in &slots {
            let (word, bit) = filter_place(hash(slot.quad));
            if let Some(word) = filter.get_mut(word) {
                *word |= 1 << bit;
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
        Self { filter, buckets, slots, needles }
    }

    /// Tells every place where a word stands, from the beginning to the end.
    pub(crate) fn each(&self, hay: &[u8], mut found: impl FnMut(usize, &Needle)) {
        for (at, four) in hay.array_windows::<4>().enumerate() {
            let quad = u32::from_le_bytes(*four);
            let hash = hash(quad);
            let (word, bit) = filter_place(hash);
            if self.filter.get(word).is_some_and(|word| word >> bit & 1 == 1) {
                self.confirm(hay, at, quad, hash, &mut found);
            }
        }
    }

    #[inline(never)]
    fn confirm(&self, hay: &[u8], at: usize, quad: u32, hash: u32, found: &mut impl FnMut(usize, &Needle)) {
        let bucket = bucket(hash);
        let (Some(&from), Some(&until)) = (self.buckets.get(bucket), self.buckets.get(bucket + 1)) else {
            return;
        };
        let slots = self.slots.get(from as usize..until as usize).unwrap_or_default();
        for slot in slots.iter().filter(|slot| slot.quad == quad) {
            let Some(needle) = self.needles.get(slot.needle as usize) else { continue };
            let Some(here) = hay.get(at..at + needle.text.len()) else { continue };
            let is_here = if needle.folds_case {
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
    /// Its first four bytes in every case it may have; for a word of three, with what tokens are made of after it.
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

fn hash(quad: u32) -> u32 {
    quad.wrapping_mul(0x9e37_79b1)
}

fn filter_place(hash: u32) -> (usize, u32) {
    ((hash >> (32 - FILTER_BITS)) as usize, hash >> (26 - FILTER_BITS) & 63)
}

fn bucket(hash: u32) -> usize {
    (hash >> (32 - BUCKET_BITS)) as usize
}

/// 128 KiB: large enough that few bits are set, small enough for the second-level cache.
const FILTER_BITS: u32 = 14;
const FILTER_WORDS: usize = 1 << FILTER_BITS;
const BUCKET_BITS: u32 = 14;
const BUCKETS: usize = 1 << BUCKET_BITS;

#[cfg(test)]
mod tests;
