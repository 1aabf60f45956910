//! A configured server as a command that can be started in a jail.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use toolgate_config::{
    Config,
    model::{CallerIsolation, Upstream},
};
use toolgate_handlers::{
    CliHandlers, ServicePlan, UpstreamIsolation, UpstreamLimits, UpstreamServer, UpstreamTransport,
};
use toolgate_policy::{PolicySet, resolve};
use toolgate_spec::{Format, check};

use super::document::granted_paths;

/// The servers of the configuration. One that cannot be used says why, and does not keep the others from working.
pub fn servers(config: &Config, cli: &CliHandlers, policies: &PolicySet) -> Vec<UpstreamServer> {
    let server = |upstream: &Upstream| UpstreamServer {
        name: upstream.name.clone(),
        transport: match plan(upstream, config, cli, policies) {
            Ok(plan) => UpstreamTransport::Stdio(plan),
            Err(why) => UpstreamTransport::Unusable(why),
        },
        isolation: match upstream.isolation {
            CallerIsolation::Shared => UpstreamIsolation::Shared,
            CallerIsolation::Caller => UpstreamIsolation::PerCaller,
        },
        limits: UpstreamLimits {
            start: upstream.start_timeout,
            idle: upstream.idle_timeout,
            concurrent_calls: upstream.concurrent_calls as usize,
        },
        fingerprint: format!("{upstream:?}"),
    };
    config.upstreams.iter().map(server).collect()
}

fn plan(
    upstream: &Upstream,
    config: &Config,
    cli: &CliHandlers,
    policies: &PolicySet,
) -> Result<ServicePlan, String> {
    let base = config.file.as_deref().and_then(Path::parent).unwrap_or(&config.workspace);
    let manifest = manifest(upstream, &config.workspace, base)?.to_string();
    let mut file = check(manifest.as_bytes(), Format::Json);
    let tool = file.tools.pop().ok_or("its settings cannot be used")?;
    let Some(spec) = tool.spec else {
        let error = tool.findings.iter().find(|finding| finding.is_error());
        return Err(error.map_or_else(
            || "its settings cannot be used".to_owned(),
            |error| format!("{}; {}", error.message, error.remedy),
        ));
    };
    let policy = resolve(&spec, policies, None).map_err(|findings| {
        findings.first().map_or_else(|| "its policy cannot be resolved".to_owned(), |one| one.message.clone())
    })?;
    cli.service(&Arc::new(spec), &policy)
}

/// The server as a command without arguments, so a jail treats it like every other command.
fn manifest(upstream: &Upstream, workspace: &Path, base: &Path) -> Result<Value, String> {
    let mut line = command_line(&upstream.source)?.into_iter();
    let command = line.next().ok_or("`source` is empty")?;
    let args: Vec<String> =
        line.chain(upstream.args.iter().cloned()).map(|word| literal(&absolute(word, base))).collect();
    let (mut variables, mut env) = (Vec::new(), Map::new());
    for (index, assignment) in upstream.env.iter().enumerate() {
        let (name, value) = assignment.split_once('=').ok_or("`env` needs `NAME=VALUE`")?;
        let variable = format!("env{index}");
        env.insert(name.to_owned(), format!("{{{variable}}}").into());
        variables.push(json!({ variable: value }));
    }
    let paths = granted_paths(upstream, workspace).ok_or("a path is not UTF-8")?;
    let mut capability = Map::new();
    if !paths.is_empty() {
        capability.insert("execution".to_owned(), json!({ "allowedPaths": paths }));
    }
    if !upstream.hosts.is_empty() {
        let network = json!({ "access": "limited", "allowedHosts": upstream.hosts });
        capability.insert("network".to_owned(), network);
    }
    Ok(json!({
        "name": upstream.name,
        "description": "Runs an MCP server. Returns its messages.",
        "classification": if upstream.write.is_empty() { "read" } else { "write" },
        "staticVariables": variables,
        "handler": { "cli": { "command": command, "args": args, "env": env, "childProcesses": true } },
        "capability": capability,
    }))
}

/// The words of a command line, split like a POSIX shell does, without expanding anything.
fn command_line(source: &str) -> Result<Vec<String>, String> {
    if let Some((kind, _)) = source.split_once(':').filter(|(kind, _)| SOURCES.contains(kind)) {
        return Err(format!("sources of the kind `{kind}:` cannot be run yet; write a command line"));
    }
    let words = shlex::split(source).ok_or("`source` has an unclosed quote")?;
    match words.first() {
        Some(first) if Path::new(first).is_absolute() || !first.contains('/') => Ok(words),
        Some(first) => Err(format!("`{first}` is a relative path; write it from the root")),
        None => Err("`source` is empty".to_owned()),
    }
}

/// Makes the path of a file relative to the configuration absolute, because a server has another working directory.
fn absolute(word: String, base: &Path) -> String {
    let path = base.join(&word);
    if !word.starts_with('-') && path.is_file() { path.to_string_lossy().into_owned() } else { word }
}

/// Braces begin a template in documents; two of them are one brace.
fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

const SOURCES: [&str; 6] = ["npx", "uvx", "npm", "pypi", "http", "https"];
