// expect: ["", "https://y.test/z", "https://x.test/b/rel?q", "https://x.test/top", "", "https://cdn.test/base/rel"]
const html = "<a href='rel?q'>1</a><a href='/top'>2</a><a href='https://y.test/z'>3</a><a href='http://['>4</a>";
const bare = safety.parser.html(html);
const based = safety.parser.html(html, "https://x.test/b/page.html");
const own = safety.parser.html("<base href='https://cdn.test/base/'><a href=rel>", "https://x.test/");
return [
  bare.select("a").get(0).attr("abs:href"),
  bare.select("a").get(2).attr("abs:href"),
  based.select("a").get(0).attr("abs:href"),
  based.select("a").get(1).absUrl("href"),
  based.select("a").get(3).attr("abs:href"),
  own.selectFirst("a").attr("abs:href"),
];
