//! What a call leaves behind is not there for the next one, though both run in the same process.

use serde_json::{Value, json};
use toolgate_sandbox::Isolation;

use crate::{
    gateway::{Gateway, NoSecrets, document},
    pool::returned,
};

/// In every pair the first call leaves something in every place that the script names, and finds all of it itself; the
/// second finds nothing, whether it is the same tool or another, the same caller or another.
#[test]
fn nothing_survives_a_call() {
    let gateway = Gateway::with(|config| {
        config.isolation = Isolation::Shared;
        config.workers = 1;
        config.spares = 0;
        config.recycle_after = u32::MAX;
    });
    let tools = [gateway.tool(&tool("one")), gateway.tool(&tool("another"))];
    let callers = ["ann", "bob"];
    let worker = gateway.body("return 1").worker;
    assert!(worker.is_some());
    for pair in 0..10_000_usize {
        let bit = |place: usize| (pair >> place) & 1;
        let run = |tool: usize, caller: usize, leave: bool| {
            gateway.run_as(callers[caller], &tools[tool], &json!({ "leave": leave }), &NoSecrets)
        };
        let (first, second) = (run(bit(0), bit(1), true), run(bit(2), bit(3), false));
        // In another process there would be nothing to find.
        assert_eq!((first.worker, second.worker), (worker, worker), "pair {pair}");
        for report in [&first, &second] {
            let value = returned(report);
            assert_eq!(value["wrong"], json!([]), "pair {pair}, {first:?}, {second:?}");
            assert!(value["marks"].as_u64().unwrap() >= 50, "{value}");
        }
        assert_eq!((first.console.len(), second.console.len()), (1, 0), "pair {pair}");
    }
}

/// The name makes it another tool: a worker keeps what it has loaded by its code.
fn tool(name: &str) -> Value {
    let mut tool = document(&format!("{}// {name}", include_str!("leavings.js")));
    tool["params"] = json!([{
        "name": "leave", "description": "Whether to leave something.", "required": true,
        "type": "BOOLEAN", "testValue": "true",
    }]);
    tool
}
