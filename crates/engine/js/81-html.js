// The objects that tools use: documents, elements and lists of elements, modelled on jsoup.
//
// Getters return strings and never null; methods that change the page return the element for chaining. `toString` and JSON give
// the HTML.
let nodeOfElement;

class Element {
  #node;
  #page;

  static {
    nodeOfElement = (element) => #node in element ? element.#node : undefined;
  }

  constructor(node, page) {
    this.#node = node;
    this.#page = page;
  }

  #wrap(node) {
    return node === null || node === undefined || node.tag === "#root" ? null : elementOf(node, this.#page);
  }

  #list(nodes) {
    return elementsOf(nodes.map((node) => elementOf(node, this.#page)));
  }

  // Converts elements or HTML (parsed in context) to detached nodes.
  #content(value, place) {
    const known = typeof value === "object" && value !== null ? nodeOfElement(value) : undefined;
    if (known) {
      for (let up = place; up !== null; up = up.up) {
        if (up === known) throw invalidInput("safety.parser.html", "inside-itself", "an element cannot be put into itself");
      }
      detachNode(known);
      return [known];
    }
    const context = /^[a-z][a-z0-9]*$/.test(place.tag) ? place.tag : "body";
    return treeOf(host(OP.PARSE_HTML, `${context}\n${StringOf(value ?? "")}`)).kids;
  }

  #beside(value, step) {
    const node = this.#node;
    if (node.up === null) return this;
    const nodes = this.#content(value, node.up);
    putNodes(node.up, placeOf(node) + step, nodes);
    return this;
  }

  select(selector) {
    return this.#list(selectNodes(this.#node, selector, Infinity));
  }

  selectFirst(selector) {
    return this.#wrap(selectNodes(this.#node, selector, 1)[0]);
  }

