use proptest::prelude::*;

use super::*;

fn read(
    stream: &[u8],
    piece: usize,
    most: usize,
) -> (Vec<ServerEvent>, Option<String>, Result<(), EventTooLarge>) {
    let mut parser = EventParser::new(most);
    let mut events = Vec::new();
    let mut outcome = Ok(());
    for piece in stream.chunks(piece.max(1)) {
        outcome = parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next_event()));
        if outcome.is_err() {
            break;
        }
    }
    (events, parser.last_id().map(str::to_owned), outcome)
}

#[track_caller]
fn check(stream: &str, expect: &[(&str, &str)], last_id: Option<&str>) {
    for piece in [1, 2, 3, stream.len()] {
        let (events, id, outcome) = read(stream.as_bytes(), piece, 1000);
        let shown: Vec<_> = events
            .iter()
            .map(|event| (event.name.as_str(), std::str::from_utf8(&event.data).unwrap()))
            .collect();
        assert_eq!(
            (shown.as_slice(), id.as_deref(), outcome),
            (expect, last_id, Ok(())),
            "pieces of {piece}"
        );
    }
}

#[test]
fn events_have_names_data_and_ids() {
    check("data: one\n\n", &[("message", "one")], None);
    check("event: endpoint\ndata: /post\n\n", &[("endpoint", "/post")], None);
    check("id: 7\ndata: a\ndata: b\n\n", &[("message", "a\nb")], Some("7"));
    check("data:a\n\ndata:  b\n\n", &[("message", "a"), ("message", " b")], None);
}

#[test]
fn all_line_ends_are_read() {
    for end in ["\n", "\r", "\r\n"] {
        check(
            &format!("event: x{end}data: 1{end}{end}data: 2{end}{end}"),
            &[("x", "1"), ("message", "2")],
            None,
        );
    }
}

#[test]
fn comments_unknown_fields_and_a_byte_order_mark_are_skipped() {
    check("\u{feff}data: a\n\n:ping\n\nfoo: bar\ndata: b\n\n", &[("message", "a"), ("message", "b")], None);
}

#[test]
fn event_without_data_only_sets_the_id() {
    check("id: start\ndata:\n\n", &[], Some("start"));
    check("id: start\ndata: x\n\nid\ndata: y\n\n", &[("message", "x"), ("message", "y")], None);
}

#[test]
fn unfinished_event_is_not_returned() {
    check("id: 1\ndata: a\n\nid: 2\ndata: b\n", &[("message", "a")], Some("1"));
}

#[test]
fn id_that_does_not_fit_a_header_is_ignored() {
    check("id: 1\ndata: a\n\nid: \u{e9}\ndata: b\n\n", &[("message", "a"), ("message", "b")], Some("1"));
    check(&format!("id: {}\ndata: a\n\n", "x".repeat(900)), &[("message", "a")], Some(&"x".repeat(900)));
    check("id: a\0b\ndata: a\n\n", &[("message", "a")], None);
}

#[test]
fn retry_is_a_number_of_milliseconds() {
    let mut parser = EventParser::new(100);
    for (field, expect) in [("250", Some(250)), ("x", Some(250)), ("-1", Some(250)), ("0", Some(0))] {
        parser.push(format!("retry: {field}\n\n").as_bytes()).unwrap();
        assert_eq!(parser.retry(), expect.map(Duration::from_millis), "{field}");
    }
}

#[test]
fn large_events_and_lines_are_rejected() {
    for stream in [format!("data: {}\n\n", "x".repeat(200)), "data: xxxxxxxxx\n".repeat(30), ":".repeat(200)]
    {
        for piece in [1, 7, 1000] {
            assert_eq!(read(stream.as_bytes(), piece, 100).2, Err(EventTooLarge));
        }
    }
    // The limit is for one event, not for the stream.
    assert_eq!(read("data: xxxxxxxxx\n\n".repeat(30).as_bytes(), 7, 100).0.len(), 30);
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        stream in "(data|event|id|retry|:|[a-z: 0-9]{0,4}|\r\n|\n|\r|\u{e9}|\u{feff}){0,60}",
        piece in 1_usize..20,
    ) {
        prop_assert_eq!(read(stream.as_bytes(), piece, 50), read(stream.as_bytes(), 1, 50));
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_within_the_limit(
        stream in proptest::collection::vec(any::<u8>(), 0..500),
        piece in 1_usize..50,
    ) {
        let mut parser = EventParser::new(64);
        for piece in stream.chunks(piece) {
            if parser.push(piece).is_err() {
                break;
            }
            prop_assert!(parser.line.len() + parser.data.len() + parser.name.len() <= 64 + 1);
            while let Some(event) = parser.next_event() {
                prop_assert!(!event.data.is_empty() && event.data.len() <= 64 + 1);
            }
        }
    }

    #[test]
    fn written_events_are_read_back(texts in proptest::collection::vec("[^\r\n\u{feff}]{1,30}(\n[^\r\n]{1,9})?", 0..8)) {
        let lines = |text: &String| format!("data: {}\n\n", text.replace('\n', "\ndata: "));
        let stream = texts.iter().map(lines).collect::<Vec<_>>().concat();
        let (events, _, outcome) = read(stream.as_bytes(), 5, 1000);
        prop_assert_eq!(outcome, Ok(()));
        let read: Vec<_> = events.into_iter().map(|event| String::from_utf8(event.data).unwrap()).collect();
        prop_assert_eq!(read, texts);
    }
}
