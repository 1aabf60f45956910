// attack: read the cloud's credentials
// grants: fetch:strict
// expect: throws SECURITY metadata-endpoint
fetch("http://169.254.169.254/latest/meta-data/iam/security-credentials/");
