// node:vm, isolated-vm and quickjs-emscripten, each with a fresh context, isolate or runtime for every call.
// A question is a line of JSON, and so is the answer: the time this process measured, and the result.
import { createRequire } from "node:module";
import readline from "node:readline";
import vm from "node:vm";

const require = createRequire(`${process.argv[2]}/package.json`);
const answer = "note".repeat(256);
const readText = () => answer;
const MEMORY_MB = 64;
const TIMEOUT_MS = 10_000;

// The whole call as one expression, whose promise has the result as JSON text.
function program({ source, names, arguments: given }) {
  const values = names.map((name) => `given[${JSON.stringify(name)}]`).join(",");
  return `(async () => { const given = JSON.parse(${JSON.stringify(given)}); return JSON.stringify(await ${source}(${values})); })()`;
}

function nodeVm(question) {
  const context = vm.createContext(question.host ? { safety: { fs: { readText } } } : {});
  return vm.runInContext(program(question), context, { timeout: TIMEOUT_MS });
}

function isolatedVm(ivm) {
  return async (question) => {
    const isolate = new ivm.Isolate({ memoryLimit: MEMORY_MB });
    try {
      const context = isolate.createContextSync();
      if (question.host) {
        context.global.setSync("readText", new ivm.Callback(readText));
        context.evalSync("globalThis.safety = { fs: { readText } }");
      }
      return await context.eval(program(question), { promise: true, timeout: TIMEOUT_MS });
    } finally {
      isolate.dispose();
    }
  };
}

function quickjsEmscripten(quickjs) {
  return (question) => {
    const runtime = quickjs.newRuntime();
    runtime.setMemoryLimit(MEMORY_MB << 20);
    const deadline = Date.now() + TIMEOUT_MS;
    runtime.setInterruptHandler(() => Date.now() > deadline);
    const context = runtime.newContext();
    if (question.host) {
      const [safety, fs] = [context.newObject(), context.newObject()];
      const read = context.newFunction("readText", () => context.newString(readText()));
      context.setProp(fs, "readText", read);
      context.setProp(safety, "fs", fs);
      context.setProp(context.global, "safety", safety);
      for (const handle of [read, fs, safety]) handle.dispose();
    }
    const promise = context.unwrapResult(context.evalCode(program(question)));
    runtime.executePendingJobs();
    const state = context.getPromiseState(promise);
    if (state.type !== "fulfilled") throw new Error(`the promise is ${state.type}`);
    const value = context.getString(state.value);
    for (const used of [state.value, promise, context, runtime]) used.dispose();
    return value;
  };
}

// What is not installed is not offered.
async function optional(load) {
  try {
    return await load();
  } catch {
    return undefined;
  }
}

const peers = {
  "node:vm": nodeVm,
  "isolated-vm": await optional(() => isolatedVm(require("isolated-vm"))),
  "quickjs-emscripten": await optional(async () => quickjsEmscripten(await require("quickjs-emscripten").getQuickJS())),
};

// At least one call, and as many as fit into the time.
async function serve(question) {
  const call = peers[question.peer];
  const begin = process.hrtime.bigint();
  const end = begin + BigInt(question.milliseconds) * 1_000_000n;
  let calls = 0;
  let value;
  let now = begin;
  do {
    value = await call(question);
    calls++;
    now = process.hrtime.bigint();
  } while (now < end);
  return { nanoseconds: Number(now - begin), calls, value };
}

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say(Object.keys(peers).filter((name) => peers[name]));
for await (const line of readline.createInterface({ input: process.stdin })) {
  try {
    say(await serve(JSON.parse(line)));
  } catch (error) {
    say({ error: String(error?.stack ?? error) });
  }
}
