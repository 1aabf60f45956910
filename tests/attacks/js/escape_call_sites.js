// attack: read the prelude's own functions, `host` among them, from the frames of a helper's error
// grants: none
// expect: returns []
const reached = [];
Error.prepareStackTrace = (error, sites) => {
  for (const site of sites) reached.push(site.getFunction?.());
  return "";
};
try {
  safety.parser.xml("<");
} catch (error) {
  void error.stack;
}
return reached.filter((one) => typeof one === "function" && ["host", "refuse", "fileCall", "describe", "tick"].includes(one.name)).map((one) => one.name);
