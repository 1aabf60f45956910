// attack: replace the compiled pattern while it runs
// grants: none
// expect: returns true
const sly = /a/g;
sly.lastIndex = { valueOf: () => (sly.compile("((((b))))", "y"), 0) };
const first = sly.exec("aaaa");
const other = /(a)/g;
const replaced = "aaaa".replace(other, () => (other.compile("(((((((z)))))))", "g"), "b"));
return (first === null || typeof first[0] === "string") && typeof replaced === "string";
