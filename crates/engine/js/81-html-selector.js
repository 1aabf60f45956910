// CSS selectors with the additions of jsoup, compiled to functions of a node.
//
// As in jsoup, classes and attribute values are case-insensitive, `:contains(text)` checks an element's text, and a selector that
// begins with a combinator is relative to the queried element.
const badSelector = (text, why) =>
  invalidInput("safety.parser.html", "invalid-selector", `selector \`${text}\` cannot be used: ${why}`);

const selectorIdentifier = /(?:[\w-]|[^\x00-\x7f]|\\[^\n])+/y;
const selectorAttribute = /\s*(\^?)((?:[\w:.-]|[^\x00-\x7f])+)\s*(?:([~^$*|!]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\]]*?))\s*)?\]/y;

class SelectorReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(why) {
    return badSelector(this.text, why);
  }

  peek() {
    return this.text[this.at];
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  space() {
    return this.take(/[ \t\r\n\f]+/y) !== null;
  }

  identifier(what) {
    const found = this.take(selectorIdentifier);
    if (!found) throw this.fail(`${what} is missing at character ${this.at + 1}`);
    return found[0].replace(/\\(.)/g, "$1");
  }

  // Chains separated by commas; each is a list of {combinator, tests}.
  list() {
    const chains = [];
    do {
      chains.push(this.chain());
    } while (this.peek() === "," && ++this.at);
    if (this.at < this.text.length) throw this.fail(`\`${this.peek()}\` is not expected at character ${this.at + 1}`);
    return chains;
  }

  chain() {
    const chain = [];
    for (;;) {
      const spaced = this.space();
      const sign = this.take(/[>+~]/y);
      if (sign) this.space();
      const next = this.peek();
      if (!sign && (next === undefined || next === ",")) break;
      if (chain.length === 0 && !sign) chain.push({ combinator: "", tests: this.compound() });
      else chain.push({ combinator: sign ? sign[0] : spaced ? " " : "", tests: this.compound() });
    }
    if (chain.length === 0) throw this.fail("a selector is missing");
    return chain;
  }

  compound() {
    const tests = [];
    for (;;) {
      const next = this.peek();
      if (next === "*") this.at++, tests.push(() => true);
      else if (next === "#") this.at++, tests.push(hasId(this.identifier("an id")));
      else if (next === ".") this.at++, tests.push(hasClassName(this.identifier("a class")));
      else if (next === "[") this.at++, tests.push(this.attribute());
      else if (next === ":") this.at++, tests.push(this.pseudo());
      else if (tests.length === 0) tests.push(hasTag(this.identifier("a tag")));
      else return tests;
    }
  }

  attribute() {
    const found = this.take(selectorAttribute);
    if (!found) throw this.fail("an attribute test looks like [name] or [name=value]");
    const [, prefix, name, operator, double, single, bare] = found;
    const value = double ?? single ?? bare ?? "";
    if (prefix) return startsAnyAttribute(name.toLowerCase());
    return attributeTest(this, name.toLowerCase(), operator, value);
  }

  // Reads the text between parentheses, which may nest and be quoted.
  argument(name) {
    if (this.peek() !== "(") throw this.fail(`\`:${name}\` needs an argument in parentheses`);
    const start = ++this.at;
    let depth = 1;
    let quote = "";
    for (; this.at < this.text.length; this.at++) {
      const next = this.peek();
      if (next === "\\") this.at++;
      else if (quote) quote = next === quote ? "" : quote;
      else if (next === "\"" || next === "'") quote = this.text.indexOf(next, this.at + 1) < 0 ? "" : next;
      else if (next === "(") depth++;
      else if (next === ")" && --depth === 0) return this.text.slice(start, this.at++).trim();
    }
    throw this.fail(`the parenthesis of \`:${name}\` is not closed`);
  }

  pseudo() {
    const name = this.identifier("a name after `:`").toLowerCase();
    const plain = plainPseudos.get(name);
    if (plain) return plain;
    const make = callPseudos.get(name);
    if (!make) throw this.fail(`\`:${name}\` is not known`);
    return make(this.argument(name), this);
  }
}

