// attack: read a file and blow up memory through entities
// grants: none
// expect: throws SECURITY doctype-refused
return safety.parser.xml('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>');
