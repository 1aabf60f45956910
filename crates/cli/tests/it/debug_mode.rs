//! `audit.debug` records full arguments, so it is reported at every log level.

use serde_json::json;

use crate::place::Place;

#[test]
fn debug_mode_is_reported_by_commands_and_records() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.ok(&["publish"]);
    assert!(place.journal("journal-commands").iter().all(|record| record.get("debug").is_none()));
    let said = |arguments: &[&str]| {
        let output = place.toolgate(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}");
        text
    };
    let all: [&[&str]; 4] = [&["test"], &["publish"], &["call", "say", "text=hi"], &["serve", "--stdio"]];
    for arguments in all {
        assert!(!said(arguments).contains("audit.debug"), "{arguments:?}: it is off");
    }
    let before = place.journal("journal-commands").len();
    for (format, line) in [("text", " error audit.debug is on"), ("json", "\"message\":\"audit.debug is on")]
    {
        place.configure(&format!("audit:\n  debug: true\nlog:\n  level: error\n  format: {format}\n"));
        for arguments in all {
            let told = said(arguments);
            assert_eq!(told.matches("audit.debug is on").count(), 1, "{arguments:?}: {told}");
        }
        let told = said(&["serve", "--stdio"]);
        assert!(told.contains(line), "as a line of the log: {told}");
    }
    let records = place.journal("journal-commands");
    let calls: Vec<_> = records.iter().skip(before).filter(|record| record.get("callId").is_some()).collect();
    assert!(!calls.is_empty());
    assert!(calls.iter().all(|record| record["debug"] == true), "{calls:?}");
}
