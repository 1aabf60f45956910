// Intl for texts: comparing, segmenting and naming. The host has the data (worker/src/helpers).
const { Uint32Array: Words } = globalThis;
const textLanguages = new UniqueSet(`
  af agq ak am ar ars as asa ast az ba bas be bem bez bg bgc bho blo bm bn bo br brx bs bua ca ccp ce ceb cgg chr ckb cs csw cv cy
  da dav de dje doi dsb dua dyo dz ebu ee el en eo es et eu ewo fa ff fi fil fo fr fur fy ga gaa gd gl gsw gu guz gv ha haw he hi hr
  hsb hu hy ia id ie ig ii is it ja jgo jmc jv ka kab kam kde kea kgp khq ki kk kkj kl kln km kn ko kok ks ksb ksf ksh ku kw kxv ky
  lag lb lg lij lkt lmo ln lo lrc lt lu luo luy lv mai mas mer mfe mg mgh mgo mi mk ml mn mni mr ms mt mua my mzn naq nb nd nds ne
  nl nmg nn nnh no nqo nso nus nyn oc om or os pa pcm pl pms prg ps pt qu raj rm rn ro rof ru rw rwk sa sah saq sat sbp sc scn sd se
  seh ses sg shi shn si sk sl smn sn so sq sr st su sv sw syr szl ta te teo tg th ti tk tn to tok tr tt twq tyv tzm ug uk ur uz vai
  vec vi vmw vun wae wo xh xnr xog yav yi yo yrl yue za zgh zh zu
`.trim().split(/\s+/));
// The collations of `-u-co-` besides the default, and the languages that have them.
const collationTypes = {
  compat: ["ar"], dict: ["si"], emoji: undefined, eor: undefined, phonebk: ["de"], pinyin: ["zh"], stroke: ["zh"],
  trad: ["bn", "es", "fi", "kn", "sv", "vi"], unihan: ["ja", "ko", "zh"], zhuyin: ["zh"],
};

const languageOf = (tag) => /^[a-z]*/.exec(tag)[0];
const supportedText = (tag) => (textLanguages.has(languageOf(tag)) ? tag : undefined);

// The first tag whose language has data, and the same without its extensions.
function textLocale(locales) {
  const tag = localeList(locales).find((one) => supportedText(one) !== undefined) ?? defaultLocale;
  return { tag, locale: tag.replace(/-[a-z\d](?:-.*)?$/i, "") };
}

// The host's answer; undefined if it cannot parse the tag.
function answerFor(tag, answer) {
  if (answer === undefined) throw new OutOfRange(`Incorrect locale information provided: \`${textOf(tag, 80)}\` is not a valid locale`);
  return answer;
}

const flag = (value) => (value === undefined ? "-" : value ? "1" : "0");

function collatorState(locales, given) {
  const options = optionsOf(given);
  const usage = choice(options, "usage", ["sort", "search"], "sort");
  const sensitivity = choice(options, "sensitivity", ["base", "accent", "case", "variant"], "variant");
  const caseFirst = choice(options, "caseFirst", ["upper", "lower", "false"], undefined);
  const first = { upper: "u", lower: "l", false: "0" }[caseFirst] ?? "-";
  const { tag, locale } = textLocale(locales);
  return { tag, locale, usage, sensitivity, settings: sensitivity[0] + flag(options.numeric) + first + flag(options.ignorePunctuation) };
}

function compareTexts({ tag, settings }, one, other) {
  const left = wellFormed(one);
  const right = wellFormed(other);
  return left === right ? 0 : answerFor(tag, host(OP.COLLATE, stringify([tag, settings, left, right])));
}

// The collation that the tag requests, if its language has it.
function collationOf(tag) {
  const type = /-u-(?:.*-)?co-([a-z]+)(?:-|$)/.exec(tag)?.[1];
  if (type === undefined || !hasOwn(collationTypes, type)) return "default";
  return collationTypes[type]?.includes(languageOf(tag)) ?? true ? type : "default";
}

function resolvedCollator({ tag, locale, usage, sensitivity, resolved }) {
  const [numeric, caseFirst, ignorePunctuation] = resolved;
  const collation = collationOf(tag);
  const used = collation === "default" ? locale : `${locale}-u-co-${collation}`;
  return { locale: used, usage, sensitivity, ignorePunctuation, collation, numeric, caseFirst };
}

intlClass("Collator", (locales, options) => {
  const state = collatorState(locales, options);
  state.resolved = answerFor(state.tag, host(OP.COLLATOR, stringify([state.tag, state.settings])));
  return state;
}, {
  compare: compareTexts,
  resolvedOptions: resolvedCollator,
}, { callable: true, bound: ["compare"], supports: supportedText });

// Sorting calls `localeCompare` very often, usually without further arguments.
const defaultOrder = collatorState();
addHidden(StringOf.prototype, {
  localeCompare(that, locales, options) {
    const isDefault = locales === undefined && options === undefined;
    return compareTexts(isDefault ? defaultOrder : collatorState(locales, options), this, that);
  },
});

