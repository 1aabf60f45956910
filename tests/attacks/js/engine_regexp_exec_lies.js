// attack: an `exec` of one's own that reports positions far outside
// grants: none
// expect: returns "string"
const sly = /x/g;
let turns = 0;
sly.exec = () => (turns++ < 3 ? Object.assign(["x".repeat(10)], { index: 2 ** 31, length: 2 ** 10, groups: {} }) : null);
return typeof "short".replace(sly, "$1$2$99$<n>$`$'");
