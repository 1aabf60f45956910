// attack: elements with more attributes than a tree can hold
// grants: none
// limits: statements=1000000 timeout=30000
// expect: throws HELPER_RUNTIME result-too-large
return safety.parser.xml("<r>" + "<a b='' c='' d='' e='' f='' g=''/>".repeat(150000) + "</r>");
