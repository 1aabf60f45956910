//! Helper strings such as `safety.fs/v1` and `tool-safety-helpers/v1#crypto`.

/// `name/vN` with an optional `#group`; names are lower case with digits, dots and hyphens.
pub fn is_well_formed(helper: &str) -> bool {
    let (id, group) = helper.split_once('#').map_or((helper, None), |(id, group)| (id, Some(group)));
    let Some((name, version)) = id.split_once("/v") else { return false };
    let name_is_sound = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let version_is_sound =
        !version.is_empty() && version.len() <= 4 && version.bytes().all(|byte| byte.is_ascii_digit());
    let group_is_sound = group.is_none_or(|group| {
        !group.is_empty()
            && group.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    });
    name_is_sound && version_is_sound && group_is_sound
}

#[cfg(test)]
mod tests {
    use super::is_well_formed;

    #[test]
    fn only_both_helper_conventions_are_accepted() {
        for good in ["safety.fs/v1", "safety.http/v12", "tool-safety-helpers/v1#crypto"] {
            assert!(is_well_formed(good), "{good}");
        }
        for bad in [
            "",
            "safety.fs",
            "safety.fs/v",
            "safety.fs/1",
            "Safety/v1",
            "/v1",
            "a/v1#",
            "a/v1#B",
            "a/v1#b#c",
            "a/v99999",
            "a b/v1",
        ] {
            assert!(!is_well_formed(bad), "{bad}");
        }
    }
}
