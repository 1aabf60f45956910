// attack: an address that is another one the second time it is read
// grants: fetch:strict
// expect: throws SECURITY literal-private-ip
let read = 0;
const sly = new URL("http://192.0.2.1/");
Object.defineProperty(sly, "toString", { value: () => (read++ === 0 ? "http://127.0.0.1/" : "http://8.8.8.8/") });
fetch(sly, { get redirect() { return "follow"; } });
