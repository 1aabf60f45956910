// attack: write the placeholder where its value would be filled in
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: returns "${TOKEN} $TOKEN {{TOKEN}}"
return "${TOKEN} $TOKEN {{TOKEN}}";
