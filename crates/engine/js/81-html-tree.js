// Nodes of a page and their text. Elements are {tag, attrs, kids, up}, other nodes {text}, {comment} or {doctype}, with `up`.
// Nothing here recurses, because pages nest deeply.
function treeOf(list) {
  const root = { tag: "#root", attrs: null, kids: [], up: null };
  let open = root;
  for (let at = 0; at < list.length; at++) {
    const item = list[at];
    if (typeof item === "string") {
      open.kids.push({ text: item, up: open });
    } else if (item === 0) {
      open = open.up;
    } else if (item === 1) {
      const element = { tag: list[at + 1], attrs: list[at + 2] || null, kids: [], up: open };
      open.kids.push(element);
      open = element;
      at += 2;
    } else {
      open.kids.push(item === 2 ? { comment: list[++at], up: open } : { doctype: list[++at], up: open });
    }
  }
  return root;
}

// The next node of the page below `root`, or null after the last.
function nodeAfter(node, root) {
  if (node.kids && node.kids.length > 0) return node.kids[0];
  for (; node !== root; node = node.up) {
    const next = nodeBeside(node, 1);
    if (next !== null) return next;
  }
  return null;
}

// Looks for a node at its last known index before searching all siblings.
function placeOf(node) {
  const { kids } = node.up;
  if (kids[node.place] !== node) {
    for (let i = 0; i < kids.length; i++) kids[i].place = i;
  }
  return node.place;
}

function nodeBeside(node, step) {
  return node.up === null ? null : node.up.kids[placeOf(node) + step] ?? null;
}

function elementBeside(node, step) {
  do node = nodeBeside(node, step); while (node !== null && node.tag === undefined);
  return node;
}

function attributeOf(node, name) {
  for (let i = 0; node.attrs && i < node.attrs.length; i += 2) if (node.attrs[i] === name) return node.attrs[i + 1];
  return undefined;
}

function setAttributeOf(node, name, value) {
  node.attrs ??= [];
  for (let i = 0; i < node.attrs.length; i += 2) if (node.attrs[i] === name) return void (node.attrs[i + 1] = value);
  node.attrs.push(name, value);
}

function dropAttributeOf(node, name) {
  for (let i = 0; node.attrs && i < node.attrs.length; i += 2) if (node.attrs[i] === name) return void node.attrs.splice(i, 2);
}

const classesOf = (node) => (attributeOf(node, "class") ?? "").split(/\s+/).filter((name) => name !== "");

function detachNode(node) {
  if (node.up === null) return;
  node.up.kids.splice(placeOf(node), 1);
  node.up = null;
}

function putNodes(parent, place, nodes) {
  for (const node of nodes) node.up = parent;
  parent.kids = [...parent.kids.slice(0, place), ...nodes, ...parent.kids.slice(place)];
}

// Visits a node and its descendants; calls `enter` before and `leave` after the content of an element.
function walkNodes(root, enter, leave) {
  let node = root;
  for (;;) {
    enter(node);
    if (node.kids && node.kids.length > 0) {
      node = node.kids[0];
      continue;
    }
    for (;;) {
      if (node.tag !== undefined) leave(node);
      if (node === root) return;
      const next = nodeBeside(node, 1);
      if (next !== null) {
        node = next;
        break;
      }
      node = node.up;
    }
  }
}

const tagSet = (text) => new UniqueSet(text.split(" "));
const blockTags = tagSet(
  "html head body frameset script noscript style meta link title frame noframes section nav aside hgroup " +
  "header footer p h1 h2 h3 h4 h5 h6 ul ol pre div blockquote hr address figure figcaption form fieldset " +
  "ins del dl dt dd li table caption thead tfoot tbody colgroup col tr th td video audio canvas details " +
  "menu plaintext template article main svg math center dir applet marquee listing summary",
);
const dataTags = tagSet("script style");
const rawTags = tagSet("script style xmp iframe noembed noframes plaintext");
const voidTags = tagSet("area base br col embed hr img input link meta param source track wbr");

const squeeze = (text) => text.replace(/[\u200b\u00ad]/g, "").replace(/[ \t\n\f\r\u00a0]+/g, " ");
const keepsSpace = (node) => node.tag === "pre" || node.tag === "textarea" || (node.up !== null && node.up.tag === "pre");

// Text as a reader sees it: white space collapsed, blocks and line breaks separated.
class Reading {
  text = "";

  apart() {
    if (this.text !== "" && !/\s$/.test(this.text.slice(-1))) this.text += " ";
  }

  add(node) {
    if (dataTags.has(node.up.tag)) return;
    const text = keepsSpace(node.up) ? node.text : squeeze(node.text);
    this.text += text.startsWith(" ") && (this.text === "" || /\s$/.test(this.text.slice(-1))) ? text.trimStart() : text;
  }
}

function textOfNode(root) {
  const reading = new Reading();
  walkNodes(root, (node) => {
    if (node.text !== undefined) reading.add(node);
    else if (node.tag === "br" || blockTags.has(node.tag)) reading.apart();
  }, (node) => {
    if (node !== root && blockTags.has(node.tag)) reading.apart();
  });
  return reading.text.trim();
}

function ownTextOfNode(root) {
  const reading = new Reading();
  for (const kid of root.kids) {
    if (kid.text !== undefined) reading.add(kid);
    else if (kid.tag === "br") reading.apart();
  }
  return reading.text.trim();
}

// The content of scripts and styles.
function dataOfNode(root) {
  let data = "";
  walkNodes(root, (node) => {
    if (node.text !== undefined && dataTags.has(node.up?.tag)) data += node.text;
  }, () => {});
  return data;
}

const escapeText = (text) =>
  text.replace(/&/g, "&amp;").replace(/\u00a0/g, "&nbsp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const escapeValue = (text) => text.replace(/&/g, "&amp;").replace(/\u00a0/g, "&nbsp;").replace(/"/g, "&quot;");

function openingTag(node) {
  let tag = "<" + node.tag;
  for (let i = 0; node.attrs && i < node.attrs.length; i += 2) tag += ` ${node.attrs[i]}="${escapeValue(node.attrs[i + 1])}"`;
  return tag + ">";
}

// HTML as a browser serialises it, without indentation.
function htmlOfNode(root) {
  const parts = [];
  walkNodes(root, (node) => {
    if (node.tag !== undefined) node.tag === "#root" || parts.push(openingTag(node));
    else if (node.text !== undefined) parts.push(node.up && rawTags.has(node.up.tag) ? node.text : escapeText(node.text));
    else parts.push(node.comment !== undefined ? `<!--${node.comment}-->` : `<!DOCTYPE ${node.doctype}>`);
  }, (node) => {
    if (node.tag !== "#root" && !voidTags.has(node.tag)) parts.push(`</${node.tag}>`);
  });
  return parts.join("");
}
