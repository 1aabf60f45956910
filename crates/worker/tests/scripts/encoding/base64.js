// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const fails = (act) => {
  try {
    return [act()];
  } catch (error) {
    return [error.kind, error.helper, error.reason];
  }
};
for (const [plain, coded] of [["", ""], ["f", "Zg=="], ["fo", "Zm8="], ["foo", "Zm9v"], ["foob", "Zm9vYg=="], ["fooba", "Zm9vYmE="], ["foobar", "Zm9vYmFy"], ["\xff\xfe\0", "//4A"]]) {
  check(`btoa ${plain}`, btoa(plain), coded);
  check(`atob ${coded}`, atob(coded), plain);
}
let all = "";
for (let code = 0; code < 256; code++) all += String.fromCharCode(code);
check("all of Latin-1", atob(btoa(all)), all);
check("lenient", [atob(" Z m\n9\tv\r"), atob("Zg"), atob("Zm8")], ["foo", "f", "fo"]);
check("other types", [btoa(12), btoa(null), atob(1234) === atob("1234")], ["MTI=", "bnVsbA==", true]);
check("wide", fails(() => btoa("ab€")), ["INVALID_INPUT", "btoa", "non-latin-1"]);
for (const bad of ["Zg=", "Z", "Zg===", "=", "Zm9v=", "Z!==", "Zm9v_-", "Zm9vé", "Zm9v€", "Zg==Zg==", "Z=g="]) {
  check(`bad ${bad}`, fails(() => atob(bad)), ["INVALID_INPUT", "atob", "invalid-base64"]);
}
try {
  btoa("ab€");
} catch (error) {
  check("index", error.message.includes("index 2"), true);
}
try {
  btoa({ toString() { throw new RangeError("mine"); } });
} catch (error) {
  check("the tool's own error", [error.name, error.message], ["RangeError", "mine"]);
}
return wrong.length === 0 || wrong;
