//! Checks gRPC handlers: a fixed endpoint and method, and a message that uses the declared arguments.

use super::{
    headers, http,
    report::ManifestReport,
    scope::TemplateScope,
    templates::{self, Absent, TemplateRules, Used, WholeValue},
    url,
};
use crate::{Pointer, model::GrpcHandler, path_pattern::PathPattern};

pub(super) fn check(
    grpc: &GrpcHandler,
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    let used = &mut Used::default();
    endpoint(grpc, at, scope, report);
    if !grpc.service.is_empty() && !grpc.service.split('.').all(is_proto_name) {
        report.add(
            &at.key("service"),
            format!("`{}` is not the full name of a service", grpc.service.escape_debug()),
            "write `package.v1.Service`",
        );
    }
    if !grpc.method.is_empty() && !is_proto_name(&grpc.method) {
        report.add(
            &at.key("method"),
            format!("`{}` is not a method", grpc.method.escape_debug()),
            "write its name alone, such as `GetCustomer`",
        );
    }
    if let Some(why) = grpc.descriptor.as_deref().and_then(bad_descriptor) {
        report.add(&at.key("descriptor"), why, "write a path below the tool's directory, or an absolute one");
    }
    metadata(grpc, &at.key("metadata"), scope, used, report);
    // Without `message`, the arguments are the message, so all of them are used.
    if let Some(message) = &grpc.message {
        templates::check_json(message, &at.key("message"), scope, used, report);
        used.report_unused(scope, report);
    }
}

fn endpoint(grpc: &GrpcHandler, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    if grpc.endpoint.is_empty() {
        return;
    }
    let endpoint_at = at.key("endpoint");
    let remedy = "write `https://customers.internal:8443`";
    match url::split(&grpc.endpoint) {
        Err(why) => report.add(&endpoint_at, why, remedy),
        Ok((_, after)) if !matches!(after, "" | "/") => {
            report.add(&endpoint_at, "an endpoint must not have a path; use `service` and `method`", remedy);
        }
        Ok((authority, _)) if authority.port.is_none() => {
            report.add(&endpoint_at, "the port is missing", remedy);
        }
        Ok((authority, _)) => {
            let secret = grpc.metadata.iter().any(|entry| templates::has_secret(&entry.value, scope))
                || grpc.message.as_ref().is_some_and(|message| http::json_has_secret(message, scope));
            if secret && authority.is_exposed() {
                report.add(&endpoint_at, "a secret would travel unencrypted", "use `https`");
            }
        }
    }
}

fn metadata(
    grpc: &GrpcHandler,
    at: &Pointer,
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
) {
    for entry in &grpc.metadata {
        let at = at.key(&entry.name);
        let is_key = !entry.name.is_empty()
            && entry.name.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-')
            });
        if !is_key {
            report.add_at_key(
                &at,
                format!("`{}` is not a metadata key", entry.name.escape_debug()),
                "use lower-case letters, digits, `_`, `.` and `-`",
            );
        } else if entry.name.starts_with("grpc-") || OURS.contains(&entry.name.as_str()) {
            report.add_at_key(&at, format!("`{}` is set by the gateway", entry.name), "remove it");
        }
        if !headers::is_one_line(&entry.value) {
            report.add(
                &at,
                "a metadata value must be one line of ASCII",
                "remove line breaks and control characters",
            );
        }
        let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Text, item_of: None };
        templates::check(&entry.value, &at, place, scope, used, report);
        headers::credentials(entry, &at, scope, report);
    }
}

fn is_proto_name(name: &str) -> bool {
    super::environment::is_name(name)
}

fn bad_descriptor(path: &str) -> Option<String> {
    let below = if path.starts_with(['/', '$', '~']) { path.to_owned() } else { format!("/{path}") };
    match PathPattern::parse(&below) {
        Err(why) => Some(why),
        Ok(_) if path.contains('*') => Some("a descriptor must be one file, without `*`".into()),
        Ok(_) => None,
    }
}

const OURS: [&str; 5] = ["connection", "content-type", "host", "te", "user-agent"];
