// attack: run the stack out with native frames between those of JavaScript
// grants: none
// expect: execute.stack
const dive = () => [2, 1].sort(() => "a".replace(/a/, () => JSON.stringify({ toJSON: dive }).length));
return dive();