const hasTag = (tag) => {
  const lower = tag.toLowerCase();
  return (node) => node.tag.toLowerCase() === lower;
};
const hasId = (id) => (node) => attributeOf(node, "id") === id;
const hasClassName = (name) => {
  const lower = name.toLowerCase();
  return (node) => classesOf(node).some((known) => known.toLowerCase() === lower);
};
const startsAnyAttribute = (prefix) => (node) => {
  for (let i = 0; node.attrs && i < node.attrs.length; i += 2) if (node.attrs[i].toLowerCase().startsWith(prefix)) return true;
  return false;
};

function attributeTest(reader, name, operator, written) {
  const value = written.toLowerCase();
  const read = (test) => (node) => {
    const found = attributeOf(node, name);
    return found !== undefined && test(found.trim().toLowerCase(), found);
  };
  switch (operator) {
    case undefined: return read(() => true);
    case "=": return read((found) => found === value.trim());
    case "!=": return (node) => attributeOf(node, name)?.trim().toLowerCase() !== value.trim();
    case "^=": return read((found) => value !== "" && found.startsWith(value));
    case "$=": return read((found) => value !== "" && found.endsWith(value));
    case "*=": return read((found) => value !== "" && found.includes(value));
    case "|=": return read((found) => found === value || found.startsWith(value + "-"));
    default: break;
  }
  // A word of a list, as in CSS; everything else is a regular expression, as in jsoup.
  if (/^[\w-]*$/.test(value)) return read((found) => value !== "" && found.split(/\s+/).includes(value));
  const pattern = selectorPattern(reader, written);
  return read((_, found) => pattern.test(found));
}

function selectorPattern(reader, written) {
  const insensitive = written.startsWith("(?i)");
  try {
    return new RegExp(insensitive ? written.slice(4) : written, insensitive ? "i" : "");
  } catch {
    throw reader.fail(`\`${written}\` is no regular expression`);
  }
}

// Positions among siblings count from one.
function placeAmong(node, fits, backwards) {
  let place = 0;
  const siblings = node.up ? node.up.kids : [node];
  for (let i = 0; i < siblings.length; i++) {
    const sibling = siblings[backwards ? siblings.length - 1 - i : i];
    if (sibling.tag !== undefined && fits(sibling, node)) place++;
    if (sibling === node) break;
  }
  return place;
}

const anySibling = () => true;
const sameTag = (sibling, node) => sibling.tag === node.tag;
const isPlace = (place, fits, backwards) => (node) => placeAmong(node, fits, backwards) === place;
const isOnly = (fits) => (node) => placeAmong(node, fits, false) === 1 && placeAmong(node, fits, true) === 1;

const byPlace = (fits, backwards) => (argument, reader) => {
  const named = { odd: [2, 1], even: [2, 0] }[argument.toLowerCase()];
  const found = /^(?:([+-]?\d*)n\s*)?(?:([+-]?)\s*(\d+))?$/i.exec(argument);
  if (!named && (!found || argument === "")) throw reader.fail(`\`${argument}\` is no place such as 2, odd or 2n+1`);
  const [, steps, sign, offset] = found ?? [];
  const step = steps === undefined ? 0 : steps === "" || steps === "+" ? 1 : steps === "-" ? -1 : Number(steps);
  const [a, b] = named ?? [step, offset === undefined ? 0 : Number((sign ?? "") + offset)];
  return (node) => {
    const distance = placeAmong(node, fits, backwards) - b;
    return a === 0 ? distance === 0 : distance % a === 0 && distance / a >= 0;
  };
};

