//! Loads a set of policies: parses them, checks them against the tools, and prepares them for calls.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

use cedar_policy::{Authorizer, PolicySet, ValidationError, ValidationMode, ValidationWarning, Validator};
use sha2::{Digest as _, Sha256};

use super::{
    CedarError, CedarPolicies, CedarRules, CedarTool, PreparedTool,
    check::{CheckedPolicy, Inputs, UsedArguments, check},
    kind::CedarRecord,
    listing,
    schema::{self, Types},
    source::{self, CedarRule, File, PolicyRole},
};

pub(super) fn load(
    sources: &[(String, String)],
    tools: &[CedarTool<'_>],
) -> Result<CedarPolicies, Vec<CedarError>> {
    let mut errors = Vec::new();
    let inputs = inputs(tools, &mut errors);
    let mut files = Vec::new();
    for (name, text) in sources {
        match source::read(name, text) {
            Ok(file) => files.push(file),
            Err(found) => errors.extend(found),
        }
    }
    same_ids(&files, &mut errors);
    let ours = |message| vec![CedarError::outside("schema", message)];
    let types = Types::new().map_err(ours)?;
    let schema = schema::schema(&inputs).map_err(ours)?;
    let validator = Validator::new(schema);
    let (mut checked, mut warnings) = (Vec::new(), Vec::new());
    for file in &files {
        let of_rules: Vec<CheckedPolicy> = file.rules.iter().map(|rule| check(file, rule, &inputs)).collect();
        validate(file, &of_rules, &validator, &inputs, &mut errors);
        for (rule, mut result) in file.rules.iter().zip(of_rules) {
            errors.append(&mut result.errors);
            warnings.append(&mut result.warnings);
            checked.push((rule, result));
        }
    }
    if !errors.is_empty() {
        errors.sort_by_cached_key(|error| {
            (error.file.clone(), error.position.map(|at| (at.line, at.column)), error.message.clone())
        });
        return Err(errors);
    }
    let tools = prepare(tools, inputs, &checked, &types).map_err(ours)?;
    Ok(CedarPolicies { authorizer: Authorizer::new(), types, tools, digest: digest(sources), warnings })
}

fn inputs(tools: &[CedarTool<'_>], errors: &mut Vec<CedarError>) -> Inputs {
    let mut inputs = Inputs::new();
    for tool in tools {
        let input = CedarRecord::of_input(tool.input_schema);
        if inputs.insert(tool.name.to_owned(), input).is_some() {
            let message = "another tool has the same name, so policies cannot distinguish them";
            errors.push(CedarError::outside(format!("tool `{}`", tool.name), message));
        }
    }
    inputs
}

/// Ids must be unique, because the journal names the deciding policy by id.
fn same_ids(files: &[File<'_>], errors: &mut Vec<CedarError>) {
    let mut seen = BTreeSet::new();
    for file in files {
        for rule in &file.rules {
            if !seen.insert(&rule.id) {
                let message = format!("duplicate policy id `{}`", rule.id);
                let error = CedarError::at(file.name, &file.lines, rule.start, message);
                errors.push(error.with_help(Some("give each its own `@id`".into())));
            }
        }
    }
}

fn validate(
    file: &File<'_>,
    checked: &[CheckedPolicy],
    validator: &Validator,
    inputs: &Inputs,
    errors: &mut Vec<CedarError>,
) {
    let result = validator.validate(&file.set, ValidationMode::Strict);
    let rule_of =
        |id: &cedar_policy::PolicyId| file.rules.iter().zip(checked).find(|(rule, _)| rule.given == *id);
    let mut found = Vec::new();
    let mut mistaken = HashSet::new();
    for error in result.validation_errors() {
        let (start, is_explained) = placed(rule_of(error.policy_id()));
        mistaken.insert(error.policy_id());
        // Already reported, with a better message.
        if !(is_explained && matches!(error, ValidationError::UnsafeAttributeAccess(_))) {
            found.push(CedarError::from_cedar(file.name, &file.lines, start, error));
        }
    }
    for warning in result.validation_warnings() {
        let (start, is_explained) = placed(rule_of(warning.policy_id()));
        let help = match warning {
            ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) => {
                // Without tools there is nothing that a rule about arguments could match; and once is enough.
                let counts = !is_explained && !inputs.is_empty() && mistaken.insert(warning.policy_id());
                counts.then_some("a policy that never applies is an error; correct or remove it")
            }
            ValidationWarning::BidiCharsInString(_) | ValidationWarning::BidiCharsInIdentifier(_) => {
                Some("remove them; they make a policy look like another")
            }
            _ => None,
        };
        if let Some(help) = help {
            let error = CedarError::from_cedar(file.name, &file.lines, start, warning);
            found.push(error.with_help(Some(help.to_owned())));
        }
    }
    // Cedar repeats it for every tool.
    for error in found {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
}

/// The start of the policy, and whether an error in it was already reported.
fn placed(rule: Option<(&CedarRule, &CheckedPolicy)>) -> (usize, bool) {
    rule.map_or((0, false), |(rule, checked)| (rule.start, !checked.errors.is_empty()))
}

fn prepare(
    tools: &[CedarTool<'_>],
    mut inputs: Inputs,
    checked: &[(&CedarRule, CheckedPolicy)],
    types: &Types,
) -> Result<BTreeMap<String, PreparedTool>, String> {
    let mut shared: HashMap<Vec<usize>, Arc<CedarRules>> = HashMap::new();
    let mut prepared = BTreeMap::new();
    for tool in tools {
        let about: Vec<usize> = checked
            .iter()
            .enumerate()
            .filter(|(_, (_, checked))| checked.tools.contains(tool.name))
            .map(|(index, _)| index)
            .collect();
        let of_tool = || about.iter().filter_map(|index| checked.get(*index));
        let mut watched = UsedArguments::These(BTreeSet::new());
        of_tool().for_each(|(_, checked)| watched.join(&checked.watched));
        let rules = match shared.get(&about) {
            Some(rules) => Arc::clone(rules),
            None => Arc::new(rules(of_tool().map(|(rule, _)| *rule))?),
        };
        shared.insert(about.clone(), Arc::clone(&rules));
        let entry = PreparedTool {
            action: types.action(tool.name),
            resource: types.tool(tool.name),
            entities: types.tool_entities(tool)?,
            input: inputs.remove(tool.name).unwrap_or_default(),
            watched,
            rules,
        };
        prepared.insert(tool.name.to_owned(), entry);
    }
    Ok(prepared)
}

fn rules<'r>(rules: impl Iterator<Item = &'r CedarRule>) -> Result<CedarRules, String> {
    let mut sets = CedarRules {
        firm: PolicySet::new(),
        approvals: PolicySet::new(),
        reasons: BTreeMap::new(),
        listing: PolicySet::new(),
    };
    for rule in rules {
        let set = match &rule.role {
            PolicyRole::Permit | PolicyRole::Forbid => {
                let listed = listing::without_arguments(&rule.syntax)?;
                sets.listing.add(listed).map_err(|error| error.to_string())?;
                &mut sets.firm
            }
            PolicyRole::Approval(why) => {
                sets.reasons.insert(rule.id.clone(), why.clone());
                &mut sets.approvals
            }
        };
        set.add(rule.policy.clone()).map_err(|error| error.to_string())?;
    }
    Ok(sets)
}

fn digest(sources: &[(String, String)]) -> String {
    let mut sources: Vec<&(String, String)> = sources.iter().collect();
    sources.sort();
    let mut hash = Sha256::new();
    for part in sources.into_iter().flat_map(|(name, text)| [name, text]) {
        // Hash the length first, so text cannot move between parts.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut digest = String::from("sha256:");
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
