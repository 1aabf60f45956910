//! A caller who selects lines must not choose what the detector sees.

use std::sync::Arc;

use toolgate_secrets::Detector;

use super::*;

const AROUND: [&str; 2] = ["a note before the key", "a note behind the key"];

/// Lines of base64 that are not a real key.
fn body(lines: usize, width: usize) -> Vec<String> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state: u32 = 7;
    let mut letter = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        char::from(LETTERS[usize::try_from(state >> 16).unwrap() % LETTERS.len()])
    };
    (0..lines).map(|_| (0..width).map(|_| letter()).collect()).collect()
}

fn with_a_key(body: &[String]) -> String {
    let (begin, end) = (["-----BEGIN OPENSSH PRIVATE", "KEY-----"], ["-----END OPENSSH PRIVATE", "KEY-----"]);
    let [before, behind] = AROUND;
    format!("{before}\n{}\n{}\n{}\n{behind}\n", begin.join(" "), body.join("\n"), end.join(" "))
}

fn detector() -> Arc<Detector> {
    Detector::shipped().unwrap()
}

fn redacted_reads(ground: &Ground, reads: RedactedReads) -> Files {
    let files = ground.files_with(|grants| grants.rights = FileRights::Read);
    files.redacted(Some(SecretRedactor::new(&detector(), reads)))
}

#[track_caller]
fn shows_none_of(body: &[String], shown: &str) {
    for line in body {
        assert!(!shown.contains(&line[20..28]), "{shown}");
    }
}

#[test]
fn no_selection_of_lines_shows_a_part_of_a_key() {
    let (ground, body) = (Ground::new(), body(6, 70));
    ground.put("ws/deploy/id_ed25519", with_a_key(&body));
    let files = redacted_reads(&ground, RedactedReads::All);
    let path = "deploy/id_ed25519";
    let fields = CutOptions { fields: vec![1], ..CutOptions::default() };
    let halves = CutOptions { fields: vec![1, 2], delimiter: Some("[A-M]+".to_owned()), regex: true };
    let (grep, search) = (GrepOptions::default(), SearchOptions::default());
    for shown in [
        format!("{:?}", files.slice(path, 2, 6).unwrap()),
        format!("{:?}", files.slice(path, 4, 5).unwrap()),
        format!("{:?}", files.slice(path, -6, -2).unwrap()),
        format!("{:?}", files.grep(".", path, grep).unwrap()),
        format!("{:?}", files.cut(path, &fields).unwrap()),
        format!("{:?}", files.cut(path, &halves).unwrap()),
        format!("{:?}", files.sort(path, SortOptions::default()).unwrap()),
        format!("{:?}", files.search_in_files(".", "*", ".", search).unwrap()),
        files.read_text(path).unwrap(),
    ] {
        shows_none_of(&body, &shown);
    }
    let all = files.slice(path, 0, 99).unwrap();
    assert_eq!(all.len() as u64, files.line_count(path).unwrap());
    assert_eq!([all[0].as_str(), all[all.len() - 1].as_str()], AROUND);
}

/// Matches of a pattern must not reveal a key letter by letter.
#[test]
fn redacted_text_is_not_searched() {
    let (ground, body) = (Ground::new(), body(6, 70));
    ground.put("ws/key", with_a_key(&body));
    let files = redacted_reads(&ground, RedactedReads::All);
    for pattern in ["[A-Za-z0-9+/]{70}", "BEGIN", &body[3][..4]] {
        let pattern = pattern.replace('+', r"\+");
        assert_eq!(files.grep(&pattern, "key", GrepOptions::default()).unwrap(), [""; 0], "{pattern}");
        let hits = files.search_in_files(".", "*", &pattern, SearchOptions::default()).unwrap();
        assert_eq!(hits, [], "{pattern}");
    }
}

#[test]
fn key_far_down_in_a_long_file_is_found() {
    let (ground, body) = (Ground::new(), body(40, 70));
    let lines = 30_000;
    ground.put("ws/long", format!("{}{}", "nothing to see here\n".repeat(lines), with_a_key(&body)));
    let files = redacted_reads(&ground, RedactedReads::All);
    let first = i64::try_from(lines).unwrap() + 10;
    let shown = files.slice("long", first, first + 5).unwrap();
    assert_eq!(shown.len(), 5);
    shows_none_of(&body, &format!("{shown:?}"));
}

#[test]
fn redactions_are_reported_once() {
    let (ground, body) = (Ground::new(), body(6, 70));
    ground.put("ws/key", with_a_key(&body));
    let redactor = SecretRedactor::new(&detector(), RedactedReads::All);
    let files = ground.files().redacted(Some(redactor.clone()));
    let reads: [fn(&Files); 2] =
        [|files| drop(files.slice("key", 0, 2).unwrap()), |files| drop(files.read_text("key").unwrap())];
    for read in reads {
        read(&files);
        let found = redactor.take_found();
        assert_eq!(found.iter().map(|found| &*found.kind).collect::<Vec<_>>(), ["private-key"]);
        assert_eq!(redactor.take_found(), []);
    }
}

