//! The gateway's environment contains its own secrets. Tools cannot get them.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

const SECRET: &str = "the secret that issuer and gateway share";
const ISSUER: &str = "auth:\n  jwt:\n    - {issuer: 'https://login.example/', audience: gate, algorithms: [HS256], key: {secret_env: LOGIN_WORD}}\n";

/// A tool that reads this variable and returns a token signed with it.
fn thief(variable: &str) -> Value {
    json!({
        "staticVariables": [{ "word": format!("${{{variable}}}") }],
        "code": "return [...word].map((c) => c.charCodeAt(0) + 1).join(' ')",
    })
}

fn signed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": "https://login.example/", "aud": "gate", "sub": "ann", "exp": now + 600 });
    encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
}

#[test]
fn tool_does_not_get_the_secret_for_caller_tokens() {
    let mut place = Place::new();
    place.set("LOGIN_WORD", SECRET);
    place.set("TOOLGATE_ANYTHING", SECRET);
    place.configure(ISSUER);
    place.write_tool("thief", &thief("LOGIN_WORD"));
    place.write_tool("other_thief", &thief("TOOLGATE_ANYTHING"));
    for (tool, variable) in [("thief", "LOGIN_WORD"), ("other_thief", "TOOLGATE_ANYTHING")] {
        let file = format!("tools/{tool}.json");
        for arguments in
            [vec!["publish", tool], vec!["test", &file], vec!["run", &file], vec!["call", tool, "text=hi"]]
        {
            let said = place.fails(&arguments, 1);
            if arguments[0] != "call" {
                assert!(
                    said.contains(&format!("`${{{variable}}}` is a variable of the gateway itself")),
                    "{said}"
                );
                assert!(said.contains("into another variable"), "it says what helps: {said}");
            }
        }
    }
    // The signed token works for its caller.
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&signed()), Vec::<String>::new());
    serving.stop();
}

#[test]
fn config_edit_that_claims_a_tools_variable_is_rejected() {
    let mut place = Place::new();
    place.set("LOGIN_WORD", SECRET);
    place.write_tool("say", &thief("LOGIN_WORD"));
    let said = place.ok(&["publish", "say"]);
    assert!(said.contains("takes      say: the secrets LOGIN_WORD\n"), "{said}");
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&own), ["say"]);
    place.configure(ISSUER);
    serving.wait_for("change rejected");
    serving.wait_for("`${LOGIN_WORD}` is a variable of the gateway itself");
    assert_eq!(serving.ask(Some(&signed()), "tools/list", json!({})).0, 401, "a tool knows the word");
    place.write_tool("say", &json!({}));
    serving.wait_for("reloaded: ");
    assert_eq!(serving.ask(Some(&signed()), "tools/list", json!({})).0, 200);
    serving.stop();
}

#[test]
fn draft_gets_no_variables_if_the_configuration_is_invalid() {
    let mut place = Place::new();
    place.set("LOGIN_WORD", SECRET);
    place.write_tool("say", &thief("LOGIN_WORD"));
    place.ok(&["run", "tools/say.json"]);
    place.configure("auth: [");
    for command in ["run", "test"] {
        let said = place.fails(&[command, "tools/say.json"], 1);
        assert!(said.contains("`${LOGIN_WORD}` may be") && said.contains("fix it first"), "{said}");
    }
    place.write_tool("say", &json!({}));
    place.ok(&["run", "tools/say.json"]);
    place.ok(&["test", "tools/say.json"]);
}

/// Without a known home directory, blocked paths below it could not be protected.
#[test]
fn gateway_without_home_serves_nothing() {
    for home in ["", "../home"] {
        let mut place = Place::new();
        place.set("HOME", home);
        for arguments in [["publish", "word_count"], ["run", "tools/word_count.json"]] {
            let said = place.fails(&arguments, 2);
            assert!(said.contains("home ") && said.contains("set `HOME`"), "{said}");
        }
    }
}
