use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(text: &str, expect: &Value) {
    match parse(text) {
        Ok(HelperAnswer::Json(answer)) => {
            assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap(), expect);
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_refused(text: &str, expect: &str) {
    let error = parse(text).unwrap_err();
    assert_eq!(format!("{} {}: {}", error.class.name(), error.reason, error.message), expect);
}

#[track_caller]
fn reason(text: &str) -> String {
    parse(text).unwrap_err().reason
}

#[test]
fn elements_attributes_and_text() {
    let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- n --><a:feed xmlns:a='urn:x' k=\"1 &amp; &#x32;\">\n one <b/>two<![CDATA[ <3> ]]>\
                <!-- c --><?p i?><c>&lt;x&gt; &#233;</c>\r\n</a:feed>\n";
    let leaf = |tag: &str, text: &str| json!({"tag": tag, "attrs": {}, "text": text, "children": []});
    let expect = json!({
        "tag": "a:feed",
        "attrs": {"xmlns:a": "urn:x", "k": "1 & 2"},
        "text": "one two <3>",
        "children": [leaf("b", ""), leaf("c", "<x> é")],
    });
    check(text, &expect);
}

#[test]
fn prefix_needs_no_declaration() {
    check("<media:x/>", &json!({"tag": "media:x", "attrs": {}, "text": "", "children": []}));
}

#[test]
fn document_type_is_refused() {
    let expect = "SECURITY doctype-refused: document types are refused, because they can declare entities; remove `<!DOCTYPE …>`";
    check_refused("<!DOCTYPE a><a/>", expect);
    check_refused("<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", expect);
    check_refused("<!doctype a><a/>", expect);
    check_refused("<a/><!DOCTYPE a>", expect);
}

#[test]
fn unknown_entities_are_refused() {
    check_refused(
        "<a>\n&x;</a>",
        "HELPER_RUNTIME parse-failed: unknown entity `&x;`; write the character itself (line 2)",
    );
    for text in ["<a k='&x;'/>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#99999999999;</a>", "<a>& b</a>"] {
        assert_eq!(reason(text), "parse-failed", "{text}");
    }
}

#[test]
fn malformed_texts_are_refused() {
    let texts = [
        "",
        "x",
        "<a>",
        "</a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>x",
        "x<a/>",
        "<a",
        "<a k>",
        "<a k=1/>",
        "<a k='1' k='2'/>",
        "<>",
        "<1/>",
        "<a <b/>",
        "<a><!-- -- --></a>",
        "<![CDATA[x]]><a/>",
        "<a 1='2'/>",
        "&lt;<a/>",
    ];
    for text in texts {
        assert_eq!(reason(text), "parse-failed", "{text}");
    }
}

#[test]
fn deep_and_wide_trees_are_refused() {
    assert_eq!(reason(&"<a>".repeat(100_000)), "parse-failed");
    let deep = format!("{}{}", "<a>".repeat(MAX_DEPTH), "</a>".repeat(MAX_DEPTH));
    assert!(parse(&deep).is_ok());
    assert_eq!(reason(&format!("<r>{}</r>", "<a/>".repeat(MAX_ELEMENTS))), "result-too-large");
}

/// Parts are written in another order than they are read.
#[test]
fn texts_belong_to_their_elements() {
    let leaf = |tag: &str, text: &str| json!({"tag": tag, "attrs": {}, "text": text, "children": []});
    let expect = json!({
        "tag": "r", "attrs": {}, "text": "1\"6",
        "children": [
            {"tag": "a", "attrs": {"k": "\\"}, "text": "25", "children": [leaf("b", "3"), leaf("c", "4")]},
            leaf("d", ""),
            {"tag": "e", "attrs": {}, "text": "", "children": [{"tag": "f", "attrs": {}, "text": "", "children": [leaf("g", "7")]}]},
        ],
    });
    check("<r>1<a k='\\'>2<b>3</b><c>4</c>5</a><d/>\"6<e><f><g>7</g></f></e></r>", &expect);
}

/// The intermediate data is never larger than the result, whose length is known in advance except for commas.
#[test]
fn intermediate_data_is_not_larger_than_the_result() {
    let mut tree = XmlTree::default();
    for name in ["r", "a", "b"] {
        tree.open(&BytesStart::new(name)).unwrap_or_else(|_| panic!("{name}"));
        tree.text("text").unwrap_or_else(|_| panic!("{name}"));
    }
    for _ in 0..3 {
        tree.close().unwrap_or_else(|_| panic!("closed too often"));
    }
    assert_eq!(tree.json_length(), tree.json().len() + 3);
    let wide = format!("<r>{}</r>", format!("<a>{}</a>", "x".repeat(1_000)).repeat(16_600));
    assert!(wide.len() <= MAX_INPUT);
    assert_eq!(reason(&wide), "result-too-large");
}

/// Pairwise comparison would need ten billion comparisons.
#[test]
fn many_attributes_take_linear_time() {
    let attributes = (0..100_000).map(|number| format!(" a{number}=''")).collect::<Vec<_>>().concat();
    assert!(parse(&format!("<r{attributes}/>")).is_ok());
}

/// Counted over the whole text: one tag with all attributes costs as much as many tags with a few.
#[test]
fn too_many_attributes_and_long_texts_are_refused() {
    let attributes = (0..=MAX_ATTRIBUTES).map(|number| format!(" a{number}=''")).collect::<Vec<_>>();
    assert_eq!(reason(&format!("<r{}/>", attributes.concat())), "result-too-large");
    assert!(parse(&format!("<r{}/>", attributes[1..].concat())).is_ok());
    let elements = "<a k='' l='' m=''/>".repeat(MAX_ATTRIBUTES / 3 + 1);
    assert_eq!(reason(&format!("<r>{elements}</r>")), "result-too-large");
    assert_eq!(reason(&" ".repeat(MAX_INPUT + 1)), "result-too-large");
}
