// `safety.fs`: thin wrappers. The gateway checks every path and does the work with the grants of the call.
function fileCall(name, values, options) {
  const pairs = [];
  for (const key of keys(options ?? {})) {
    const value = options[key];
    if (value === undefined || value === null) continue;
    pairs.push([key, ArrayOf.isArray(value) ? value.join(",") : `${value}`]);
  }
  while (values.length && values[values.length - 1] === undefined) values.pop();
  const texts = values.map((value) => {
    if (value === undefined || value === null) return "";
    if (typeof value === "object" || typeof value === "function" || typeof value === "symbol") {
      throw invalidInput(`safety.fs.${name}`, "invalid-argument", "arguments are text or numbers");
    }
    return `${value}`;
  });
  return host(OP.FILES, stringify({ function: name, arguments: texts, options: pairs }));
}

function need(name, values, count) {
  for (let i = 0; i < count; i++) {
    if (values[i] === undefined || values[i] === null) {
      throw invalidInput(`safety.fs.${name}`, "missing-args", `safety.fs.${name} needs ${count} argument${count === 1 ? "" : "s"}`);
    }
  }
}

function options(name, value) {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || ArrayOf.isArray(value)) throw invalidInput(`safety.fs.${name}`, "invalid-options", "options are an object");
  return value;
}

// A function with `count` required and `most` allowed arguments, followed by options if it has any.
const fileFunction = (name, count, most, hasOptions) => function (...values) {
  need(name, values, count);
  return fileCall(name, values.slice(0, most), hasOptions ? options(name, values[most]) : undefined);
};

const FILE_READS = {
  readText: fileFunction("readText", 1, 1),
  list: fileFunction("list", 0, 1),
  exists: fileFunction("exists", 1, 1),
  stat: fileFunction("stat", 1, 1),
  grep: fileFunction("grep", 2, 2, true),
  lineCount: fileFunction("lineCount", 1, 1),
  slice: fileFunction("slice", 1, 3),
  cut: function (path, given) {
    need("cut", [path], 1);
    const { fields } = options("cut", given);
    if (fields === undefined || fields === null) throw invalidInput("safety.fs.cut", "fields-required", "cut needs `fields`, an array of numbers from 1");
    if (!ArrayOf.isArray(fields)) throw invalidInput("safety.fs.cut", "fields-not-array", "`fields` is an array of numbers from 1");
    return fileCall("cut", [path], given);
  },
  sort: fileFunction("sort", 1, 1, true),
  find: fileFunction("find", 0, 2, true),
  searchInFiles: function (dir, glob, pattern, given) {
    if (pattern === undefined || pattern === null) throw invalidInput("safety.fs.searchInFiles", "missing-args", "safety.fs.searchInFiles needs a pattern");
    return fileCall("searchInFiles", [dir, glob, pattern], options("searchInFiles", given));
  },
};

const FILE_WRITES = {
  writeText: fileFunction("writeText", 1, 2),
  appendText: fileFunction("appendText", 1, 2),
  editText: function (path, old, replacement, all) {
    need("editText", [path, old, replacement], 3);
    return fileCall("editText", [path, old, replacement], { replaceAll: all === true || (typeof all === "object" && all?.replaceAll === true) });
  },
  copy: fileFunction("copy", 2, 2),
  move: fileFunction("move", 2, 2),
  delete: fileFunction("delete", 1, 1),
  deleteDir: fileFunction("deleteDir", 1, 1),
};

const FILE_PLACES = { workspace: fileFunction("workspace", 0, 0), readRoots: fileFunction("readRoots", 0, 0) };
