// safety.parser: web formats as plain data. The host parses them.
function textFor(helper, value) {
  if (typeof value === "string") return value;
  throw invalidInput(helper, "missing-input", `${helper} needs a text as its first argument`);
}

const parser = {
  // A page to query with selectors. `baseUri` resolves relative links.
  html(text, baseUri) {
    return openPage(textFor("safety.parser.html", text), baseUri === undefined || baseUri === null ? "" : StringOf(baseUri));
  },

  // {tag, attrs, text, children}; children have the same form.
  xml(text) {
    return host(OP.PARSE_XML, textFor("safety.parser.xml", text));
  },

  // Rows of strings, or objects if `header` is set: then the first row names the keys.
  csv(text, options) {
    const table = textFor("safety.parser.csv", text);
    const { header, delimiter } = options ?? {};
    return host(OP.PARSE_CSV, stringify([table, {
      header: header ? true : false,
      delimiter: delimiter === undefined || delimiter === null ? "," : StringOf(delimiter),
    }]));
  },

  // Objects, arrays and scalars of one YAML document.
  yaml(text) {
    return host(OP.PARSE_YAML, textFor("safety.parser.yaml", text));
  },
};
