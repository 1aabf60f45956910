// attack: find a global that nobody meant to be there
// grants: none
// expect: returns []
const known = new Set(`
  AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean DOMException DataView Date DisposableStack Error EvalError
  FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array InternalError Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError TypeError URIError Uint16Array
  Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet AbortController AbortSignal CryptoKey Headers TextDecoder TextEncoder URL URLSearchParams atob btoa
  clearInterval clearTimeout console crypto decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt
  performance queueMicrotask safety setInterval setTimeout structuredClone undefined unescape
`.split(/\s+/));
return Reflect.ownKeys(globalThis).filter((name) => typeof name === "string" && !known.has(name));
