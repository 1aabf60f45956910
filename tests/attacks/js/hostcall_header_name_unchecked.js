// attack: switch the prelude's check off and inject by a header's name
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-header
const original = RegExp.prototype.test;
RegExp.prototype.test = function (text) {
  return String(this).startsWith("/^[!#") || Reflect.apply(original, this, [text]);
};
fetch("http://192.0.2.1/", { headers: [["x: y\r\nx-injected", "yes"]] });
