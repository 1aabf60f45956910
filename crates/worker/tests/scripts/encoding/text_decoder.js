// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const fails = (act) => {
  try {
    act();
    return "nothing thrown";
  } catch (error) {
    return [error.name, error.kind ?? null, error.reason ?? null];
  }
};
const bytes = (...numbers) => new Uint8Array(numbers);
const text = new TextDecoder();

check("defaults", [text.encoding, text.fatal, text.ignoreBOM], ["utf-8", false, false]);
check("nothing", [text.decode(), text.decode(bytes())], ["", ""]);
check("text", text.decode(bytes(97, 195, 159, 226, 130, 172, 240, 159, 152, 128)), "aß€😀");
check("replaced", text.decode(bytes(97, 255, 98, 226, 130)), "a\ufffdb\ufffd");
check("mark", [text.decode(bytes(239, 187, 191, 97)).length, new TextDecoder("utf8", { ignoreBOM: true }).decode(bytes(239, 187, 191, 97)).length], [1, 2]);
check("zero", text.decode(bytes(97, 0, 98)), "a\0b");
check("option of the catalog", new TextDecoder("utf-8", { fatal: false }).decode(bytes(104, 105)), "hi");

const whole = bytes(120, 104, 105, 120);
check("buffer", text.decode(whole.buffer), "xhix");
check("view", text.decode(whole.subarray(1, 3)), "hi");
check("data view", text.decode(new DataView(whole.buffer, 1, 2)), "hi");
check("wide array", text.decode(new Uint16Array(new Uint8Array([104, 105]).buffer)), "hi");

check("fatal", fails(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes(255))), ["TypeError", "INVALID_INPUT", "invalid-text"]);
check("not bytes", fails(() => text.decode("hi")), ["TypeError", "INVALID_INPUT", "not-bytes"]);
check("label", fails(() => new TextDecoder("utf-7")), ["RangeError", null, null]);
check("labels", ["UTF8", " unicode-1-1-utf-8 ", "latin1", "ascii", "utf-16", "utf-16be", "sjis"].map((label) => new TextDecoder(label).encoding),
  ["utf-8", "utf-8", "windows-1252", "windows-1252", "utf-16le", "utf-16be", "shift_jis"]);
check("latin1", new TextDecoder("latin1").decode(bytes(0xe9, 0x80)), "é€");
check("utf-16", [new TextDecoder("utf-16le").decode(bytes(0x3d, 0xd8, 0x00, 0xde)), new TextDecoder("utf-16be").decode(bytes(0xd8, 0x3d, 0xde, 0x00))], ["😀", "😀"]);

const inChunks = (label, all, options) => {
  const decoder = new TextDecoder(label, options);
  let out = "";
  for (const byte of all) out += decoder.decode(bytes(byte), { stream: true });
  return out + decoder.decode();
};
check("byte by byte", inChunks("utf-8", [239, 187, 191, 97, 226, 130, 172, 240, 159, 152, 128]), "a€😀");
check("a second mark is text", inChunks("utf-8", [239, 187, 191, 239, 187, 191, 97]), "\ufeffa");
check("cut short", inChunks("utf-8", [97, 240, 159, 152]), "a\ufffd");
check("broken", inChunks("utf-8", [0xe2, 0x28, 0xa1, 0xf5, 0x80]), text.decode(bytes(0xe2, 0x28, 0xa1, 0xf5, 0x80)));
check("utf-16 byte by byte", inChunks("utf-16le", [0xff, 0xfe, 0x3d, 0xd8, 0x00, 0xde, 0x61, 0]), "😀a");
check("shift_jis byte by byte", inChunks("shift_jis", [0x93, 0xfa, 0x61]), "日a");
check("latin1 byte by byte", inChunks("latin1", [0xe9, 0xe8]), "éè");

const again = new TextDecoder();
again.decode(bytes(226, 130), { stream: true });
again.decode();
check("ready again", again.decode(bytes(239, 187, 191, 97)), "a");
const strict = new TextDecoder("utf-8", { fatal: true });
check("strict stream", fails(() => { strict.decode(bytes(226), { stream: true }); strict.decode(); }), ["TypeError", "INVALID_INPUT", "invalid-text"]);
check("strict after failure", strict.decode(bytes(97)), "a");
const shared = bytes(226, 130);
again.decode(shared, { stream: true });
shared.fill(65);
check("what was given may change", again.decode(bytes(172)), "€");
return wrong.length === 0 || wrong;
