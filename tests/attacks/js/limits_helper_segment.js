// attack: segment a long text outside of the engine
// grants: none
// limits: statements=2000
// expect: execute.statements
return [...new Intl.Segmenter("th", { granularity: "word" }).segment("a".repeat(1000000))].length;
