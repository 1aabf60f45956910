//! Loading, and the promises of the public calls.

use super::*;

#[test]
fn the_shipped_rules_keep_to_their_examples() {
    let mut wrong = Vec::new();
    let mut loaded = Vec::new();
    for file in SHIPPED {
        match read(file) {
            Ok(rules) => loaded.extend(rules),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let examples: Vec<_> =
        loaded.iter().map(|one| (one.error("x"), one.hits.clone(), one.misses.clone())).collect();
    let looker = Looker::new(loaded.into_iter().map(|one| one.rule).collect());
    for (index, (error, hits, misses)) in examples.into_iter().enumerate() {
        if let Err(message) = check_examples(&looker, index, &hits, &misses) {
            wrong.push(format!("{error} {message}: {hits:?} {misses:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}
