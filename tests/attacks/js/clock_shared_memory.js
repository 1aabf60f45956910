// attack: count in shared memory while another thread works
// grants: none
// expect: returns ["undefined","undefined","undefined","undefined"]
return [typeof Atomics, typeof Worker, typeof MessageChannel, typeof requestAnimationFrame];
