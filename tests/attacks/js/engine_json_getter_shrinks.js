// attack: change the list and its keys while they are written down
// grants: none
// expect: returns "string"
const list = [{ toJSON() { list.length = 1; delete list.x; return "first"; } }, 2, 3, 4];
const object = { get a() { delete object.b; object.c = 1; return list; }, b: 2 };
return typeof JSON.stringify(object);
