// attack: encode the secret with the old function `escape`
// grants: none
// secret: TOKEN=Hünter2/Sesame€'42
// expect: never Sesame
return escape(TOKEN);
