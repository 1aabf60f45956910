//! Validation of image names.

use std::fmt;

/// A valid name: `[registry[:port]/]path[:tag][@sha256:digest]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageName(String);

impl ImageName {
    pub fn parse(text: &str) -> Result<Self, String> {
        let reject = |why: &str| {
            Err(format!("image `{}`: {why}; write it like `localhost/tools/git:2.47`", text.escape_debug()))
        };
        if text.len() > MAX_BYTES {
            return reject("the name is too long");
        }
        let (named, digest) =
            text.split_once('@').map_or((text, None), |(named, digest)| (named, Some(digest)));
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return reject("the digest is not `sha256:` and 64 hexadecimal digits");
        }
        let (path, tag) = split_tag(named);
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return reject("the tag may only contain letters, digits, `_`, `.` and `-`");
        }
        // Podman reads `dir:/etc` as a transport and loads an image from there.
        if !path.contains('/') && TRANSPORTS.contains(&path) {
            return reject("this is an image transport, not an image name");
        }
        let mut parts = path.split('/');
        let first = parts.next().unwrap_or_default();
        let is_good = if path.contains('/') {
            (is_registry(first) || is_component(first)) && parts.all(is_component)
        } else {
            is_component(first)
        };
        if is_good { Ok(Self(text.to_owned())) } else { reject("not a valid image name") }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A colon before the last slash belongs to a registry's port.
fn split_tag(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (named, None),
    }
}

/// Lower case. Separators only between letters and digits, so no part can start with `-`.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let starts_and_ends =
        text.bytes().next().is_some_and(is_word) && text.bytes().next_back().is_some_and(is_word);
    starts_and_ends
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'_' | b'-'))
        && !text.contains("..")
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(is_label)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|_| is_digits(port)))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

const MAX_BYTES: usize = 400;
const TRANSPORTS: [&str; 11] = [
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_image_names_are_accepted() {
        let digest = format!("registry.example:5000/a/b@sha256:{}", "0f".repeat(32));
        let names =
            ["debian", "debian:12", "localhost/tools/git:2.47", "LOCAL.example:5000/a_b/c-d:V1.0_x", &digest];
        for name in names {
            assert_eq!(ImageName::parse(name).map(|name| name.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn invalid_image_names_are_rejected() {
        let long = "a".repeat(MAX_BYTES + 1);
        let names = [
            "",
            "-v",
            "--privileged",
            "a b",
            "a\n",
            "Debian",
            "/etc",
            "a//b",
            "a/",
            "../a",
            "a/..",
            "dir:x",
            "docker://a",
            "oci-archive:/etc/passwd",
            "a:",
            "a:-x",
            "a:b:c",
            "a@sha256:00",
            "a@",
            "a:70000/b",
            "a:/b",
            "a,b",
            "a=b",
            "ä",
            "-a/b",
            "a/-b",
            ".a",
            "a@sha512:00",
            "http://a/b",
            "a\0",
            &long,
        ];
        for name in names {
            let error = ImageName::parse(name).unwrap_err();
            assert!(error.contains("write it like") && !error.contains('\n'), "{name:?}: {error}");
        }
    }
}
