// attack: switch the prelude's check off and slice before the beginning
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-request
Number.isSafeInteger = () => true;
fetch("http://192.0.2.1/", { startIndex: 1.5 });
