use super::*;
use crate::testing;

const DOCUMENT: &str = "staticVariables: [{key: '${API_KEY}'}, {greeting: 'hi ${NAME}, ${API_KEY}'}]";

/// The inputs of the state: draft flag, last test run, environment.
#[derive(Clone, Copy)]
struct LifecycleInputs {
    draft: Option<bool>,
    run: Option<PassRun>,
    env: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy)]
struct PassRun {
    document: &'static str,
    policy: &'static str,
    error: Option<&'static str>,
}

const PASSED: PassRun = PassRun { document: "d1", policy: "p1", error: None };
const FAILED: PassRun = PassRun { error: Some("boom"), ..PASSED };
const COMPLETE: &[(&str, &str)] = &[("API_KEY", "k"), ("NAME", "n")];

#[track_caller]
fn check(known: LifecycleInputs, expect: &str) {
    let mut spec = testing::spec(&testing::js(DOCUMENT));
    spec.draft = known.draft;
    let record = known.run.map(|run| PassRecord {
        document_digest: run.document.to_owned(),
        policy_digest: run.policy.to_owned(),
        outcome: run
            .error
            .map_or(PassOutcome::Passed, |error| PassOutcome::Failed { error: error.to_owned() }),
    });
    let env =
        |name: &str| known.env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let current = Digests { document: "d1", policy: "p1" };
    let Lifecycle { state, missing, error, because } = state(&spec, current, record.as_ref(), &env);
    let details = error.unwrap_or_else(|| missing.join(" "));
    assert_eq!(format!("{} [{details}] {because}", state.name()), expect);
    assert_eq!(state.is_exposed(), state == LifecycleState::Active);
}

#[test]
fn new_or_imported_document_is_a_draft() {
    let new = LifecycleInputs { draft: None, run: None, env: COMPLETE };
    check(new, "DRAFT [] no test run for this document has passed");
    check(LifecycleInputs { draft: Some(false), ..new }, "DRAFT [] no test run for this document has passed");
    check(LifecycleInputs { draft: Some(true), ..new }, "DRAFT [] the document says that it is a draft");
}

#[test]
fn draft_to_active_and_back() {
    let passed = LifecycleInputs { draft: Some(false), run: Some(PASSED), env: COMPLETE };
    check(passed, "ACTIVE [] passed, and nothing is missing");
    check(LifecycleInputs { draft: None, ..passed }, "ACTIVE [] passed, and nothing is missing");
    check(LifecycleInputs { draft: Some(true), ..passed }, "DRAFT [] the document says that it is a draft");
}

#[test]
fn edit_or_policy_change_requires_a_new_pass() {
    let passed = LifecycleInputs { draft: Some(false), run: Some(PASSED), env: COMPLETE };
    let edited = PassRun { document: "d0", ..PASSED };
    check(
        LifecycleInputs { run: Some(edited), ..passed },
        "DRAFT [] no test run for this document has passed",
    );
    let elsewhere = PassRun { policy: "p0", ..PASSED };
    check(
        LifecycleInputs { run: Some(elsewhere), ..passed },
        "DRAFT [] the policy has changed since the last test run",
    );
}

#[test]
fn draft_to_test_failed_and_back() {
    let failed = LifecycleInputs { draft: Some(true), run: Some(FAILED), env: COMPLETE };
    check(failed, "TEST_FAILED [boom] the last test run failed");
    check(LifecycleInputs { draft: Some(false), ..failed }, "TEST_FAILED [boom] the last test run failed");
    check(
        LifecycleInputs { draft: Some(false), env: &[], ..failed },
        "TEST_FAILED [boom] the last test run failed",
    );
    let edited = PassRun { document: "d0", ..FAILED };
    check(LifecycleInputs { run: Some(edited), ..failed }, "DRAFT [] the document says that it is a draft");
    let elsewhere =
        LifecycleInputs { draft: None, run: Some(PassRun { policy: "p0", ..FAILED }), env: COMPLETE };
    check(elsewhere, "DRAFT [] the policy has changed since the last test run");
}

#[test]
fn missing_requirements_to_active_draft_and_from_active() {
    let passed = LifecycleInputs { draft: Some(false), run: Some(PASSED), env: &[] };
    let because = "values that it needs are not set";
    check(passed, &format!("MISSING_REQUIREMENTS [API_KEY NAME] {because}"));
    check(
        LifecycleInputs { env: &[("API_KEY", ""), ("NAME", " \t\n")], ..passed },
        &format!("MISSING_REQUIREMENTS [API_KEY NAME] {because}"),
    );
    check(
        LifecycleInputs { env: &[("API_KEY", "k")], ..passed },
        &format!("MISSING_REQUIREMENTS [NAME] {because}"),
    );
    check(LifecycleInputs { env: COMPLETE, ..passed }, "ACTIVE [] passed, and nothing is missing");
    check(LifecycleInputs { draft: Some(true), ..passed }, "DRAFT [] the document says that it is a draft");
}
