//! Where does one of thousands of words stand? One pass over the bytes, one lookup each.
//!
//! Every four bytes are folded to one case, hashed, and looked up in a filter that fits the first-level cache. The
//! lookups do not depend on each other, so the processor overlaps them; an automaton's steps would wait for one another.
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
    /// What comes after it; asked for words of three bytes only.
    pub follows: Follows,
    pub meaning: Meaning,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follows {
    Anything,
    Token,
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
            let quad = u32::from_le_bytes(*four) | CASE;
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
    /// The folded first four bytes; for a word of three, all that could follow.
    fn quads(&self) -> Vec<u32> {
        match *self.text {
            [a, b, c, d, ..] => vec![u32::from_le_bytes([a, b, c, d]) | CASE],
            [a, b, c] => {
                let follows = (0..=u8::MAX).filter(|byte| byte & 0x20 != 0 && self.may_follow(*byte));
                follows.map(|d| u32::from_le_bytes([a, b, c, d]) | CASE).collect()
            }
            _ => Vec::new(),
        }
    }

    fn may_follow(&self, byte: u8) -> bool {
        // DEL is what `_` folds to.
        self.follows == Follows::Anything
            || byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'.' | 0x7f)
    }
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

/// The bit by which upper and lower case differ, in each of four bytes.
const CASE: u32 = 0x2020_2020;
/// 32 KiB: it has to stay in the first-level cache.
const FILTER_BITS: u32 = 12;
const FILTER_WORDS: usize = 1 << FILTER_BITS;
const BUCKET_BITS: u32 = 14;
const BUCKETS: usize = 1 << BUCKET_BITS;

#[cfg(test)]
mod tests;
