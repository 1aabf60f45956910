//! The same engine compiled natively, in this process: no isolation, a fresh runtime per call.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rquickjs::{
    CatchResultExt, Context, Ctx, Function, Module, Object, Promise, Runtime, Value, WriteOptions,
    function::{Opt, Rest},
    loader::bundle::{Bundle, ScaBundleData},
};
use toolgate_engine::Op;

use crate::{
    variant::{EngineVariant, VariantKind, rate_of_two_threads},
    work::{ANSWER, BenchBody, HostAccess},
};

/// The prelude as bytecode: a module whose default export is the function that installs it.
type Prelude = Bundle<ScaBundleData<&'static [u8]>>;

pub struct Native {
    prelude: Option<Prelude>,
}

impl Native {
    pub fn bare() -> Self {
        Self { prelude: None }
    }

    /// Compiled once; each call loads the bytecode.
    pub fn with_prelude() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let context = Context::full(&runtime).expect("a context");
        let bytecode = context.with(|ctx| {
            let source = format!("export default {}", prelude_source());
            let written = Module::declare(ctx.clone(), PRELUDE, source)
                .and_then(|module| module.write(WriteOptions::default()));
            written.catch(&ctx).map_err(|error| error.to_string()).expect("the prelude compiles")
        });
        let modules: &'static [(&'static str, &'static [u8])] =
            Box::leak(Box::new([(PRELUDE, &*bytecode.leak())]));
        Self { prelude: Some(Bundle(modules)) }
    }
}

impl EngineVariant for Native {
    fn kind(&self) -> VariantKind {
        if self.prelude.is_some() { VariantKind::NativePrelude } else { VariantKind::NativeBare }
    }

    fn call(&mut self, work: &BenchBody) -> (Duration, String) {
        let begin = Instant::now();
        let value = fresh_call(work, self.prelude, read_text);
        (begin.elapsed(), value)
    }

    fn rate(&mut self, work: &BenchBody, span: Duration) -> f64 {
        let prelude = self.prelude;
        rate_of_two_threads(span, || move || work.check(&fresh_call(work, prelude, read_text)))
    }
}

/// Creates a runtime and a context, makes one call and frees everything.
pub fn fresh_call(work: &BenchBody, prelude: Option<Prelude>, read_text: fn(String) -> String) -> String {
    let runtime = Runtime::new().expect("a runtime");
    runtime.set_memory_limit(64 << 20);
    runtime.set_max_stack_size(512 << 10);
    let begin = Instant::now();
    runtime.set_interrupt_handler(Some(Box::new(move || begin.elapsed() > PATIENCE)));
    if let Some(prelude) = prelude {
        runtime.set_loader(prelude, prelude);
    }
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let installed = match prelude {
            Some(_) => install_prelude(&ctx, work.host, read_text),
            None => install_bare(&ctx, work.host, read_text),
        };
        let value = installed.and_then(|()| invoke(&ctx, work));
        value.catch(&ctx).map_err(|error| error.to_string()).expect("the body returns")
    })
}

fn invoke(ctx: &Ctx<'_>, work: &BenchBody) -> rquickjs::Result<String> {
    let function: Function = ctx.eval(work.source.as_str())?;
    let arguments: Object = ctx.json_parse(work.arguments.as_str())?.get()?;
    let values: Vec<Value> = work.names.iter().map(|name| arguments.get(*name)).collect::<Result<_, _>>()?;
    let promise: Promise = function.call((Rest(values),))?;
    let value: Value = promise.finish()?;
    ctx.json_stringify(value)?.expect("the body returns data").to_string()
}

fn install_bare(ctx: &Ctx<'_>, host: HostAccess, read_text: fn(String) -> String) -> rquickjs::Result<()> {
    if host == HostAccess::None {
        return Ok(());
    }
    let (safety, files) = (Object::new(ctx.clone())?, Object::new(ctx.clone())?);
    files.set("readText", Function::new(ctx.clone(), read_text)?)?;
    safety.set("fs", files)?;
    ctx.globals().set("safety", safety)
}

fn install_prelude(ctx: &Ctx<'_>, host: HostAccess, read_text: fn(String) -> String) -> rquickjs::Result<()> {
    let module: Object = Module::import(ctx, PRELUDE)?.finish()?;
    let make: Function = module.get("default")?;
    let answer = move |op: i32, text: Opt<Value>, _bytes: Opt<Value>| -> rquickjs::Result<Option<String>> {
        let Some(text) = text.0.filter(|_| op == Op::Files.number()) else { return Ok(None) };
        text.get().map(|text| Some(read_text(text)))
    };
    let hooks: Object =
        make.call((Function::new(ctx.clone(), answer)?, Function::new(ctx.clone(), || 0.5)?))?;
    let install: Function = hooks.get("install")?;
    install.call((if host == HostAccess::ReadText { READ_GRANT } else { 0 },))
}

#[allow(clippy::needless_pass_by_value, reason = "the engine hands over what it converted")]
fn read_text(_path: String) -> String {
    ANSWER.clone()
}

/// Assembled as in the engine's build script.
fn prelude_source() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/js");
    let entries = fs::read_dir(&folder).expect("the prelude is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "js"));
    files.sort();
    let numbers: Vec<String> = Op::ALL.iter().map(|(op, name)| format!("{name}:{}", op.number())).collect();
    let parts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).expect("a file is read")).collect();
    format!(
        "(function(host,random){{\"use strict\";const OP={{{}}};\n{}\nreturn hooks;\n}})",
        numbers.join(","),
        parts.join("\n")
    )
}

const PRELUDE: &str = "prelude";
const READ_GRANT: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(10);
