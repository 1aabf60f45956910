//! The manual's examples are run, in their order, in one folder.

use crate::bench::Bench;

#[test]
fn every_example_of_the_manual_works() {
    let bench = Bench::new();
    let manual = include_str!("../../../../docs/cli.md");
    let mut ran = 0;
    for block in manual.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for example in block.split("$ toolgate ").skip(1) {
            let (line, expected) = example.split_once('\n').unwrap();
            let args: Vec<&str> = line.split_whitespace().collect();
            let run = bench.run(&args).expect(0);
            assert!(expected.is_empty() || run.out == expected, "{line}:\n{}", run.out);
            ran += 1;
        }
    }
    assert!(ran > 15, "{ran} examples");
}
