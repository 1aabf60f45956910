//! Converts a value to the typed model. The schema has already reported invalid fields; here they take their default.
//! One broken field therefore does not hide problems in the others.

pub(crate) mod capability;
mod governance;
mod handler;

use serde_json::{Map, Value};

pub(crate) use governance::has_blocks;

use crate::{
    Code, Finding, Pointer,
    model::{
        ApprovalMode, Body, HumanInTheLoop, NetworkMode, Param, ParamType, SafetyCapabilities,
        SafetyCategory, SafetyRuntime, SandboxOverrides, StaticVariable, ToolId, ToolSafety, ToolSpec,
    },
    placeholder::{BadPlaceholder, Template},
};

pub(crate) fn tool(document: &Map<String, Value>, findings: &mut Vec<Finding>) -> ToolSpec {
    let name = text(document, "name").unwrap_or_default().to_owned();
    let root = Pointer::root();
    ToolSpec {
        id: text(document, "toolId").and_then(ToolId::given).unwrap_or_else(|| ToolId::of_name(&name)),
        description: text(document, "description").unwrap_or_default().to_owned(),
        category: text(document, "category").map(str::to_owned),
        tags: texts(document, "tags"),
        params: objects(document, "params").map(param).collect(),
        statics: statics(document, findings),
        body: match document.get("handler") {
            Some(Value::Object(declared)) => handler::body(declared, &root.key("handler"), findings),
            _ => Body::JavaScript { code: text(document, "code").unwrap_or_default().to_owned() },
        },
        overrides: object(document, "sandboxOverrides").map(overrides).unwrap_or_default(),
        claimed_safety: object(document, "toolSafety").map(safety),
        approval: object(document, "humanInTheLoop").map(approval).unwrap_or_default(),
        draft: flag(document, "draft"),
        created_ms: document.get("createTimestamp").and_then(Value::as_i64),
        updated_ms: document.get("updateTimestamp").and_then(Value::as_i64),
        governance: governance::governance(document, findings),
        is_builtin: false,
        name,
    }
}

fn param(declared: &Map<String, Value>) -> Param {
    Param {
        name: text(declared, "name").unwrap_or_default().to_owned(),
        description: text(declared, "description").unwrap_or_default().to_owned(),
        required: flag(declared, "required").unwrap_or(true),
        kind: text(declared, "type").and_then(ParamType::from_spec_name).unwrap_or(ParamType::String),
        test_value: match declared.get("testValue") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
        },
    }
}

fn statics(document: &Map<String, Value>, findings: &mut Vec<Finding>) -> Vec<StaticVariable> {
    let mut variables = Vec::new();
    for (index, entry) in objects(document, "staticVariables").enumerate() {
        for (name, value) in entry {
            let Some(written) = value.as_str() else { continue };
            match Template::parse(written) {
                Ok(value) => variables.push(StaticVariable { name: name.clone(), value }),
                Err(BadPlaceholder(piece)) => findings.push(Finding::new(
                    Code::SpecInvariant,
                    Pointer::new("/staticVariables").index(index).key(name),
                    format!("`{piece}` is not a placeholder"),
                    "write `${NAME}` with upper-case letters, digits and underscores, not beginning with a digit",
                )),
            }
        }
    }
    variables
}

fn overrides(declared: &Map<String, Value>) -> SandboxOverrides {
    SandboxOverrides {
        add_allow_classes: texts(declared, "addAllowClasses"),
        remove_allow_classes: texts(declared, "removeAllowClasses"),
        add_deny_classes: texts(declared, "addDenyClasses"),
        remove_deny_classes: texts(declared, "removeDenyClasses"),
        network_mode: text(declared, "networkMode").and_then(NetworkMode::from_name),
        hosts_allow: texts(declared, "hostsAllow"),
        file_read: flag(declared, "fileRead"),
        file_write: flag(declared, "fileWrite"),
        fs_base_path: text(declared, "fsBasePath").map(str::to_owned),
        destructive: flag(declared, "destructive").unwrap_or_default(),
    }
}

fn safety(declared: &Map<String, Value>) -> ToolSafety {
    let owned = |map: &Map<String, Value>, key: &str| text(map, key).map(str::to_owned);
    ToolSafety {
        version: owned(declared, "version"),
        runtime: object(declared, "runtime").map(|runtime| SafetyRuntime {
            id: owned(runtime, "id"),
            min_version: owned(runtime, "minVersion"),
            ecma_version: owned(runtime, "ecmaVersion"),
            java_interop: flag(runtime, "javaInterop"),
            helpers: texts(runtime, "helpers"),
            console: flag(runtime, "console"),
        }),
        category: object(declared, "category")
            .map(|category| SafetyCategory { source: owned(category, "source"), id: owned(category, "id") }),
        capabilities: object(declared, "capabilities").map(|capabilities| {
            let network = object(capabilities, "network");
            SafetyCapabilities {
                network_mode: network
                    .and_then(|network| text(network, "mode"))
                    .and_then(NetworkMode::from_name),
                network_hosts: network.map(|network| texts(network, "hosts")).unwrap_or_default(),
                file_read: flag(capabilities, "fileRead"),
                file_write: flag(capabilities, "fileWrite"),
                destructive: flag(capabilities, "destructive"),
            }
        }),
    }
}

fn approval(declared: &Map<String, Value>) -> HumanInTheLoop {
    let mode = match text(declared, "mode") {
        Some("REQUIRED") => ApprovalMode::Required,
        Some(_) => ApprovalMode::Disabled,
        None => ApprovalMode::Unstated,
    };
    HumanInTheLoop { mode, prompt_template: text(declared, "promptTemplate").map(str::to_owned) }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn flag(map: &Map<String, Value>, key: &str) -> Option<bool> {
    map.get(key).and_then(Value::as_bool)
}

fn object<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    map.get(key).and_then(Value::as_object)
}

fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts(map: &Map<String, Value>, key: &str) -> Vec<String> {
    list(map, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn objects<'a>(map: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    list(map, key).iter().filter_map(Value::as_object)
}
