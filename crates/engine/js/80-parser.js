// safety.parser: texts in the formats of the web, as plain data. The work is done by the host.
function textFor(helper, value) {
  if (typeof value === "string") return value;
  throw invalidInput(helper, "missing-input", `${helper} needs a text as its first argument`);
}

const parser = {
  // A page to ask with selectors. `baseUri` is what relative links are resolved against.
  html(text, baseUri) {
    return openPage(textFor("safety.parser.html", text), baseUri === undefined || baseUri === null ? "" : StringOf(baseUri));
  },

  // {tag, attrs, text, children}, where children are of the same shape.
  xml(text) {
    return host(OP.PARSE_XML, textFor("safety.parser.xml", text));
  },

  // Rows of texts, or objects when `header` is set: then the first row names the keys.
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
