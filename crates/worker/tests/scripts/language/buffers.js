const b = new ArrayBuffer(8, { maxByteLength: 16 }); b.resize(16);
const moved = b.transfer(4);
return b.detached && moved.byteLength === 4 && new Float64Array([1.5])[0] === 1.5 && new DataView(new ArrayBuffer(4)).getUint32(0) === 0;