// An end is 31 bits of a UTF-16 offset; the highest bit marks words.
const endOf = (end) => end & 0x7fffffff;

class Segments {
  #input;
  #ends;
  #isByWord;

  constructor({ tag, granularity }, value) {
    this.#input = `${value}`;
    this.#ends = new Words(answerFor(tag, host(OP.SEGMENT, `${granularity} ${tag}\n${this.#input}`)).buffer);
    this.#isByWord = granularity === "word";
  }

  containing(index) {
    const wanted = Maths.trunc(NumberOf(index)) || 0;
    if (!(wanted >= 0 && wanted < this.#input.length)) return undefined;
    let [low, high] = [0, this.#ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endOf(this.#ends[middle]) > wanted) high = middle;
      else low = middle + 1;
    }
    return Segments.at(this, low);
  }

  [SymbolOf.iterator]() {
    return new SegmentIterator(this);
  }

  static at(segments, position) {
    if (position >= segments.#ends.length) return undefined;
    const end = segments.#ends[position];
    const index = position === 0 ? 0 : endOf(segments.#ends[position - 1]);
    const data = { segment: apply(sliceText, segments.#input, [index, endOf(end)]), index, input: segments.#input };
    if (segments.#isByWord) data.isWordLike = end >>> 31 === 1;
    return data;
  }
}

class SegmentIterator {
  #segments;
  #position = 0;

  constructor(segments) {
    this.#segments = segments;
  }

  next() {
    const value = Segments.at(this.#segments, this.#position);
    if (value !== undefined) this.#position += 1;
    return { value, done: value === undefined };
  }
}

// As on the platform, objects do not expose their class.
delete Segments.prototype.constructor;
delete SegmentIterator.prototype.constructor;
ObjectOf.setPrototypeOf(SegmentIterator.prototype, globalThis.Iterator.prototype);
defineProperty(SegmentIterator.prototype, SymbolOf.toStringTag, { value: "Segmenter String Iterator", configurable: true });

intlClass("Segmenter", (locales, given) => {
  const options = optionsOf(given);
  const granularity = choice(options, "granularity", ["grapheme", "word", "sentence"], "grapheme");
  return { ...textLocale(locales), granularity };
}, {
  segment: (state, value) => new Segments(state, value),
  resolvedOptions: ({ locale, granularity }) => ({ locale, granularity }),
}, { supports: supportedText });

const codeForms = { region: /^(?:[a-z]{2}|\d{3})$/i, script: /^[a-z]{4}$/i, currency: /^[a-z]{3}$/i };

function canonicalCode(type, code) {
  if (type === "language") {
    const tag = languageTag.test(code) ? canonicalTag(code) : "";
    if (tag === "" || /-[a-z\d](?:-|$)/i.test(tag)) throw new OutOfRange(`Invalid argument to Intl.DisplayNames.prototype.of: ${textOf(code, 80)}`);
    return tag;
  }
  if (!codeForms[type].test(code)) throw new OutOfRange(`Invalid argument to Intl.DisplayNames.prototype.of: ${textOf(code, 80)}`);
  return type === "script" ? code[0].toUpperCase() + code.slice(1).toLowerCase() : code.toUpperCase();
}

const displayName = (type, code) => host(OP.DISPLAY_NAME, `${type} ${code}`);

// The longest named prefix, then script, region and variants in parentheses.
function languageName(tag, languageDisplay) {
  const parts = tag.split("-");
  const dialect = languageDisplay === "dialect" && parts.length === 2 ? displayName("language", tag) : undefined;
  if (dialect !== undefined) return dialect;
  const name = displayName("language", parts[0]);
  if (name === undefined) return undefined;
  const details = parts.slice(1).map((part) => {
    const type = codeForms.script.test(part) ? "script" : codeForms.region.test(part) ? "region" : undefined;
    return (type && displayName(type, part)) ?? part;
  });
  return details.length === 0 ? name : `${name} (${details.join(", ")})`;
}

intlClass("DisplayNames", (locales, given) => {
  if (typeof given !== "object" || given === null) throw new WrongType("Intl.DisplayNames needs options with a `type`");
  const { locale } = textLocale(locales);
  const style = choice(given, "style", ["narrow", "short", "long"], "long");
  const type = choice(given, "type", ["language", "region", "script", "currency"], undefined);
  if (type === undefined) throw new WrongType("Required option \"type\" must not be undefined");
  const fallback = choice(given, "fallback", ["code", "none"], "code");
  const languageDisplay = choice(given, "languageDisplay", ["dialect", "standard"], "dialect");
  return { locale, style, type, fallback, languageDisplay };
}, {
  of({ type, fallback, languageDisplay }, code) {
    const canonical = canonicalCode(type, `${code}`);
    const name = type === "language" ? languageName(canonical, languageDisplay) : displayName(type, canonical);
    return name ?? (fallback === "code" ? canonical : undefined);
  },
  resolvedOptions({ locale, style, type, fallback, languageDisplay }) {
    return type === "language" ? { locale, style, type, fallback, languageDisplay } : { locale, style, type, fallback };
  },
}, { supports: supportedText });
