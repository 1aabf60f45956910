//! Decodes the handler union.

use serde_json::{Map, Value};

use super::{list, object, text};
use crate::{
    Code, Finding, Pointer,
    arg_template::ArgTemplate,
    model::{
        Argument, ArgumentGroup, Body, CliHandler, CommandOutput, GrpcHandler, Handler, HttpHandler,
        McpHandler, NamedTemplate,
    },
};

/// The schema ensures that there is exactly one kind. A rejected handler becomes a command that runs nothing.
pub(super) fn body(declared: &Map<String, Value>, at: &Pointer, findings: &mut Vec<Finding>) -> Body {
    let of_kind = |kind: &str| object(declared, kind);
    let mut reader = HandlerReader { at: at.clone(), findings };
    Body::Handler(if let Some(http) = of_kind("http") {
        reader.at = at.key("http");
        Handler::Http(reader.http(http))
    } else if let Some(grpc) = of_kind("grpc") {
        reader.at = at.key("grpc");
        Handler::Grpc(reader.grpc(grpc))
    } else if let Some(mcp) = of_kind("mcp") {
        Handler::Mcp(HandlerReader::mcp(mcp))
    } else if of_kind("rust").is_some() {
        Handler::Rust
    } else {
        reader.at = at.key("cli");
        Handler::Cli(reader.cli(of_kind("cli").unwrap_or(&Map::new())))
    })
}

struct HandlerReader<'f> {
    at: Pointer,
    findings: &'f mut Vec<Finding>,
}

impl HandlerReader<'_> {
    fn cli(&mut self, declared: &Map<String, Value>) -> CliHandler {
        let at = self.at.key("args");
        let args = list(declared, "args")
            .iter()
            .enumerate()
            .map(|(index, written)| self.argument_group(written, &at.index(index)))
            .collect();
        CliHandler {
            command: text(declared, "command").unwrap_or_default().to_owned(),
            args,
            stdin: text(declared, "stdin").and_then(|written| self.template(written, self.at.key("stdin"))),
            cwd: text(declared, "cwd").map(str::to_owned),
            env: self.named(declared, "env"),
            timeout_ms: timeout(declared),
            child_processes: super::flag(declared, "childProcesses").unwrap_or(true),
            output: match declared.get("output") {
                Some(Value::String(kind)) if kind == "json" => CommandOutput::Json,
                Some(Value::String(kind)) if kind == "jsonl" => CommandOutput::JsonLines,
                Some(Value::Object(select)) => {
                    CommandOutput::Select(text(select, "select").unwrap_or_default().to_owned())
                }
                _ => CommandOutput::Text,
            },
        }
    }

    /// An unreadable entry becomes an empty argument, to keep the positions of the others.
    fn argument_group(&mut self, written: &Value, at: &Pointer) -> ArgumentGroup {
        let Value::Object(group) = written else { return ArgumentGroup::One(self.argument(written, at)) };
        let forms = ["value", "when", "each"].into_iter().filter(|key| group.contains_key(*key)).count();
        if forms != 1 {
            self.findings.push(Finding::new(
                Code::SpecInvariant,
                at.clone(),
                "an argument must be a string, an object with `value`, or `args` with `when` or `each`",
                "write `{when: param, args: [...]}`, `{each: param, args: [...]}` or `{value: \"{param}\"}`",
            ));
            return ArgumentGroup::One(Argument::default());
        }
        let args = |reader: &mut Self| {
            let at = at.key("args");
            list(group, "args")
                .iter()
                .enumerate()
                .map(|(index, one)| reader.argument(one, &at.index(index)))
                .collect()
        };
        if let Some(param) = text(group, "when") {
            ArgumentGroup::When { param: param.to_owned(), args: args(self) }
        } else if let Some(param) = text(group, "each") {
            ArgumentGroup::Each { param: param.to_owned(), args: args(self) }
        } else {
            ArgumentGroup::One(self.argument(written, at))
        }
    }

    fn argument(&mut self, written: &Value, at: &Pointer) -> Argument {
        let (template, may_be_option) = match written {
            Value::String(template) => (self.template(template, at.clone()), false),
            Value::Object(declared) => (
                text(declared, "value").and_then(|template| self.template(template, at.key("value"))),
                super::flag(declared, "allowOption").unwrap_or_default(),
            ),
            _ => (None, false),
        };
        Argument { template: template.unwrap_or_default(), may_be_option }
    }

    fn http(&mut self, declared: &Map<String, Value>) -> HttpHandler {
        HttpHandler {
            method: text(declared, "method").unwrap_or("GET").to_owned(),
            url: self.required_template(declared, "url"),
            query: self.named(declared, "query"),
            headers: self.named(declared, "headers"),
            body: declared.get("body").filter(|body| !body.is_null()).cloned(),
            timeout_ms: timeout(declared),
        }
    }

    fn grpc(&mut self, declared: &Map<String, Value>) -> GrpcHandler {
        let owned = |key: &str| text(declared, key).unwrap_or_default().to_owned();
        GrpcHandler {
            endpoint: owned("endpoint"),
            service: owned("service"),
            method: owned("method"),
            descriptor: text(declared, "descriptor").map(str::to_owned),
            message: declared.get("message").filter(|message| !message.is_null()).cloned(),
            metadata: self.named(declared, "metadata"),
            timeout_ms: timeout(declared),
        }
    }

    fn mcp(declared: &Map<String, Value>) -> McpHandler {
        let owned = |key: &str| text(declared, key).unwrap_or_default().to_owned();
        McpHandler {
            upstream: owned("upstream"),
            tool: owned("tool"),
            pin: owned("pin"),
            timeout_ms: timeout(declared),
        }
    }

    fn named(&mut self, declared: &Map<String, Value>, key: &str) -> Vec<NamedTemplate> {
        let at = self.at.key(key);
        let written = object(declared, key).into_iter().flatten();
        written
            .filter_map(|(name, value)| {
                let value = self.template(value.as_str()?, at.key(name))?;
                Some(NamedTemplate { name: name.clone(), value })
            })
            .collect()
    }

    fn required_template(&mut self, declared: &Map<String, Value>, key: &str) -> ArgTemplate {
        let at = self.at.key(key);
        text(declared, key).and_then(|written| self.template(written, at)).unwrap_or_default()
    }

    fn template(&mut self, written: &str, at: Pointer) -> Option<ArgTemplate> {
        match ArgTemplate::parse(written) {
            Ok(template) => Some(template),
            Err(why) => {
                self.findings.push(Finding::new(
                    Code::SpecInvariant,
                    at,
                    format!("not a template: {why}"),
                    "write `{name}` for a parameter or static variable",
                ));
                None
            }
        }
    }
}

fn timeout(declared: &Map<String, Value>) -> Option<u64> {
    declared.get("timeout").and_then(Value::as_u64)
}
