//! Calls in the same process leave no state for each other.

use serde_json::{Value, json};
use toolgate_sandbox::Isolation;

use crate::{
    gateway::{Gateway, NoSecrets, document},
    pool::returned,
};

/// In every pair, the first call stores data in all places that the script knows and finds it again. The second call finds
/// nothing, with the same or another tool and caller.
#[test]
fn no_state_survives_a_call() {
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
        // The test needs the same process.
        assert_eq!((first.worker, second.worker), (worker, worker), "pair {pair}");
        for report in [&first, &second] {
            let value = returned(report);
            assert_eq!(value["wrong"], json!([]), "pair {pair}, {first:?}, {second:?}");
            assert!(value["marks"].as_u64().unwrap() >= 50, "{value}");
        }
        assert_eq!((first.console.len(), second.console.len()), (1, 0), "pair {pair}");
    }
}

/// A different name makes another tool; workers cache loaded tools by code.
fn tool(name: &str) -> Value {
    let mut tool = document(&format!("{}// {name}", include_str!("leavings.js")));
    tool["params"] = json!([{
        "name": "leave", "description": "Whether to leave something.", "required": true,
        "type": "BOOLEAN", "testValue": "true",
    }]);
    tool
}
