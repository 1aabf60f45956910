// attack: close the wrapper and forge the text by which the loaded function is recognised
// grants: none
// expect: execute.code_invalid
}}, Function.prototype.toString = (q => () => q[0] + JSON.stringify(q) + q[1])(["async function(){{// attack: close the wrapper and forge the text by which the loaded function is recognised\n// grants: none\n// expect: execute.code_invalid\n}}, Function.prototype.toString = (q => () => q[0] + JSON.stringify(q) + q[1])(","), async function () {{\nreturn \"escaped\";\n\n}}"]), async function () {{
return "escaped";
