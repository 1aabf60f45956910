// What a tool may see depends on its grants, one bit each.
function install(grants) {}
