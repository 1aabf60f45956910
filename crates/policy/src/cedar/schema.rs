//! The Cedar schema of all known tools, and the entities of one call.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression, Schema};
use serde_json::{Map, Value, json};

use super::{CedarTool, check::Inputs, kind::CedarRecord};
use crate::caller::Caller;

/// The schema: one action per tool, all in the group `call`, each with its own `context.input`.
pub(super) fn schema(inputs: &Inputs) -> Result<Schema, String> {
    let mut actions = Map::new();
    for (name, input) in inputs {
        actions.insert(name.clone(), action(input, &json!([{ "id": CALL }])));
    }
    // The group is a valid action too: policies about all tools must validate even without any tool. A tool named `call`
    // uses this action.
    let of_group = inputs.get(CALL).cloned().unwrap_or_default();
    actions.insert(CALL.to_owned(), action(&of_group, &json!([])));
    let text = || json!({ "type": "String" });
    let document = json!({ "": {
        "entityTypes": {
            CALLER: {
                "memberOfTypes": [PERMISSION],
                "shape": { "type": "Record", "attributes": { "subject": text() } },
            },
            PERMISSION: {},
            TOOL: { "shape": { "type": "Record", "attributes": {
                "name": text(),
                "category": text(),
                "classification": text(),
                "destructive": { "type": "Boolean" },
                "level": { "type": "Long" },
                "network": text(),
                "tags": { "type": "Set", "element": text() },
            } } },
        },
        "actions": actions,
    } });
    Schema::from_json_value(document).map_err(|error| error.to_string())
}

fn action(input: &CedarRecord, member_of: &Value) -> Value {
    json!({
        "memberOf": member_of,
        "appliesTo": {
            "principalTypes": [CALLER],
            "resourceTypes": [TOOL],
            "context": { "type": "Record", "attributes": { "input": input.to_schema() } },
        },
    })
}

/// Names of Cedar types. Parsed once.
#[derive(Debug)]
pub(super) struct Types {
    action: EntityTypeName,
    caller: EntityTypeName,
    permission: EntityTypeName,
    tool: EntityTypeName,
}

impl Types {
    pub fn new() -> Result<Self, String> {
        let name = |name: &str| name.parse::<EntityTypeName>().map_err(|error| error.to_string());
        Ok(Self {
            action: name("Action")?,
            caller: name(CALLER)?,
            permission: name(PERMISSION)?,
            tool: name(TOOL)?,
        })
    }

    pub fn action(&self, name: &str) -> EntityUid {
        uid(&self.action, name)
    }

    pub fn tool(&self, name: &str) -> EntityUid {
        uid(&self.tool, name)
    }

    pub fn caller(&self, caller: &Caller) -> EntityUid {
        uid(&self.caller, &caller.subject)
    }

    pub fn caller_entity(&self, caller: &Caller) -> Result<Entity, String> {
        let attributes =
            HashMap::from([("subject".to_owned(), RestrictedExpression::new_string(caller.subject.clone()))]);
        let groups = caller.permissions.iter().map(|name| uid(&self.permission, name)).collect();
        Entity::new(self.caller(caller), attributes, groups).map_err(|error| error.to_string())
    }

    /// Entities that are the same for all calls: the tool, its action, and the group of all actions.
    pub fn tool_entities(&self, tool: &CedarTool<'_>) -> Result<Entities, String> {
        let group = self.action(CALL);
        let mut entities = vec![self.tool_entity(tool)?, Entity::new_no_attrs(group.clone(), HashSet::new())];
        if tool.name != CALL {
            entities.push(Entity::new_no_attrs(self.action(tool.name), HashSet::from([group])));
        }
        Entities::from_entities(entities, None).map_err(|error| error.to_string())
    }

    fn tool_entity(&self, tool: &CedarTool<'_>) -> Result<Entity, String> {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let policy = tool.policy;
        let attributes = HashMap::from([
            ("name".to_owned(), text(tool.name)),
            ("category".to_owned(), text(tool.spec.category.as_deref().unwrap_or_default())),
            ("classification".to_owned(), text(policy.classification.value.name())),
            ("destructive".to_owned(), RestrictedExpression::new_bool(policy.destructive.value)),
            ("level".to_owned(), RestrictedExpression::new_long(tool.level as i64)),
            ("network".to_owned(), text(policy.network.mode.value.name())),
            ("tags".to_owned(), RestrictedExpression::new_set(tool.spec.tags.iter().map(|tag| text(tag)))),
        ]);
        Entity::new(self.tool(tool.name), attributes, HashSet::new()).map_err(|error| error.to_string())
    }
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// The group of all actions. It is also the action of a tool of this name.
pub(super) const CALL: &str = "call";

pub(super) const CALLER: &str = "Caller";
const PERMISSION: &str = "Permission";
pub(super) const TOOL: &str = "Tool";
