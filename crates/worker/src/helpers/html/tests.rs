use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(text: &str, expect: &Value) {
    match parse(text, usize::MAX) {
        Ok(HelperAnswer::Json(answer)) => {
            assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap(), expect);
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn reason(html: &str) -> String {
    parse(&format!("\n{html}"), usize::MAX).unwrap_err().reason
}

#[test]
fn page_is_parsed() {
    let html = "\n<!DOCTYPE html><title>T</title><!-- c --><p class=x ID='y'>a &amp; b<p>c";
    #[rustfmt::skip]
    let expect = json!([
        3, "html", 1, "html", 0,
        1, "head", 0, 1, "title", 0, "T", 0, 2, " c ", 0,
        1, "body", 0, 1, "p", ["class", "x", "id", "y"], "a & b", 0, 1, "p", 0, "c", 0, 0,
        0,
    ]);
    check(html, &expect);
    check("\n", &json!([1, "html", 0, 1, "head", 0, 0, 1, "body", 0, 0, 0]));
}

#[test]
fn fragment_is_parsed_in_its_context() {
    check("div\n<b>x</b> y", &json!([1, "b", 0, "x", 0, " y"]));
    check("tbody\n<tr><td>x", &json!([1, "tr", 0, 1, "td", 0, "x", 0, 0]));
    check("div\n<tr><td>x", &json!(["x"]));
    check("div\n", &json!([]));
}

#[test]
fn misnested_tags_are_corrected() {
    let expect = json!([1, "p", 0, "1", 1, "b", 0, "2", 1, "i", 0, "3", 0, 0, 1, "i", 0, "4", 0, "5", 0]);
    check("body\n<p>1<b>2<i>3</b>4</i>5</p>", &expect);
    check(
        "body\n<table>x<tr><td>y",
        &json!(["x", 1, "table", 0, 1, "tbody", 0, 1, "tr", 0, 1, "td", 0, "y", 0, 0, 0, 0]),
    );
}

#[test]
fn templates_foreign_names_and_noscript() {
    check("body\n<template><b>x</b></template>", &json!([1, "template", 0, 1, "b", 0, "x", 0, 0]));
    check(
        "body\n<svg viewbox=1><a xlink:href=x>",
        &json!([1, "svg", ["viewBox", "1"], 1, "a", ["xlink:href", "x"], 0, 0]),
    );
    check("body\n<noscript><img></noscript>", &json!([1, "noscript", 0, 1, "img", 0, 0, 0]));
}

/// Each level makes the parser search all levels above it.
#[test]
fn deep_nesting_is_refused_early() {
    assert_eq!(reason(&"<div>".repeat(100_000)), "too-deep");
    assert_eq!(reason(&"<ul><li>".repeat(50_000)), "too-deep");
    assert!(parse(&format!("\n{}", "<div>".repeat(900)), usize::MAX).is_ok());
}

/// The parser reopens unclosed formatting elements in each paragraph.
#[test]
fn reopened_formatting_is_limited() {
    let open = (0..400).map(|number| format!("<b id={number}>")).collect::<Vec<_>>().concat();
    assert_eq!(reason(&format!("<p>{open}{}", "<p>x".repeat(100_000))), "result-too-large");
}

/// A long attribute of such an element is copied each time.
#[test]
fn reopened_attributes_are_limited() {
    let open = format!("<b id={}>", "x".repeat(100_000));
    assert_eq!(reason(&format!("<p>{open}{}", "<p>x".repeat(10_000))), "result-too-large");
}

#[test]
fn tag_with_too_many_attributes_is_refused() {
    let attributes = (0..200_000).map(|number| format!("a{number}/")).collect::<Vec<_>>().concat();
    assert_eq!(reason(&format!("<b {attributes}>")), "result-too-large");
}

#[test]
fn long_values_comments_and_scripts_are_allowed() {
    let picture = format!("<img src='data:{}'>", "abcdefgh/ ".repeat(3000));
    let page = format!(
        "<!-- {} --><script>if (a<b) {}</script>{picture}",
        "word ".repeat(30_000),
        "x + y; ".repeat(100_000)
    );
    assert!(parse(&format!("\n{page}"), usize::MAX).is_ok());
}

#[test]
fn large_pages() {
    assert_eq!(reason(&"<br>".repeat(MAX_NODES)), "result-too-large");
    assert_eq!(reason(&"x".repeat(MAX_INPUT + 1)), "result-too-large");
}

/// Little text, much memory: the tree and the resulting list are measured while they grow.
#[test]
fn page_larger_than_the_memory_is_refused() {
    let attributes = "<br a b c d e f g h i j>".repeat(50_000);
    for page in ["<br>".repeat(100_000), attributes, "<p>text".repeat(50_000)] {
        let page = format!("\n{page}");
        let error = parse(&page, 8 << 20).unwrap_err();
        assert!(error.reason == "result-too-large" && error.message.contains("memory"), "{error:?}");
        assert!(parse(&page, 128 << 20).is_ok());
    }
    let (text, whole) = (format!("\n{}", "x".repeat(1 << 20)), 2 << 20);
    assert!(parse(&text, whole - (1 << 10)).unwrap_err().message.contains("memory"));
    assert!(parse(&text, whole + (1 << 16)).is_ok());
}

/// The attributes of every further `body` are added to the first one.
#[test]
fn later_attributes_are_counted() {
    let value = "x".repeat(2 << 10);
    let bodies = (0..512).map(|number| format!("<body a{number}={value}>")).collect::<Vec<_>>().concat();
    let (page, whole) = (format!("\n{bodies}"), 2 << 20);
    assert!(parse(&page, whole - (1 << 10)).unwrap_err().message.contains("memory"));
    assert!(parse(&page, whole + (1 << 16)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The list is balanced JSON for any sequence of tags.
    #[test]
    fn any_tag_soup_gives_a_balanced_list(pieces in prop::collection::vec(prop::sample::select(SOUP), 0..60), context in prop::sample::select(CONTEXTS)) {
        let Ok(HelperAnswer::Json(answer)) = parse(&format!("{context}\n{}", pieces.concat()), usize::MAX) else { panic!("refused") };
        let list: Vec<Value> = serde_json::from_str(&answer).unwrap();
        let (mut open, mut at) = (0, 0);
        while let Some(item) = list.get(at) {
            at += match item.as_i64() {
                Some(1) => { open += 1; 3 }
                Some(0) => { open -= 1; 1 }
                Some(_) => 2,
                None => 1,
            };
            prop_assert!(open >= 0);
        }
        prop_assert_eq!(open, 0);
    }
}

const CONTEXTS: &[&str] =
    &["", "body", "table", "select", "template", "svg", "tr", "script", "html", "frameset", "no such thing"];
#[rustfmt::skip]
const SOUP: &[&str] = &[
    "<a>", "</a>", "<b>", "</b>", "<p>", "</p>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<select>", "<option>", "</select>",
    "<template>", "</template>", "<svg>", "<math>", "<foreignObject>", "</svg>", "<form>", "</form>", "<frameset>", "<html lang=x>",
    "<body k=v>", "</body>", "</html>", "<head>", "<title>", "</title>", "<script>", "</script>", "<!--", "-->", "<!DOCTYPE x>", "<nobr>",
    "</nobr>", "<button>", "<caption>", "<colgroup>", "<col>", "<li>", "<dd>", "<h1>", "</h2>", "<br>", "</br>", "<input>", "<textarea>",
    "text", " ", "&amp;", "&#0;", "\u{0}", "<![CDATA[x]]>", "<?pi?>", "<plaintext>", "<ruby>", "<rt>", "<applet>", "</applet>",
];
