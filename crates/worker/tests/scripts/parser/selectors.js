// expect: []
const checks = [];
const same = (found, expected) => { if (JSON.stringify(found) !== JSON.stringify(expected)) checks.push([expected, found]); };
const page = safety.parser.html(`<main><section id=one class="a b"><h2>One</h2><p>x</p><p lang="en-GB">y <em>deep</em></p></section>
<section id=two data-kind="news item" data-n=5><h2>Two</h2><div><p>z</p><span></span></div><a href="http://e.test/pic.PNG">pic</a></section></main>`);
const ids = (selector) => page.select(selector).map((element) => element.id() || element.ownText() || element.tagName());
const cases = {
  "section": ["one", "two"], "*.a": ["one"], ".A.b": ["one"], "section#two": ["two"], "SECTION": ["one", "two"],
  "[data-kind]": ["two"], "[data-n=5]": ["two"], "[data-n='5']": ["two"], "[data-n!=5]#one": ["one"], "[^data-]": ["two"],
  "[href^=http]": ["pic"], "[href$=.png]": ["pic"], "[href*=e.test]": ["pic"], "[data-kind~=item]": ["two"], "[href~=(?i)\\.png$]": ["pic"], "[lang|=en]": ["y"],
  "main p": ["x", "y", "z"], "section > p": ["x", "y"], "h2 + p": ["x"], "h2 ~ p": ["x", "y"], "main > section > div > p": ["z"],
  "p:first-child": ["z"], "section > :last-child": ["y", "pic"], "section > :nth-child(2)": ["x", "div"], "section > :nth-child(odd)": ["One", "y", "Two", "pic"],
  "section > :nth-child(-n+2)": ["One", "x", "Two", "div"], "section > :nth-last-child(1)": ["y", "pic"], "p:first-of-type": ["x", "z"], "p:nth-of-type(2)": ["y"], "em:only-child": ["deep"],
  "p:not(:first-of-type)": ["y"], "section:not(.a, .c)": ["two"], "p:contains(DEEP)": ["y"], "p:containsOwn(deep)": [], "section:has(em)": ["one"],
  "section:has(> p)": ["one"], "section:has(> div > p, nothing)": ["two"], "h2:has(+ p)": ["One"], "span:empty": ["span"], "h2, p": ["One", "x", "y", "Two", "z"],
  "p:eq(1)": ["x"], "p:gt(1)": ["y"], "section:is(#one, #two) em": ["deep"], ":root": ["html"], "p:matches(^z$)": ["z"], "#none": [],
};
for (const [selector, expected] of Object.entries(cases)) same([selector, ids(selector)], [selector, expected]);
same(page.selectFirst("#two").select("> div p").eachText(), ["z"]);
same(page.selectFirst("#two").select("section").size(), 1);
same(page.selectFirst("em").closest("section").id(), "one");
same(page.selectFirst("em").is("p em"), true);
same(page.selectFirst("em").parents().map((up) => up.tagName()), ["p", "section", "main", "body", "html"]);
for (const bad of ["", " ", "p >", ">", ",p", "p,", "p[", "p[a=]x]", "p:nope", "p:nth-child(x)", "p:nth-child()", "p:not(", ":has()", "p..a", "#", "a:eq(b)", "[x~=(]", "p)", "p{}"]) {
  try {
    page.select(bad);
    checks.push(["refused", bad]);
  } catch (error) {
    same([bad, error.kind, error.reason, error.helper], [bad, "INVALID_INPUT", "invalid-selector", "safety.parser.html"]);
  }
}
return checks;
