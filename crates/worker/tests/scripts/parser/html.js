// expect: []
// The page of a news site, queried as with jsoup.
const checks = [];
const same = (found, expected) => { if (JSON.stringify(found) !== JSON.stringify(expected)) checks.push([expected, found]); };
const page = safety.parser.html(`<!doctype html><html><head><title> The
  News </title><style>p { color: red }</style><script>let a = "<p>no</p>";</script></head>
<body><div id="main" class="Wide page"><h1>Top &amp; bottom</h1><p>First <b>bold</b>text.<br>Line two</p><p class="lead">  Second
 paragraph </p><ul><li>1</li><li class=x>2</li><li>3</li></ul><a href="/rel">rel</a><a href="https://x.test/a?b=1&amp;c=2">abs</a>
<input name=q value="v"><textarea>t 1</textarea><pre>a
 b</pre></div><footer>Foot</footer></body></html>`);
same(page.title(), "The News");
same(page.select("h1").first().text(), "Top & bottom");
same(page.body().select("p").eachText(), ["First boldtext. Line two", "Second paragraph"]);
same(page.select("p").get(0).ownText(), "First text. Line two");
same(page.select("li").size(), 3);
same(page.select("li").text(), "1 2 3");
same(page.select("#main > ul > li:nth-child(2)").attr("class"), "x");
same(page.selectFirst("li.x").nextElementSibling().text(), "3");
same(page.selectFirst("li.x").previousElementSibling().text(), "1");
same(page.selectFirst("li.x").parent().tagName(), "ul");
same(page.selectFirst("table"), null);
same(page.select("script").first().data(), "let a = \"<p>no</p>\";");
same(page.select("style, script").remove().size(), 2);
same(page.head().text(), "The News");
same(page.selectFirst("div").hasClass("wide"), true);
same(page.selectFirst("div").classNames(), ["Wide", "page"]);
same(page.selectFirst("div").id(), "main");
same(page.selectFirst("input").val(), "v");
same(page.selectFirst("textarea").val(), "t 1");
same(page.selectFirst("pre").text(), "a\n b");
same(page.select("a").map((link) => link.attr("href")), ["/rel", "https://x.test/a?b=1&c=2"]);
same(page.selectFirst("a").attributes(), { href: "/rel" });
same(page.selectFirst("a").attr("missing"), "");
same(page.selectFirst("a").hasAttr("href"), true);
same(page.selectFirst("li").outerHtml(), "<li>1</li>");
same(page.selectFirst("p").html(), "First <b>bold</b>text.<br>Line two");
same([...page.select("li")].length, 3);
same(page.select("li") instanceof Array && !(page.select("li").map((item) => item).first), true);
same(page.selectFirst("li") === page.select("li").first(), true);
same(JSON.stringify({ item: page.selectFirst("li") }), "{\"item\":\"<li>1</li>\"}");
// Later queries see changes.
page.selectFirst("h1").after("<p>after</p>").before("<p>before</p>").append("<i>!</i>").prepend("<i>?</i>").attr("data-x", "<\"&>");
same(page.selectFirst("h1").outerHtml(), "<h1 data-x=\"<&quot;&amp;>\"><i>?</i>Top &amp; bottom<i>!</i></h1>");
same(page.select("#main > p").eachText(), ["before", "after", "First boldtext. Line two", "Second paragraph"]);
page.select("ul").first().append("<li>4</li>");
same(page.select("li").eachText(), ["1", "2", "3", "4"]);
page.selectFirst("ul").text("<plain>");
same(page.selectFirst("ul").html(), "&lt;plain&gt;");
page.select("table, p, div").remove();
same(page.body().text(), "Foot");
same(page.html().startsWith("<!DOCTYPE html><html><head><title>"), true);
return checks;