const withoutQuotes = (text) => /^(["']).*\1$/s.test(text) ? text.slice(1, -1) : text;
const byText = (read) => (argument) => {
  const wanted = squeeze(withoutQuotes(argument)).trim().toLowerCase();
  return (node) => read(node).toLowerCase().includes(wanted);
};
const byIndex = (compare) => (argument, reader) => {
  if (!/^-?\d+$/.test(argument)) throw reader.fail(`\`${argument}\` is no index`);
  return (node) => compare(placeAmong(node, anySibling, false) - 1, Number(argument));
};
const fitsOneOf = (argument) => {
  const chains = chainsOf(argument);
  return (node) => chains.some((chain) => fitsChain(node, chain, chain.length - 1, null));
};

const plainPseudos = new MapOf([
  ["first-child", isPlace(1, anySibling, false)],
  ["last-child", isPlace(1, anySibling, true)],
  ["only-child", isOnly(anySibling)],
  ["first-of-type", isPlace(1, sameTag, false)],
  ["last-of-type", isPlace(1, sameTag, true)],
  ["only-of-type", isOnly(sameTag)],
  ["empty", (node) => node.kids.every((kid) => kid.tag === undefined && !kid.text)],
  ["root", (node) => node.up !== null && node.up.tag === "#root"],
]);

const callPseudos = new MapOf([
  ["nth-child", byPlace(anySibling, false)],
  ["nth-last-child", byPlace(anySibling, true)],
  ["nth-of-type", byPlace(sameTag, false)],
  ["nth-last-of-type", byPlace(sameTag, true)],
  ["contains", byText((node) => textOfNode(node))],
  ["containsown", byText((node) => ownTextOfNode(node))],
  ["matches", (argument, reader) => { const pattern = selectorPattern(reader, argument); return (node) => pattern.test(textOfNode(node)); }],
  ["eq", byIndex((place, wanted) => place === wanted)],
  ["lt", byIndex((place, wanted) => place < wanted)],
  ["gt", byIndex((place, wanted) => place > wanted)],
  ["is", fitsOneOf],
  ["not", (argument) => { const test = fitsOneOf(argument); return (node) => !test(node); }],
  ["has", (argument) => { const chains = chainsOf(argument); return (node) => someBelow(node, chains); }],
]);

function chainsOf(text) {
  return new SelectorReader(StringOf(text)).list();
}

// Whether the node matches the chain up to `last`, including everything to its left. A leading combinator is relative to `scope`.
function fitsChain(node, chain, last, scope) {
  const { combinator, tests } = chain[last];
  if (node.tag === "#root") return false;
  for (const test of tests) if (!test(node)) return false;
  const fits = last === 0 ? (other) => other === scope : (other) => fitsChain(other, chain, last - 1, scope);
  switch (combinator) {
    case "": return last === 0 || fits(node);
    case ">": return node.up !== null && fits(node.up);
    case "+": { const before = elementBeside(node, -1); return before !== null && fits(before); }
    case "~":
      for (let other = elementBeside(node, -1); other !== null; other = elementBeside(other, -1)) if (fits(other)) return true;
      return false;
    default:
      for (let other = node.up; other !== null; other = other.up) if (fits(other)) return true;
      return false;
  }
}

const fitsAny = (node, chains, scope) => chains.some((chain) => fitsChain(node, chain, chain.length - 1, scope));

function someBelow(root, chains) {
  for (let node = nodeAfter(root, root); node !== null; node = nodeAfter(node, root)) {
    if (node.tag !== undefined && fitsAny(node, chains, root)) return true;
  }
  // Siblings are not descendants, so they are checked only if the selector asks for them.
  if (!chains.some(([first]) => first.combinator === "+" || first.combinator === "~")) return false;
  for (let next = elementBeside(root, 1); next !== null; next = elementBeside(next, 1)) {
    if (fitsAny(next, chains, root)) return true;
  }
  return false;
}

// Matches among the element itself and its descendants, in document order; only the first if `most` is 1.
function selectNodes(root, selector, most) {
  const chains = chainsOf(selector);
  const found = [];
  for (let node = root; node !== null && found.length < most; node = nodeAfter(node, root)) {
    if (node.tag !== undefined && node.tag !== "#root" && fitsAny(node, chains, root)) found.push(node);
  }
  return found;
}
