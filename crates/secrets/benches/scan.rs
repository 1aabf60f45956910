//! Scan speed with all rules, compared with one `memchr` pass and with a set of regular expressions.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench looks at the clock, prints, and fails loudly"
)]

use std::{
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

use regex::bytes::RegexSetBuilder;
use toolgate_secrets::{Detector, Tier};

fn main() {
    let started = Instant::now();
    let detector = Detector::shipped().expect("the shipped rules are sound");
    println!("load {:?}, {} rules", started.elapsed(), detector.rules().count());
    let texts = [
        ("source code", source()),
        ("logs", logs()),
        ("json", json()),
        ("prose", prose()),
        ("base64 image", image()),
        ("url-encoded", encoded()),
    ];
    let mixed: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    println!("{:<14}{:>10}{:>12}{:>10}", "text", "MiB", "MB/s", "findings");
    for (name, text) in texts.iter().map(|(name, text)| (*name, text)).chain([("mixed", &mixed)]) {
        let findings = detector.redact(text, Tier::Possible).findings.len();
        let time = fastest(|| detector.redact(text, Tier::Possible).findings.len());
        println!("{name:<14}{:>10}{:>12.0}{findings:>10}", text.len() >> 20, rate(text, time));
    }
    attacks(&detector);
    let ours = fastest(|| detector.redact(&mixed, Tier::Possible).findings.len());
    let memchr = fastest(|| memchr::memchr_iter(0, mixed.as_bytes()).count());
    let reached = rate(&mixed, ours);
    let verdict = if reached >= GOAL { "met" } else { "MISSED" };
    println!("mixed: {reached:.0} MB/s (goal ≥ {GOAL}: {verdict})");
    println!("one pass of memchr is {:.1} times as fast", rate(&mixed, memchr) / reached);
    // The same amount of every kind of text, and the same bytes for both: a set that exceeds its cache is very slow.
    let sample: String = texts.iter().filter_map(|(_, text)| text.get(..SAMPLE)).collect();
    let ours = fastest(|| detector.redact(&sample, Tier::Possible).findings.len());
    for (name, patterns) in [
        ("all rules", patterns(&["definite", "probable", "possible"])),
        ("definite rules", patterns(&["definite"])),
    ] {
        let set = RegexSetBuilder::new(&patterns).size_limit(SET_SIZE).build().expect("the patterns compile");
        let naive = fastest(|| set.matches(sample.as_bytes()).iter().count());
        println!(
            "RegexSet of {name} ({} patterns; tells whether, not where; no disguises): {:.1} MB/s, we do {:.0} on the same bytes",
            patterns.len(),
            rate(&sample, naive),
            rate(&sample, ours)
        );
    }
}

/// Texts designed to be slow; the slowest counts.
fn attacks(detector: &Detector) {
    let pieces = [
        "ghp_",
        "eyJ",
        ".eyJ",
        "xoxb-",
        "-----BEGIN PRIVATE KEY-----",
        "password=",
        "token ",
        "https://",
        "%5F",
        "\\u005f",
        "a ",
        "a\n",
        "Z2hwX",
        "6768705f",
        "\u{200b}",
        "curl ",
        "cookie: ",
        "$6$",
        "aws_secret_access_key ",
        "twilio",
        "T3BlbkFJ",
        "-----BEGIN ",
        "PuTTY-User-Key-File-2: a",
        "pass",
        "secret=",
    ];
    let times = pieces.map(|piece| {
        let text = piece.repeat((1 << 20) / piece.len());
        let started = Instant::now();
        black_box(detector.redact(&text, Tier::Possible));
        (started.elapsed(), piece, rate(&text, started.elapsed()))
    });
    if let Some((_, piece, rate)) = times.iter().max_by_key(|(time, ..)| *time) {
        println!(
            "the slowest of {} attacks is `{}`, over and over: {rate:.1} MB/s",
            pieces.len(),
            piece.escape_debug()
        );
    }
}

/// The patterns of the shipped rules, as they would run in a plain regex engine.
fn patterns(tiers: &[&str]) -> Vec<String> {
    let files = [
        include_str!("../../../profiles/secrets/ai.json"),
        include_str!("../../../profiles/secrets/chat.json"),
        include_str!("../../../profiles/secrets/ci.json"),
        include_str!("../../../profiles/secrets/cloud.json"),
        include_str!("../../../profiles/secrets/code.json"),
        include_str!("../../../profiles/secrets/database.json"),
        include_str!("../../../profiles/secrets/generic.json"),
        include_str!("../../../profiles/secrets/keys.json"),
        include_str!("../../../profiles/secrets/mail.json"),
        include_str!("../../../profiles/secrets/monitoring.json"),
        include_str!("../../../profiles/secrets/payment.json"),
        include_str!("../../../profiles/secrets/saas.json"),
    ];
    let rules = files.iter().flat_map(|text| {
        let file: serde_json::Value = serde_json::from_str(text).expect("the file is JSON");
        file.get("rules").and_then(|rules| rules.as_array()).cloned().unwrap_or_default()
    });
    let wanted = rules.filter(|rule| {
        rule.get("tier").and_then(|tier| tier.as_str()).is_some_and(|tier| tiers.contains(&tier))
    });
    // A plain regex engine has no macro for assignments; use the simplest form.
    let plain = |pattern: &str| format!("(?-u){}", pattern.replace("(?&value)", "\"?[=:][ \"]{0,2}[^\\s]"));
    wanted.filter_map(|rule| rule.get("pattern")?.as_str().map(plain)).collect()
}

fn rate(text: &str, time: Duration) -> f64 {
    let bytes = u32::try_from(text.len()).map_or(f64::MAX, f64::from);
    bytes / time.as_secs_f64() / 1e6
}

fn fastest<T>(run: impl Fn() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let started = Instant::now();
            black_box(run());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.first().copied().unwrap_or_default()
}

/// Our own sources, repeated.
fn source() -> String {
    let files = [
        include_str!("../src/check.rs"),
        include_str!("../src/detector.rs"),
        include_str!("../src/searcher.rs"),
        include_str!("../src/rule.rs"),
        include_str!("../src/rule/compile.rs"),
        include_str!("../src/disguises.rs"),
        include_str!("../src/window.rs"),
    ];
    files.concat().repeat((SIZE >> 16).max(1))
}

fn logs() -> String {
    let mut random = Random(7);
    let mut text = String::with_capacity(SIZE);
    while text.len() < SIZE {
        let (id, ip, time) = (random.next(), random.next() % 256, random.next() % 100_000);
        writeln!(
            text,
            "2026-11-16T07:{:02}:{:02}.{:03}Z INFO http::server request finished method=GET path=/api/v1/items/{} \
             status=200 latency_us={time} client=10.0.{ip}.17 request_id={id:016x}-{:08x}",
            id % 60,
            ip % 60,
            time % 1000,
            id % 100_000,
            ip
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn json() -> String {
    let mut random = Random(11);
    let mut text = String::with_capacity(SIZE);
    while text.len() < SIZE {
        let id = random.next();
        writeln!(
            text,
            "{{\"id\":\"{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\",\"name\":\"item {id}\",\"tags\":[\"red\",\"green\"],\
             \"price\":{}.99,\"url\":\"https://shop.internal/items/{id}?page=2\",\"note\":\"said \\\"yes\\\"\\nthen left\",\
             \"digest\":\"sha256:{:016x}{:016x}{:016x}{:016x}\"}}",
            id & 0xffff_ffff,
            id >> 7 & 0xffff,
            id >> 11 & 0xfff,
            id >> 13 & 0xfff,
            id & 0xffff_ffff_ffff,
            id % 900,
            random.next(),
            random.next(),
            random.next(),
            random.next()
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn prose() -> String {
    let files = [
        include_str!("../../../README.md"),
        include_str!("../../../ARCHITECTURE.md"),
        include_str!("../../../docs/policy.md"),
        include_str!("../../../docs/threat-model.md"),
        include_str!("../../../docs/runtime.md"),
    ];
    let text = files.concat();
    text.repeat((SIZE / text.len()).max(1))
}

fn image() -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = Random(13);
    let mut text = String::from("<img src=\"data:image/png;base64,iVBORw0KGgo");
    while text.len() < SIZE {
        let bits = random.next();
        for shift in 0..10 {
            let at = usize::try_from(bits >> (shift * 6) & 63).unwrap_or(0);
            text.push(ALPHABET.get(at).copied().map_or('A', char::from));
        }
    }
    text.push_str("\">\n");
    text
}

fn encoded() -> String {
    let mut random = Random(17);
    let mut text = String::with_capacity(SIZE);
    while text.len() < SIZE {
        let id = random.next();
        write!(text, "next=https%3A%2F%2Fshop.internal%2Fitems%2F{id}&title=caf%C3%A9%20{}&", id % 1000)
            .expect("writing to a string cannot fail");
    }
    text
}

/// xorshift: the same texts in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Megabytes per second, for mixed text.
const GOAL: f64 = 300.0;
/// Above the set's default, which all rules together nearly fill.
const SET_SIZE: usize = 64 << 20;
const SAMPLE: usize = 48 << 10;
const SIZE: usize = 4 << 20;
