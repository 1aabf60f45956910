// attack: a second header inside the first
// grants: fetch:strict
// expect: execute.tool_failed
fetch("http://192.0.2.1/", { headers: { "x-a": "b\r\nX-Injected: yes" } });
