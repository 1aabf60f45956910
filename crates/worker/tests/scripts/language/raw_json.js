// expect: "\ufffd"
return JSON.rawJSON('"\\uD800"');
