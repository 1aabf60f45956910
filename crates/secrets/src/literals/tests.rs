//! tmp
use super::*;
#[test]
fn stat() {
    let d = crate::Detector::shipped().unwrap();
    let l = d.looker().literals();
    let bits: u32 = l.filter.iter().map(|w| w.count_ones()).sum();
    println!("needles {} slots {} bits {} of {}", l.needles.len(), l.slots.len(), bits, FILTER_WORDS * 64);
    for (name, text) in [("source", include_str!("../unfold.rs")), ("prose", include_str!("../../../../docs/policy.md")), ("lock", include_str!("../../../../Cargo.lock"))] {
        let hay = text.as_bytes();
        let mut pass = 0; let mut quadhit = 0; let mut real = std::collections::BTreeMap::<String, usize>::new();
        for (at, four) in hay.array_windows::<4>().enumerate() {
            let quad = u32::from_le_bytes(*four); let h = hash(quad); let (w, b) = filter_place(h);
            if l.filter[w] >> b & 1 == 1 { pass += 1; if l.slots.iter().any(|s| s.quad == quad) { quadhit += 1; } }
            let _ = at;
        }
        l.each(hay, |_, n| *real.entry(format!("{:?} {}", n.meaning, String::from_utf8_lossy(&n.text))).or_default() += 1);
        let mut real: Vec<_> = real.into_iter().collect(); real.sort_by_key(|r| std::cmp::Reverse(r.1));
        println!("{name} {} pass {pass} quad {quadhit} real {} {:?}", hay.len(), real.iter().map(|r| r.1).sum::<usize>(), &real[..real.len().min(12)]);
    }
}
