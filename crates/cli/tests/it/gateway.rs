//! A minimal gateway for tests: the real pool, the real worker, one workspace.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolgate_egress::{Egress, EgressLimits, Listeners, SystemResolver, TlsRoots};
use toolgate_gate::RunReport;
use toolgate_handlers::{CallGrants, JsRunner, JsTool, Places};
use toolgate_policy::{PolicySet, SecretConsumer, SecretSource};
use toolgate_sandbox::{Isolation, JailKind, Namespaces, OnEnd, Pool, PoolConfig, WorkerEnd};
use toolgate_secrets::Detector;
use toolgate_spec::{Format, model::ToolSpec};
use zeroize::Zeroizing;

pub struct Gateway {
    pub runtime: Runtime,
    pub pool: Pool,
    pub runner: JsRunner,
    pub ground: TempDir,
}

impl Gateway {
    pub fn new() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut PoolConfig)) -> Self {
        Self::watched(change, Arc::new(|_: &WorkerEnd| ()))
    }

    /// With a callback for every worker that ends.
    pub fn watched(change: impl FnOnce(&mut PoolConfig), on_end: OnEnd) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut config = config();
        change(&mut config);
        let guard = runtime.enter();
        let pool = Pool::watched(config, on_end).unwrap();
        let resolver = SystemResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        let roots = TlsRoots::Pem(CERTIFICATE.as_bytes().to_vec());
        let egress =
            Egress::new(Arc::new(resolver), &roots, EgressLimits::default(), Listeners::of_this_process())
                .unwrap();
        drop(guard);
        Self {
            runner: JsRunner::new(pool.clone(), Some(egress), Detector::shipped().unwrap()),
            runtime,
            pool,
            ground: ground(),
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.ground.path().join("ws")
    }

    pub fn tool(&self, document: &Value) -> JsTool {
        Self::tool_at(document, &self.workspace())
    }

    pub fn tool_at(document: &Value, workspace: &Path) -> JsTool {
        let spec = spec(document);
        let policy = toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), None).unwrap();
        let (state, home) = (workspace.join("../state"), workspace.join("../home"));
        let places = Places { workspace: workspace.to_owned(), home, state, guarded: Vec::new() };
        JsTool::new(Arc::new(spec), &policy, &places).unwrap()
    }

    pub fn run(&self, tool: &JsTool, arguments: &Value, secrets: &dyn SecretSource) -> RunReport {
        self.run_as("tester", tool, arguments, secrets)
    }

    pub fn run_as(
        &self,
        caller: &str,
        tool: &JsTool,
        arguments: &Value,
        secrets: &dyn SecretSource,
    ) -> RunReport {
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        self.runtime.block_on(self.runner.run(tool, &arguments, &CallGrants::default(), secrets, caller))
    }

    /// Runs a body without grants.
    pub fn body(&self, code: &str) -> RunReport {
        self.run(&self.tool(&document(code)), &json!({}), &NoSecrets)
    }

    #[track_caller]
    pub fn still_serves(&self) {
        let tool = self.tool(&json!({
            "name": "sum", "description": "Adds.", "codeType": "Javascript", "code": "return a + b",
            "params": [
                { "name": "a", "description": "one", "required": true, "type": "INTEGER", "testValue": "1" },
                { "name": "b", "description": "two", "required": true, "type": "INTEGER", "testValue": "2" },
            ],
        }));
        let report = self.run(&tool, &json!({ "a": 20, "b": 22 }), &NoSecrets);
        assert_eq!(report.outcome.unwrap(), Some(json!(42)));
    }
}

pub fn config() -> PoolConfig {
    PoolConfig {
        program: PathBuf::from(env!("CARGO_BIN_EXE_toolgate")),
        workers: 8,
        processors: 2,
        spares: 1,
        waiting: 100,
        recycle_after: 1_000,
        isolation: Isolation::Shared,
        required: JailKind::Worker.minimum(),
        namespaces: Namespaces::Enter,
        cpu_seconds: 3_600,
    }
}

pub fn document(code: &str) -> Value {
    json!({ "name": "tried", "description": "A tool under test.", "codeType": "Javascript", "params": [], "code": code })
}

pub fn spec(document: &Value) -> ToolSpec {
    let checked = toolgate_spec::check(document.to_string().as_bytes(), Format::Json);
    let tool = checked.tools.into_iter().next().unwrap();
    let findings = format!("{:?}", tool.findings);
    tool.spec.unwrap_or_else(|| panic!("the document has errors: {findings}"))
}

pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret(&self, _name: &str, _consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>> {
        None
    }
}

pub struct Secret(pub String, pub String);

impl SecretSource for Secret {
    fn secret(&self, name: &str, _consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>> {
        (name == self.0).then(|| Zeroizing::new(self.1.clone()))
    }
}

/// A workspace and files outside it.
pub fn ground() -> TempDir {
    let ground = tempfile::tempdir().unwrap();
    let (ws, outside) = (ground.path().join("ws"), ground.path().join("outside"));
    fs::create_dir_all(ws.join("sub")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(ws.join("notes.txt"), "hello\nworld\n").unwrap();
    fs::write(ws.join("sub/a.txt"), "a\n").unwrap();
    fs::write(outside.join("secret.txt"), "CANARY-OUTSIDE").unwrap();
    symlink("../outside/secret.txt", ws.join("link-out")).unwrap();
    symlink("../outside", ws.join("dir-out")).unwrap();
    symlink(outside.join("secret.txt"), ws.join("abs-out")).unwrap();
    symlink("loop", ws.join("loop")).unwrap();
    ground
}

/// A self-signed root certificate that signed no server.
const CERTIFICATE: &str = include_str!("../../../../tests/data/nobody.pem");
