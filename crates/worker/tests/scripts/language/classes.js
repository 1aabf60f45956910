class A { #secret = 1; static count = 0; static { A.count = 2; } get secret() { return this.#secret; } static #make() { return new A(); } static make() { return A.#make(); } has(o) { return #secret in o; } }
class B extends A { constructor() { super(); this.b = 3; } }
return new B().secret === 1 && A.count === 2 && A.make().has(new B()) && !new A().has({});
