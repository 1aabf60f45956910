// attack: grant oneself functions by adding them to what is there
// grants: none
// expect: returns ["undefined","undefined","undefined"]
try {
  safety.fs = { readText: () => "mine" };
} catch {}
try {
  Object.defineProperty(safety, "fs", { value: { readText: () => "mine" } });
} catch {}
return [typeof safety.fs, typeof fetch, typeof Response];
