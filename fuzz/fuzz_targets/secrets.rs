//! Any bytes: redacted twice is redacted once, lines stay, and a cut anywhere changes nothing.
#![no_main]

use toolgate_secrets::{Detector, Tier};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let detector = Detector::shipped().expect("the shipped rules are sound");
    let _ = detector.contains(data, Tier::Possible);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let once = detector.redact(text, Tier::Probable).text;
    assert_eq!(once.matches('\n').count(), text.matches('\n').count());
    assert_eq!(detector.redact(&once, Tier::Probable).text, once);
    let mut stream = detector.stream(Tier::Probable);
    let (front, back) = data.split_at(data.len() / 3);
    let mut out = stream.push(front);
    out.extend(stream.push(back));
    out.extend(stream.finish().0);
    assert_eq!(out, once.as_bytes());
});
