//! `check` on ten thousand files finds exactly the planted errors, in order.

use crate::bench::{Bench, tool, tool_with};

#[test]
fn ten_thousand_files() {
    let bench = Bench::new();
    let mut planted = Vec::new();
    for number in 0..10_000 {
        let file = format!("t/{:02}/tool-{number:05}.json", number % 100);
        let name = format!("tool-{number:05}");
        if number % 1_111 == 7 {
            bench.write(&file, tool_with(&name, "\"draft\": 7"));
            planted.push(file);
        } else {
            bench.write(&file, tool(&name));
        }
    }
    planted.sort();
    let run = bench.run(&["check", "--format", "json", "t"]).expect(1);
    let report = run.json();
    let found: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["file"].as_str().unwrap())
        .collect();
    assert_eq!(found, planted);
    assert_eq!((report["files"].as_u64(), report["summary"]["tools"].as_u64()), (Some(10_000), Some(10_000)));
    assert_eq!(bench.run(&["check", "--format", "json", "t"]).expect(1).out, run.out);
}
