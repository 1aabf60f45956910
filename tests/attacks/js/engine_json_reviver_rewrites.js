// attack: rewrite what JSON.parse is still walking over
// grants: none
// expect: returns "survived"
JSON.parse('{"a":[1,2,3,{"b":[4,5,6]}],"c":{"d":1}}', function (key, value) {
  if (key === "0") {
    this.length = 1;
    this[50] = { again: this };
  }
  if (key === "a") delete this.c;
  return value;
});
return "survived";
