// expect: [32,32,32,32,"function",32]
const digest = crypto.subtle.digest("SHA-256", new Uint8Array(1));
const sizes = [];
digest.then((bytes) => sizes.push(bytes.byteLength));
digest.then((bytes) => sizes.push(bytes.byteLength));
const awaited = await digest;
sizes.push(awaited.byteLength, (await Promise.all([digest, awaited]))[1].byteLength, typeof awaited.then);
sizes.push((await digest.then((bytes) => bytes)).byteLength);
return sizes;
