// attack: read the cloud's credentials by name
// grants: fetch:open
// expect: returns []
const reached = [];
for (const host of ["metadata.google.internal", "METADATA.GOOGLE.INTERNAL", "metadata.google.internal.", "metadata", "instance-data", "metadata.azure.internal", "metadata\u3002google\u3002internal", "%6detadata.google.internal"]) {
  try {
    fetch(`http://${host}/computeMetadata/v1/`, { headers: { "Metadata-Flavor": "Google" } });
    reached.push(host);
  } catch (error) {
    if (error.reason !== "metadata-endpoint") reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
