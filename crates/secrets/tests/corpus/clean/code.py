import os
password = os.environ["DB_PASSWORD"]
password: str = getpass()
api_key = settings.api_key
secret = get_secret("name")
token = request.headers.get("Authorization")
client_secret = None
def login(user, password: string, token=None): pass
if password == "": raise ValueError("password must not be empty")
auth = f"Bearer {token}"
url = f"postgres://{user}:{password}@{host}/db"
PASSWORD_MIN_LENGTH = 12
secret_key = base64.b64decode(raw)
api_key = "<your api key>"
api_key = "${API_KEY}"
