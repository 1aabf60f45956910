use serde_json::json;

use super::*;

fn rejected(message: &Value) -> Rejection {
    read(message.to_string().as_bytes(), MethodSet::All).expect_err(&message.to_string())
}

/// The whole table is in the crate's tests; here are the parts that they cannot see.
#[test]
fn rejection_of_a_notification_is_silent_over_a_pipe_only() {
    let wrong = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []});
    let rejection = rejected(&wrong);
    assert!(rejection.clone().over_pipe().is_none());
    assert_eq!(rejection.over_http(StatusCode::BAD_REQUEST).status(), 400);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []});
    assert!(rejected(&request).over_pipe().is_some());
    let nothing = json!({"jsonrpc": "2.0"});
    assert!(rejected(&nothing).over_pipe().is_some(), "it may have been meant as a request");
}

#[test]
fn rejection_says_what_is_wrong_in_a_few_words() {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": "y"}});
    let rejection = rejected(&call);
    assert_eq!(rejection.door_code(), DoorCode::ParamsInvalid);
    assert!(rejection.detail().contains("params of `tools/call`"), "{rejection:?}");
    assert!(rejection.detail().contains("expected a map"), "{rejection:?}");
    let long = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": "y".repeat(10_000)}});
    assert!(rejected(&long).detail().chars().count() <= LONGEST_REASON);
}

/// Whatever is accepted here is read by the SDK from the same bytes over HTTP.
#[test]
fn accepted_messages_are_read_by_the_sdk_from_their_bytes() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":12345678901234567890,"f":1.5e3}}}"#,
        r#"{"id":"a","params":{"_meta":{"progressToken":1}},"method":"tools/list","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":null}"#,
        r#"{"jsonrpc":"2.0","method":"$/other","params":null}"#,
    ] {
        let ours = read(message.as_bytes(), MethodSet::All).expect(message);
        let theirs: ClientJsonRpcMessage = serde_json::from_str(message).expect(message);
        assert_eq!(serde_json::to_value(ours).unwrap(), serde_json::to_value(theirs).unwrap());
    }
}

#[test]
fn methods_of_sessions_are_unknown_to_stateless_clients() {
    for method in ["initialize", "logging/setLevel"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string();
        assert!(read(message.as_bytes(), MethodSet::All).is_err(), "{method} without params");
        assert!(read(message.as_bytes(), MethodSet::Stateless).is_ok(), "{method} is for the SDK to refuse");
    }
}
