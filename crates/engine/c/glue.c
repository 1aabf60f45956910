// QuickJS-ng as a WebAssembly reactor: one snapshot, one call. `host_call` is the only way to leave the sandbox.
//
// All code here runs in the linear memory and is as untrusted as the tool: the worker checks every pointer and length. Nothing is
// freed after a call, because the instance is discarded.
#include "quickjs.h"
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("toolgate"), import_name(name)))

// Returns the kind of the answer in the high half and its length in the low half. `host_take` then copies it to `into`.
IMPORT("call") uint64_t host_call(int op, const char *text, size_t text_len, const uint8_t *bytes, size_t bytes_len);
IMPORT("take") void host_take(void *into);
// Used only while the snapshot is built: the source of the prelude.
IMPORT("prelude") size_t host_prelude(char *into, size_t capacity);

enum answer_kind { ANSWER_NOTHING, ANSWER_TEXT, ANSWER_JSON, ANSWER_BYTES, ANSWER_ERROR };
enum outcome_kind { OUTCOME_VALUE, OUTCOME_UNDEFINED, OUTCOME_ERROR, OUTCOME_UNSETTLED, OUTCOME_NOT_DATA, OUTCOME_ESCAPED };

struct outcome { uint32_t kind; const char *text; uint32_t text_len; };

static JSRuntime *runtime;
static JSContext *context;
static JSValue hook_describe, hook_tick, hook_install, hook_refuse, hook_source, tool_function, tool_names;
static struct outcome outcome;
static uint64_t random_state = 0x9e3779b97f4a7c15ull;

// The engine's heap. Counted here and not by the engine, because a refused allocation must be known after the error is gone.
static size_t heap_used, heap_limit = SIZE_MAX;
static bool heap_refused;

static void *counted(void *block) {
  if (block) heap_used += malloc_usable_size(block);
  else heap_refused = true;
  return block;
}

static bool is_granted(size_t size) {
  if (heap_used <= heap_limit && size <= heap_limit - heap_used) return true;
  heap_refused = true;
  return false;
}

static void *heap_malloc(void *opaque, size_t size) { return is_granted(size) ? counted(malloc(size)) : NULL; }

static void *heap_calloc(void *opaque, size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) return NULL;
  return is_granted(count * size) ? counted(calloc(count, size)) : NULL;
}

static void heap_free(void *opaque, void *block) {
  if (block) heap_used -= malloc_usable_size(block);
  free(block);
}

static void *heap_realloc(void *opaque, void *block, size_t size) {
  if (!block) return size ? heap_malloc(opaque, size) : NULL;
  if (!size) {
    heap_free(opaque, block);
    return NULL;
  }
  size_t before = malloc_usable_size(block);
  if (size > before && !is_granted(size - before)) return NULL;
  void *moved = realloc(block, size);
  if (!moved) {
    heap_refused = true;
    return NULL;
  }
  heap_used -= before;
  return counted(moved);
}

static size_t heap_usable_size(const void *block) { return malloc_usable_size((void *)block); }

static const JSMallocFunctions HEAP = {heap_calloc, heap_malloc, heap_free, heap_realloc, heap_usable_size};

static JSValue raise(JSContext *ctx, char *text, size_t len) {
  JSValue details = JS_ParseJSON(ctx, text, len, "<error>");
  if (JS_IsException(details)) return details;
  JSValueConst arguments[1] = {details};
  JSValue error = JS_Call(ctx, hook_refuse, JS_UNDEFINED, 1, arguments);
  JS_FreeValue(ctx, details);
  return JS_IsException(error) ? error : JS_Throw(ctx, error);
}

// host(op, text, bytes): the only function that leaves the linear memory.
static JSValue js_host(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  int op;
  size_t text_len = 0, bytes_len = 0;
  const char *text = NULL;
  const uint8_t *bytes = NULL;
  if (JS_ToInt32(ctx, &op, argv[0])) return JS_EXCEPTION;
  if (argc > 1 && !JS_IsUndefined(argv[1]) && !(text = JS_ToCStringLen(ctx, &text_len, argv[1]))) return JS_EXCEPTION;
  if (argc > 2 && !JS_IsUndefined(argv[2])) {
    bytes = JS_GetUint8Array(ctx, &bytes_len, argv[2]);
    if (!bytes && JS_HasException(ctx)) return JS_EXCEPTION;
  }
  uint64_t answer = host_call(op, text, text_len, bytes, bytes_len);
  if (text) JS_FreeCString(ctx, text);
  uint32_t kind = answer >> 32;
  size_t len = (uint32_t)answer;
  if (kind == ANSWER_NOTHING) return JS_UNDEFINED;
  char *into = js_malloc(ctx, len + 1);
  if (!into) return JS_EXCEPTION;
  host_take(into);
  into[len] = 0;
  JSValue value;
  switch (kind) {
  case ANSWER_BYTES: value = JS_NewUint8ArrayCopy(ctx, (uint8_t *)into, len); break;
  case ANSWER_JSON: value = JS_ParseJSON(ctx, into, len, "<host>"); break;
  case ANSWER_ERROR: value = raise(ctx, into, len); break;
  default: value = JS_NewStringLen(ctx, into, len); break;
  }
  js_free(ctx, into);
  return value;
}

