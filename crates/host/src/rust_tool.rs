//! Tools that are async functions of the embedding program. Their schemas come from their types.

use std::{error::Error, fmt, future::Future, sync::Arc};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use toolgate_gate::Reason;
use toolgate_handlers::RustFunction;
use toolgate_spec::{ToolCheck, check_in_code, model::Classification};

/// A tool that is an async function. Its schemas come from the input and output types. The same checks, Local Pass, stages and
/// journal apply as for a document.
///
/// The function runs in this process, without a sandbox. Nothing enforces its classification and capability: the author declares
/// them, and they determine its rating, listing and approvals.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use toolgate::{Classification, RustTool, json};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Input { text: String }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Output { words: usize }
///
/// RustTool::new("word_count", |input: Input| async move {
///     Ok(Output { words: input.text.split_whitespace().count() })
/// })
///     .description("Counts the words of a text. Returns their number.")
///     .classification(Classification::Read)
///     .test_value(json!({ "text": "to be" }));
/// ```
#[derive(Clone, Debug)]
pub struct RustTool {
    document: Map<String, Value>,
    function: RustFunction,
}

/// The error of a tool; the caller sees its message. The operator `?` converts any error into it.
#[derive(Debug)]
pub struct ToolError(String);

impl ToolError {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Like `anyhow::Error`, this type does not implement `Error`; otherwise this conversion would overlap with itself.
impl<E: Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RustTool {
    pub fn new<I, O, F, R>(name: impl Into<String>, function: F) -> Self
    where
        I: DeserializeOwned + JsonSchema,
        O: Serialize + JsonSchema,
        F: Fn(I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let (output, shape) = result_schema(schema_of::<O>());
        let document = Map::from_iter([
            ("name".to_owned(), Value::from(name.into())),
            ("input".to_owned(), closed(schema_of::<I>())),
            ("output".to_owned(), output),
        ]);
        Self { document, function: called_with_json(function, shape) }
    }

    /// Describes what the tool does and returns, for models and people.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", text.into())
    }

    /// The kind of effect that a call has. Required.
    #[must_use]
    pub fn classification(self, class: Classification) -> Self {
        self.with("classification", class.name())
    }

    /// The arguments of the test run before publishing.
    #[must_use]
    pub fn test_value(self, arguments: Value) -> Self {
        self.with("testInput", arguments)
    }

    /// The `capability` of a manifest: network, files, approval, timeout.
    #[must_use]
    pub fn capability(self, capability: Value) -> Self {
        self.with("capability", capability)
    }

    /// Any other field of a manifest, such as `permissions`, `touches` or `outputPolicy`.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.document.insert(field.to_owned(), value.into());
        self
    }

    pub fn name(&self) -> &str {
        self.document.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) const fn function(&self) -> &RustFunction {
        &self.function
    }

    /// Checks its document like one from a file.
    pub(crate) fn check(&self) -> ToolCheck {
        check_in_code(self.document.clone())
    }
}

/// How a result is returned.
#[derive(Clone, Copy)]
enum FunctionResultShape {
    AsIs,
    /// In the member `result`, as for commands, because MCP results are objects.
    Wrapped,
}

fn result_schema(schema: Value) -> (Value, FunctionResultShape) {
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        return (schema, FunctionResultShape::AsIs);
    }
    let wrapped = json!({ "type": "object", "required": ["result"], "properties": { "result": schema } });
    (wrapped, FunctionResultShape::Wrapped)
}

fn called_with_json<I, O, F, R>(function: F, shape: FunctionResultShape) -> RustFunction
where
    I: DeserializeOwned,
    O: Serialize,
    F: Fn(I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    let function = Arc::new(function);
    RustFunction::new(move |arguments| {
        let begun = serde_json::from_value::<I>(arguments).map(|input| function(input));
        async move {
            let running = begun.map_err(|error| {
                let message = format!("the arguments match the schema but not the function's type: {error}");
                RustFunction::failure(Reason::ToolFailed, message)
            })?;
            let output = running.await.map_err(|error| RustFunction::failure(Reason::ToolFailed, error.0))?;
            let value = serde_json::to_value(output).map_err(|error| {
                RustFunction::failure(
                    Reason::NotData,
                    format!("the result cannot be written as JSON: {error}"),
                )
            })?;
            Ok(match shape {
                FunctionResultShape::AsIs => value,
                FunctionResultShape::Wrapped => json!({ "result": value }),
            })
        }
    })
}

/// The schema of a type, without references. All wire formats accept this form.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Rejects unknown arguments, unless the type allows them.
fn closed(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.entry("additionalProperties").or_insert_with(|| json!(false));
        members.remove("title");
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use toolgate_policy::{PolicySet, RiskLevel, rate, resolve};
    use toolgate_spec::model::SandboxKind;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct CountInput {
        /// The text.
        text: String,
        #[serde(default)]
        most: Option<u32>,
    }

    #[derive(Serialize, JsonSchema)]
    struct CountOutput {
        words: usize,
    }

    fn tool() -> RustTool {
        RustTool::new("word_count", |input: CountInput| async move {
            let most = usize::try_from(input.most.unwrap_or(u32::MAX))?;
            Ok(CountOutput { words: input.text.split_whitespace().take(most).count() })
        })
        .description("Counts the words of a text. Returns their number.")
        .classification(Classification::Read)
        .test_value(json!({ "text": "to be" }))
    }

    #[test]
    fn schemas_come_from_the_types_and_the_document_is_valid() {
        let check = tool().check();
        let spec = check.spec.unwrap_or_else(|| panic!("{:?}", check.findings));
        let input = spec.governance.input.unwrap();
        assert_eq!(input["required"], json!(["text"]));
        assert_eq!(input["properties"]["text"], json!({ "type": "string", "description": "The text." }));
        assert_eq!(input["additionalProperties"], json!(false));
        assert_eq!(spec.governance.output.unwrap()["required"], json!(["words"]));
    }

    /// Rating and policy claim no sandbox, and the operator sees why the level is not L0.
    #[test]
    fn rating_reports_the_missing_sandbox() {
        let spec = tool().check().spec.unwrap();
        let set = PolicySet::shipped().unwrap();
        let policy = resolve(&spec, &set, None).unwrap();
        assert_eq!(policy.execution.sandbox.value, SandboxKind::None);
        assert!(!policy.labels.accepts_untrusted.value, "it can reach anything");
        let risk = rate(&policy, &spec, &set);
        assert_eq!(risk.because.iter().map(|reason| reason.code).collect::<Vec<_>>(), ["in-process"]);
        assert_eq!(risk.level, RiskLevel::L3);
    }

    #[test]
    fn rules_for_documents_apply() {
        let unclassified =
            RustTool::new("x", |_: CountInput| async move { Ok(1) }).description("Returns one.");
        assert!(unclassified.check().spec.is_none());
    }
}
