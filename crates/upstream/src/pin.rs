//! The pin of a reviewed tool: a digest over everything that a model or a person sees of it.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

use crate::ToolDefinition;

/// `toolpin1:` and the SHA-256 of the definition in RFC 8785 form. The tag changes if the covered fields change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pin(String);

impl Pin {
    pub fn of(tool: &ToolDefinition) -> Self {
        let covered = tool.to_json();
        // Canonicalisation fails only for numbers outside of IEEE 754, which parsed JSON does not have; plain JSON is
        // still a digest of the same content.
        let text =
            serde_json_canonicalizer::to_vec(&covered).unwrap_or_else(|_| covered.to_string().into_bytes());
        let mut pin = TAG.to_owned();
        for byte in Sha256::digest(&text) {
            // Writing to a `String` cannot fail.
            let _ = write!(pin, "{byte:02x}");
        }
        Self(pin)
    }

    /// Reads a stored pin. `None` if it has another version or form.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(TAG)?;
        (hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
            .then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

const TAG: &str = "toolpin1:";

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn definition() -> ToolDefinition {
        ToolDefinition {
            name: "echo".to_owned(),
            title: None,
            description: Some("Returns its text.".to_owned()),
            input_schema: object(json!({ "type": "object", "properties": { "text": { "type": "string" } } })),
            output_schema: None,
            annotations: None,
        }
    }

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn every_visible_field_changes_the_pin() {
        let before = definition();
        let pin = Pin::of(&before);
        let changes: [fn(&mut ToolDefinition); 6] = [
            |tool| tool.name.push('2'),
            |tool| tool.title = Some("Echo".to_owned()),
            |tool| tool.description = None,
            |tool| tool.input_schema = Map::new(),
            |tool| tool.output_schema = Some(Map::new()),
            |tool| tool.annotations = Some(Map::new()),
        ];
        for change in changes {
            let mut after = before.clone();
            change(&mut after);
            assert_ne!(Pin::of(&after), pin, "{after:?}");
        }
    }

    #[test]
    fn member_order_does_not_change_the_pin() {
        let mut other = definition();
        other.input_schema =
            object(json!({ "properties": { "text": { "type": "string" } }, "type": "object" }));
        assert_eq!(Pin::of(&other), Pin::of(&definition()));
    }

    #[test]
    fn stored_pins_are_read_back() {
        let pin = Pin::of(&definition());
        assert_eq!(Pin::parse(pin.as_str()), Some(pin));
        for wrong in ["", "toolpin1:", "toolpin0:00", "sha256:ab"] {
            assert_eq!(Pin::parse(wrong), None, "{wrong}");
        }
    }
}
