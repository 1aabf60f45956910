// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const encoder = new TextEncoder();
const bytes = (text) => Array.from(encoder.encode(text));

check("name", encoder.encoding, "utf-8");
check("kind", encoder.encode("a") instanceof Uint8Array, true);
check("nothing", [bytes(""), bytes(undefined)], [[], []]);
check("text", bytes("aß€😀"), [97, 195, 159, 226, 130, 172, 240, 159, 152, 128]);
check("halves of pairs", bytes("a\ud800b\udc00"), [97, 239, 191, 189, 98, 239, 191, 189]);
check("zero", bytes("a\0b"), [97, 0, 98]);
check("not a string", bytes(12), [49, 50]);
check("long", encoder.encode("€".repeat(100000)).length, 300000);

const into = (text, room) => {
  const target = new Uint8Array(room);
  const { read, written } = encoder.encodeInto(text, target);
  return [read, written, Array.from(target)];
};
check("fits", into("a€", 5), [2, 4, [97, 226, 130, 172, 0]]);
check("cut", into("a€", 3), [1, 1, [97, 0, 0]]);
check("pair cut", into("a😀", 4), [1, 1, [97, 0, 0, 0]]);
check("pair in the room of units", into("😀😀", 3), [0, 0, [0, 0, 0]]);
check("pair fits", into("😀b", 4), [2, 4, [240, 159, 152, 128]]);
check("half a pair", into("\ud800", 3), [1, 3, [239, 191, 189]]);
check("no room", into("abc", 0), [0, 0, []]);
const part = new Uint8Array(8);
encoder.encodeInto("xy", part.subarray(3));
check("a view", Array.from(part), [0, 0, 0, 120, 121, 0, 0, 0]);
try {
  encoder.encodeInto("a", [0, 0]);
  wrong.push("an array was taken for bytes");
} catch (error) {
  check("error", error instanceof TypeError, true);
}
return wrong.length === 0 || wrong;
