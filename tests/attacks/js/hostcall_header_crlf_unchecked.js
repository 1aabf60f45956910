// attack: switch the prelude's check off and inject a header behind it
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-header
const original = RegExp.prototype.test;
RegExp.prototype.test = function (text) {
  return String(this).includes("\\r\\n") ? false : Reflect.apply(original, this, [text]);
};
fetch("http://192.0.2.1/", { headers: { "x-a": "b\r\nX-Injected: yes" } });