// xorshift64*: fast, but not for secrets; those come from `crypto`. Seeded for every call.
static JSValue js_random(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return JS_NewFloat64(ctx, (double)((random_state * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0);
}

static uint32_t finish(enum outcome_kind kind, const char *text, size_t len) {
  outcome = (struct outcome){kind, text, (uint32_t)len};
  return (uint32_t)(uintptr_t)&outcome;
}

static uint32_t finish_value(enum outcome_kind kind, JSValueConst value) {
  size_t len;
  const char *text = JS_ToCStringLen(context, &len, value);
  return text ? finish(kind, text, len) : finish(OUTCOME_ERROR, NULL, 0);
}

// Lets the prelude describe a thrown value as text. No text means that there is no memory left for a description.
static uint32_t finish_thrown(enum outcome_kind kind, JSValueConst thrown) {
  static const char hostile[] = "{\"name\":\"Thrown\",\"message\":\"(an error that does not let itself be described)\"}";
  // The engine throws null if it has no memory for an error, and a tool may throw null, too; `heap_refused` tells them apart.
  if (JS_IsNull(thrown) && heap_refused) return finish(kind, NULL, 0);
  JSValueConst arguments[1] = {thrown};
  JSValue description = JS_Call(context, hook_describe, JS_UNDEFINED, 1, arguments);
  if (!JS_IsException(description)) return finish_value(kind, description);
  JS_FreeValue(context, JS_GetException(context));
  return heap_refused ? finish(kind, NULL, 0) : finish(kind, hostile, sizeof hostile - 1);
}

// The engine throws null if it has no memory for an error; a null from a tool arrives through its promise.
static uint32_t finish_error(enum outcome_kind kind) {
  JSValue error = JS_GetException(context);
  if (JS_IsNull(error) || JS_IsUninitialized(error)) return finish(kind, NULL, 0);
  return finish_thrown(kind, error);
}

// Runs jobs until the promise settles, and timers when no job is left. Jobs that the tool started but did not await continue
// until they wait for a timer, even after the body has returned, so no effect of the tool is lost.
static JSPromiseStateEnum settle(JSValueConst promise) {
  JSContext *job_context;
  for (;;) {
    while (JS_PromiseState(context, promise) == JS_PROMISE_PENDING && JS_ExecutePendingJob(runtime, &job_context) > 0) {}
    JSPromiseStateEnum state = JS_PromiseState(context, promise);
    if (state == JS_PROMISE_FULFILLED) while (JS_ExecutePendingJob(runtime, &job_context) > 0) {}
    if (state != JS_PROMISE_PENDING) return state;
    if (JS_IsJobPending(runtime)) continue;
    JSValue ticked = JS_Call(context, hook_tick, JS_UNDEFINED, 0, NULL);
    if (JS_ToBool(context, ticked) <= 0) return JS_PROMISE_PENDING;
  }
}

static uint32_t convert(JSValueConst value) {
  if (JS_IsUndefined(value)) return finish(OUTCOME_UNDEFINED, NULL, 0);
  JSValue text = JS_JSONStringify(context, value, JS_UNDEFINED, JS_UNDEFINED);
  if (JS_IsException(text)) return finish_error(OUTCOME_NOT_DATA);
  if (JS_IsUndefined(text)) return finish(OUTCOME_NOT_DATA, NULL, 0);
  return finish_value(OUTCOME_VALUE, text);
}

EXPORT("engine_alloc") void *engine_alloc(size_t len) { return malloc(len); }

// Evaluates the wrapped tool and keeps its function; the worker then keeps the pages that this changed.
EXPORT("engine_load") uint32_t engine_load(char *source, size_t source_len, char *names, size_t names_len, uint32_t grants) {
  JS_UpdateStackTop(runtime);
  JSValue grant = JS_NewUint32(context, grants);
  JSValueConst arguments[1] = {grant};
  if (JS_IsException(JS_Call(context, hook_install, JS_UNDEFINED, 1, arguments))) return finish_error(OUTCOME_ERROR);
  tool_names = JS_ParseJSON(context, names, names_len, "<names>");
  if (JS_IsException(tool_names)) return finish_error(OUTCOME_ERROR);
  JSValue function = JS_Eval(context, source, source_len, "tool.js", JS_EVAL_TYPE_GLOBAL);
  if (JS_IsException(function)) return finish_error(OUTCOME_ERROR);
  // The wrapper is `(` function `)`. If a body closes the function early, the value's text differs from the source. The text
  // comes from the built-in that the prelude saved, which a tool cannot replace.
  size_t len = 0;
  JSValueConst loaded[1] = {function};
  JSValue own_text = JS_Call(context, hook_source, JS_UNDEFINED, 1, loaded);
  const char *text = JS_IsString(own_text) ? JS_ToCStringLen(context, &len, own_text) : NULL;
  if (!text || len + 2 != source_len || memcmp(text, source + 1, len)) return finish(OUTCOME_ESCAPED, NULL, 0);
  JS_FreeCString(context, text);
  tool_function = function;
  JS_RunGC(runtime);
  return finish(OUTCOME_VALUE, NULL, 0);
}

EXPORT("engine_run") uint32_t engine_run(char *arguments, size_t arguments_len, uint64_t seed, uint32_t memory) {
  random_state = seed | 1;
  heap_limit = memory;
  JS_UpdateStackTop(runtime);
  JSValue bound = JS_ParseJSON(context, arguments, arguments_len, "<arguments>");
  if (JS_IsException(bound)) return finish_error(OUTCOME_ERROR);
  int64_t count = 0;
  if (JS_GetLength(context, tool_names, &count)) return finish_error(OUTCOME_ERROR);
  JSValue *values = calloc(count ? count : 1, sizeof(JSValue));
  if (!values) return finish(OUTCOME_ERROR, NULL, 0);
  for (int64_t i = 0; i < count; i++) {
    JSValue name = JS_GetPropertyInt64(context, tool_names, i);
    JSAtom atom = JS_ValueToAtom(context, name);
    JSPropertyDescriptor own = {.value = JS_UNDEFINED};
    // Own properties only: a missing parameter called `constructor` must be undefined.
    values[i] = JS_GetOwnProperty(context, &own, bound, atom) > 0 ? own.value : JS_UNDEFINED;
  }
  JSValue promise = JS_Call(context, tool_function, JS_UNDEFINED, (int)count, (JSValueConst *)values);
  if (JS_IsException(promise)) return finish_error(OUTCOME_ERROR);
  switch (settle(promise)) {
  case JS_PROMISE_PENDING: return finish(OUTCOME_UNSETTLED, NULL, 0);
  case JS_PROMISE_REJECTED: return finish_thrown(OUTCOME_ERROR, JS_PromiseResult(context, promise));
  default: return convert(JS_PromiseResult(context, promise));
  }
}

static JSValue take_hook(JSValueConst hooks, const char *name) {
  JSValue hook = JS_GetPropertyStr(context, hooks, name);
  if (!JS_IsFunction(context, hook)) __builtin_trap();
  return hook;
}

static void warm_up(void) {
  static char source[] = "(async function(a){{\nreturn { sum: a + 1, list: [1, 'two', null], text: `${a}` }\n}})";
  static char names[] = "[\"a\"]", arguments[] = "{\"a\":1}";
  for (int i = 0; i < 3; i++) {
    engine_load(source, sizeof source - 1, names, sizeof names - 1, 0);
    engine_run(arguments, sizeof arguments - 1, 1, 64u << 20);
  }
}

EXPORT("engine_init") void engine_init(void) {
  runtime = JS_NewRuntime2(&HEAP, NULL);
  JS_SetMaxStackSize(runtime, SCRIPT_STACK);
  context = JS_NewContext(runtime);
  size_t capacity = 1 << 20;
  char *prelude = malloc(capacity);
  size_t len = host_prelude(prelude, capacity - 1);
  prelude[len] = 0;
  JSValue make = JS_Eval(context, prelude, len, "prelude.js", JS_EVAL_TYPE_GLOBAL);
  JSValue functions[2] = {JS_NewCFunction(context, js_host, "host", 3), JS_NewCFunction(context, js_random, "random", 0)};
  JSValue hooks = JS_IsException(make) ? make : JS_Call(context, make, JS_UNDEFINED, 2, (JSValueConst *)functions);
  free(prelude);
  if (JS_IsException(hooks)) {
    // The build shows this text; a broken prelude never becomes a snapshot.
    JSValue error = JS_GetException(context);
    const char *message = JS_ToCString(context, error);
    const char *stack = JS_ToCString(context, JS_GetPropertyStr(context, error, "stack"));
    if (message) host_call(-1, message, strlen(message), (const uint8_t *)stack, stack ? strlen(stack) : 0);
    __builtin_trap();
  }
  hook_describe = take_hook(hooks, "describe");
  hook_tick = take_hook(hooks, "tick");
  hook_install = take_hook(hooks, "install");
  hook_refuse = take_hook(hooks, "refuse");
  hook_source = take_hook(hooks, "source");
  tool_function = tool_names = JS_UNDEFINED;
  JS_FreeValue(context, hooks);
  JS_FreeValue(context, make);
  warm_up();
  tool_function = tool_names = JS_UNDEFINED;
  JS_RunGC(runtime);
  // Growing the memory during a call costs a system call and its locks, so it grows once, now.
  free(malloc(PREGROWN_HEAP));
}
