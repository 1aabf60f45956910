let password: String = prompt();
let token = self.tokens.next().ok_or(Error::UnexpectedToken)?;
struct Login { password: SecretString, api_key: Option<ApiKey> }
if secret.is_empty() { return Err("the secret is empty") }
let secret = &config.secret;
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
