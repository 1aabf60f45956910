// expect: ["2026","\ud83d\ude00",true,"b",3]
const year = "on 2026-11-16".match(/(?<year>\d{4})-(?<month>\d\d)/).groups.year;
const smile = "\u{1F600}".match(/\p{Emoji_Presentation}/v)[0];
const look = /(?<!a)b(?!c)/.test("xbd");
const sticky = /b/y; sticky.lastIndex = 1;
return [year, smile, look, sticky.exec("abc")[0], [..."a1b2c3".matchAll(/\d/g)].length];