/// A redacted line costs what it took to read it.
#[test]
fn unterminated_key_is_not_read_forever() {
    let ground = Ground::new();
    ground.put("ws/key", with_a_key(&body(1, 100_000)));
    let files = ground.files_with(|grants| grants.caps.scan_bytes = 50_000);
    let files = files.redacted(Some(SecretRedactor::new(&detector(), RedactedReads::All)));
    let found = files.grep("x", "key", GrepOptions::default());
    refused(found, "HELPER_RUNTIME grep file-too-large");
    let hits = files.search_in_files(".", "*", "x", SearchOptions::default());
    refused(hits, "HELPER_RUNTIME searchInFiles scan-too-large");
}

/// Scanning a long text takes time, and must stop when the call is over.
#[test]
fn finished_call_stops_in_the_middle_of_a_text() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let ground = Ground::new();
    ground.put("ws/long", "nothing to see here\n".repeat(100_000));
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&asked);
    let files = Files::open(&ground.grants(), move || asks.fetch_add(1, Relaxed) >= 10).unwrap();
    let files = files.redacted(Some(SecretRedactor::new(&detector(), RedactedReads::All)));
    refused(files.read_text("long"), "HELPER_RUNTIME readText interrupted");
    assert_eq!(asked.load(Relaxed), 11);
}

/// Images and archives only cost what it takes to see that they are not text.
#[test]
fn binary_file_is_skipped_early() {
    let ground = Ground::new();
    for number in 0..300 {
        ground.put(&format!("ws/pictures/{number}"), [b"\x89PNG\r\n".as_slice(), &[0xff; 2000]].concat());
    }
    ground.put("ws/text", "a needle\n");
    let files = ground.files_with(|grants| grants.caps.scan_bytes = 50_000);
    let files = files.redacted(Some(SecretRedactor::new(&detector(), RedactedReads::All)));
    let hits = files.search_in_files(".", "*", "needle", SearchOptions::default()).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.file.as_str()).collect::<Vec<_>>(), ["text"]);
}

/// Lines before the invalid byte are redacted, and its line is rejected even if a secret ends right before it.
#[test]
fn partly_binary_file_is_redacted_up_to_the_invalid_byte() {
    let (ground, body) = (Ground::new(), body(6, 70));
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let text = with_a_key(&body);
    let cut = text.find(&body[4]).unwrap() + 30;
    ground.put("ws/whole", [text.as_bytes(), token.as_bytes(), b"\x80 more\n"].concat());
    ground.put("ws/cut", [&text.as_bytes()[..cut], b"\xc3(", &text.as_bytes()[cut..]].concat());
    let files = redacted_reads(&ground, RedactedReads::All);
    for (path, good) in [("whole", 10), ("cut", 6)] {
        let shown = files.slice(path, 0, good).unwrap();
        assert_eq!(shown[0], AROUND[0]);
        shows_none_of(&body, &format!("{shown:?}"));
        refused(files.slice(path, 0, good + 1), "HELPER_RUNTIME slice io");
        refused(files.grep("more", path, GrepOptions::default()), "HELPER_RUNTIME grep io");
        let hits = files.search_in_files(".", path, ".", SearchOptions::default()).unwrap();
        assert_eq!(hits, [], "{path}");
    }
}

/// A character cut by the end of a read buffer is not an invalid byte.
#[test]
fn character_across_two_buffers_is_text() {
    let ground = Ground::new();
    ground.put("ws/f", format!("{}ä\nend\n", "x".repeat(64 * 1024 - 1)));
    let files = redacted_reads(&ground, RedactedReads::All);
    assert_eq!(files.slice("f", 1, 2).unwrap(), ["end"]);
}

#[test]
fn written_files_contain_no_redaction_markers() {
    let (ground, body) = (Ground::new(), body(6, 70));
    let text = with_a_key(&body);
    ground.put("ws/key", &text);
    let files = ground.files().redacted(Some(SecretRedactor::new(&detector(), RedactedReads::All)));
    files.copy("key", "copy").unwrap();
    assert_eq!(ground.content("ws/copy"), text);
    files.append_text("copy", "more\n").unwrap();
    files.edit_text("copy", AROUND[0], "edited", Occurrences::Only).unwrap();
    assert_eq!(ground.content("ws/copy"), format!("{}more\n", text.replace(AROUND[0], "edited")));
}

/// Outgoing requests are checked, and must not be changed silently before.
#[test]
fn whole_file_stays_exact_for_a_tool_that_sends() {
    let (ground, body) = (Ground::new(), body(6, 70));
    let text = with_a_key(&body);
    ground.put("ws/key", &text);
    let files = redacted_reads(&ground, RedactedReads::Lines);
    assert_eq!(files.read_text("key").unwrap(), text);
    shows_none_of(&body, &format!("{:?}", files.slice("key", 3, 6).unwrap()));
}