  is(selector) {
    return fitsAny(this.#node, chainsOf(selector), null);
  }

  closest(selector) {
    const chains = chainsOf(selector);
    for (let node = this.#node; node !== null; node = node.up) if (fitsAny(node, chains, null)) return this.#wrap(node);
    return null;
  }

  getElementById(id) {
    const wanted = StringOf(id);
    for (let node = this.#node; node !== null; node = nodeAfter(node, this.#node)) {
      if (node.tag !== undefined && attributeOf(node, "id") === wanted) return this.#wrap(node);
    }
    return null;
  }

  getElementsByTag(tag) {
    const wanted = StringOf(tag).toLowerCase();
    const found = [];
    for (let node = this.#node; node !== null; node = nodeAfter(node, this.#node)) {
      if (node.tag !== undefined && node.tag.toLowerCase() === wanted) found.push(node);
    }
    return this.#list(found);
  }

  getElementsByClass(name) {
    const fits = hasClassName(StringOf(name));
    const found = [];
    for (let node = this.#node; node !== null; node = nodeAfter(node, this.#node)) {
      if (node.tag !== undefined && fits(node)) found.push(node);
    }
    return this.#list(found);
  }

  // Text with white space collapsed, as a reader sees it. With a value, replaces the whole content by that text.
  text(value) {
    if (value === undefined) return textOfNode(this.#node);
    this.empty();
    putNodes(this.#node, 0, [{ text: StringOf(value), up: null }]);
    return this;
  }

  ownText() {
    return ownTextOfNode(this.#node);
  }

  // All text of the element, unchanged.
  wholeText() {
    let text = "";
    walkNodes(this.#node, (node) => {
      if (node.text !== undefined && !dataTags.has(node.up?.tag)) text += node.text;
    }, () => {});
    return text;
  }

  hasText() {
    return this.text() !== "";
  }

  data() {
    return dataOfNode(this.#node);
  }

  html(value) {
    if (value === undefined) return this.#node.kids.map(htmlOfNode).join("");
    const nodes = this.#content(value, this.#node);
    this.empty();
    putNodes(this.#node, 0, nodes);
    return this;
  }

  outerHtml() {
    return htmlOfNode(this.#node);
  }

  toString() {
    return this.outerHtml();
  }

  toJSON() {
    return this.outerHtml();
  }

  // `abs:href` is the absolute link, or "" if there is none.
  attr(name, value) {
    const key = StringOf(name).toLowerCase();
    if (value !== undefined) {
      setAttributeOf(this.#node, key, StringOf(value));
      return this;
    }
    if (!key.startsWith("abs:")) return this.#attribute(key) ?? "";
    return absoluteUrl(this.#attribute(key.slice(4)), this.#page);
  }

  absUrl(name) {
    return this.attr("abs:" + name);
  }

  // SVG names keep their case; all others are already lower case.
  #attribute(key) {
    const { attrs } = this.#node;
    for (let i = 0; attrs && i < attrs.length; i += 2) if (attrs[i].toLowerCase() === key) return attrs[i + 1];
    return undefined;
  }

  hasAttr(name) {
    const key = StringOf(name).toLowerCase();
    return key.startsWith("abs:") ? this.attr(key) !== "" : this.#attribute(key) !== undefined;
  }

  removeAttr(name) {
    dropAttributeOf(this.#node, StringOf(name).toLowerCase());
    return this;
  }

  // A copy, as an object of strings.
  attributes() {
    const { attrs } = this.#node;
    const copy = {};
    for (let i = 0; attrs && i < attrs.length; i += 2) {
      defineProperty(copy, attrs[i], { value: attrs[i + 1], writable: true, configurable: true, enumerable: true });
    }
    return copy;
  }

  id() {
    return this.attr("id");
  }

  className() {
    return this.attr("class").trim();
  }

  classNames() {
    return classesOf(this.#node);
  }

  hasClass(name) {
    return hasClassName(StringOf(name))(this.#node);
  }

  addClass(name) {
    return this.hasClass(name) ? this : this.attr("class", [...this.classNames(), StringOf(name)].join(" "));
  }

  removeClass(name) {
    return this.attr("class", this.classNames().filter((known) => known !== StringOf(name)).join(" "));
  }

  tagName() {
    return this.#node.tag;
  }

  val(value) {
    if (value !== undefined) return this.#node.tag === "textarea" ? this.text(value) : this.attr("value", value);
    return this.#node.tag === "textarea" ? this.text() : this.attr("value");
  }

  children() {
    return this.#list(this.#node.kids.filter((kid) => kid.tag !== undefined));
  }

  child(position) {
    return this.#wrap(this.#node.kids.filter((kid) => kid.tag !== undefined)[position]);
  }

  childrenSize() {
    return this.children().length;
  }

  parent() {
    return this.#wrap(this.#node.up);
  }

  parents() {
    const found = [];
    for (let node = this.#node.up; node !== null && node.tag !== "#root"; node = node.up) found.push(node);
    return this.#list(found);
  }

  nextElementSibling() {
    return this.#wrap(elementBeside(this.#node, 1));
  }

  previousElementSibling() {
    return this.#wrap(elementBeside(this.#node, -1));
  }

  siblingElements() {
    const { up } = this.#node;
    return this.#list(up === null ? [] : up.kids.filter((kid) => kid.tag !== undefined && kid !== this.#node));
  }

  elementSiblingIndex() {
    return placeAmong(this.#node, anySibling, false) - 1;
  }

  after(content) {
    return this.#beside(content, 1);
  }

  before(content) {
    return this.#beside(content, 0);
  }

  append(content) {
    const nodes = this.#content(content, this.#node);
    putNodes(this.#node, this.#node.kids.length, nodes);
    return this;
  }

  prepend(content) {
    putNodes(this.#node, 0, this.#content(content, this.#node));
    return this;
  }

  appendText(text) {
    putNodes(this.#node, this.#node.kids.length, [{ text: StringOf(text), up: null }]);
    return this;
  }

  empty() {
    for (const kid of this.#node.kids) kid.up = null;
    this.#node.kids = [];
    return this;
  }

  remove() {
    if (this.#node.tag !== "#root") detachNode(this.#node);
    return this;
  }
}

class Document extends Element {
  #first(tag) {
    return this.selectFirst(tag);
  }

  title() {
    return this.#first("title")?.text() ?? "";
  }

  head() {
    return this.#first("head");
  }

  body() {
    return this.#first("body") ?? this.#first("frameset");
  }
}

// An array of elements with the methods of one; `map` and `filter` return plain arrays.
class Elements extends ArrayOf {
  static get [SymbolOf.species]() {
    return ArrayOf;
  }

  first() {
    return this[0] ?? null;
  }

  last() {
    return this[this.length - 1] ?? null;
  }

  get(position) {
    const found = this[position];
    if (found === undefined) {
      throw invalidInput("safety.parser.html", "out-of-bounds", `there is no element ${position} in a list of ${this.length}`);
    }
    return found;
  }

  eq(position) {
    return elementsOf(this[position] === undefined ? [] : [this[position]]);
  }

  size() {
    return this.length;
  }

  isEmpty() {
    return this.length === 0;
  }

  select(selector) {
    const found = new UniqueSet();
    for (const element of this) for (const inner of element.select(selector)) found.add(inner);
    return elementsOf(found);
  }

  not(selector) {
    return elementsOf(this.filter((element) => !element.is(selector)));
  }

  is(selector) {
    return this.some((element) => element.is(selector));
  }

  text() {
    return this.eachText().join(" ");
  }

  eachText() {
    return this.map((element) => element.text()).filter((text) => text !== "");
  }

  eachAttr(name) {
    return this.filter((element) => element.hasAttr(name)).map((element) => element.attr(name));
  }

  // The value of the first element that has the attribute; with a value, sets it on all.
  attr(name, value) {
    if (value === undefined) return this.find((element) => element.hasAttr(name))?.attr(name) ?? "";
    for (const element of this) element.attr(name, value);
    return this;
  }

  hasAttr(name) {
    return this.some((element) => element.hasAttr(name));
  }

  hasClass(name) {
    return this.some((element) => element.hasClass(name));
  }

  html() {
    return this.map((element) => element.html()).join("\n");
  }

  outerHtml() {
    return this.map((element) => element.outerHtml()).join("\n");
  }

  toString() {
    return this.outerHtml();
  }

  remove() {
    for (const element of this) element.remove();
    return this;
  }
}

function elementsOf(elements) {
  const list = new Elements();
  for (const element of elements) list.push(element);
  return list;
}

// The same element is always the same object.
function elementOf(node, page) {
  return node.face ??= node.tag === "#root" ? new Document(node, page) : new Element(node, page);
}

function openPage(text, baseUri) {
  const root = treeOf(host(OP.PARSE_HTML, "\n" + text));
  const page = { base: baseUri };
  const [base] = selectNodes(root, "base[href]", 1);
  if (base) page.base = absoluteUrl(attributeOf(base, "href"), page) || baseUri;
  return elementOf(root, page);
}

function absoluteUrl(link, page) {
  if (link === undefined) return "";
  try {
    return page.base === "" ? new globalThis.URL(link).href : new globalThis.URL(link, page.base).href;
  } catch {
    return "";
  }
}
