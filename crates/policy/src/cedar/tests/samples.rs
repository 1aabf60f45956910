use super::*;

#[track_caller]
fn check(sample: &str, permissions: &[&str], expect: [Verdict; 3]) {
    let caller = Caller::new("alice", permissions.iter().copied());
    let set = loaded(sample);
    let verdicts = ["read_file", "write_file", "wipe_disk"]
        .map(|tool| set.decide(&caller, tool, &map(json!({"path": "x", "content": ""}))).verdict);
    assert_eq!(verdicts, expect, "{permissions:?}");
}

const READ_ONLY: &str = include_str!("../../../../../profiles/cedar/read-only.cedar");
const APPROVE_WRITES: &str = include_str!("../../../../../profiles/cedar/approve-writes.cedar");
const BY_PERMISSION: &str = include_str!("../../../../../profiles/cedar/by-permission.cedar");
const GUIDE: &str = include_str!("../../../../../docs/cedar.md");

#[test]
fn sample_policies_work_as_documented() {
    use Verdict::{Ask, Forbid, Permit};
    check(READ_ONLY, &[], [Permit, Forbid, Forbid]);
    check(APPROVE_WRITES, &[], [Permit, Ask, Forbid]);
    check(APPROVE_WRITES, &["allow_destructive"], [Permit, Ask, Ask]);
    check(BY_PERMISSION, &[], [Forbid, Forbid, Forbid]);
    check(BY_PERMISSION, &["tools.read"], [Permit, Forbid, Forbid]);
    check(BY_PERMISSION, &["tools.write"], [Permit, Forbid, Forbid]);
    check(BY_PERMISSION, &["tools.write", "tools.operate"], [Permit, Permit, Forbid]);
}

/// Every example of the guide loads, except those marked as mistakes.
#[test]
fn examples_of_the_guide_are_valid() {
    let mut counted = (0, 0);
    for block in GUIDE.split("```cedar").skip(1) {
        let (head, rest) = block.split_once('\n').unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let result = load_for(&tools(), example);
        match (head.trim(), result) {
            ("", Ok(_)) => counted.0 += 1,
            ("mistake", Err(errors)) => {
                // The guide shows the actual message next.
                assert!(
                    GUIDE.contains(&format!("{example}```\n\n```text\n{}```", shown(&errors))),
                    "{}",
                    shown(&errors)
                );
                counted.1 += 1;
            }
            (head, Ok(_)) => panic!("`{head}` example loads:\n{example}"),
            (head, Err(errors)) => panic!("`{head}` example does not load:\n{}{example}", shown(&errors)),
        }
    }
    assert!(counted.0 >= 5 && counted.1 >= 1, "{counted:?}");
}
