"""Secrets as people and programs write them. All of them are made up, and put together here from
parts, so that nobody who searches this repository for secrets finds one.

The tokens of services have the form that each detector of detect-secrets looks for. Some are the
samples of that project's own tests (Yelp/detect-secrets, Apache License 2.0).
"""

from __future__ import annotations

import json
import re

RANDOM = "Xk39fj" + "Q02mLpz8Vt"
VALUES = (
    RANDOM,
    "hunter" + "2",
    "s3cr3t" + "!pw",
    "correct-Horse7" + "-battery",
    "9f86d081884c7d65" + "9a2feaa0c55ad015",
    "aB3dEfGh" + "IjKlMnOpQrSt",
)

NAMES = (
    *("smtp_pwd", "db_pass", "authorization", "session_cookie", "connection_string"),
    *("password", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "passwd", "passphrase", "ssh_pass"),
    *("api_key", "API_KEY", "apiKey", "X-API-Key", "X-Auth-Token", "AWS_SESSION_TOKEN"),
    *("aws_secret_access_key", "client_secret", "clientSecret", "SECRET_KEY_BASE", "private_key"),
    *("access_token", "refreshToken", "GITHUB_TOKEN", "GITHUB_PAT", "npm_token", "REDIS_AUTH"),
    *("DATABASE_PASSWORD_PROD", "spring.datasource.password", "credentials", "token", "secret"),
)

ENVIRONMENT = {
    "assignment": "{name}={value}",
    "exported": "export {name}={value}\nHOST=a",
    "among others": "# local\nHOST=a\n{name}={value}\nPORT=1\n",
    "in quotes": '{name}="{value}"',
    "properties": "{name}={value}",
    "Dockerfile": "ENV {name} {value}",
    "Dockerfile, with =": "ENV {name}={value}",
    "PowerShell": '$env:{name} = "{value}"',
    "fish": "set -x {name} {value}",
    "a difference": "+{name}={value}",
    "found by grep": ".env:3:{name}={value}",
    "with a line's number": "     3|{name}={value}",
}
MARKED_UP = {
    "YAML": "db:\n  {name}: {value}\n  port: 1",
    "YAML, in quotes": "{name}: '{value}'",
    "TOML": '[db]\n{name} = "{value}"',
    "INI": "[db]\n{name} = {value}\n",
    "XML": "<{name}>{value}</{name}>",
    "Kubernetes": "- name: {name}\n  value: {value}",
}
JSON = {
    "JSON": '{{"{name}": "{value}", "port": 1}}',
    "JSON without blanks": '{{"port":1,"{name}":"{value}"}}',
    "a task definition": '{{"name": "{name}", "value": "{value}"}}',
    "a dict": "{{'{name}': '{value}'}}",
    "JavaScript": "const settings = {{ {name}: '{value}' }};",
    "PHP": "define('{name}', '{value}');",
}
COMMAND_LINE = {
    "header": "{name}: {value}",
    "header of curl": "curl -H '{name}: {value}' https://example.org",
    "option": "tool --{name} {value} run",
    "option with =": "tool --{name}={value} run",
    "of a container": "docker run -e {name}={value} image",
    "before a command": "{name}={value} run",
}
PROSE = {
    "sentence": "I set {name}={value} in the file",
    "query": "https://example.org/?a=1&{name}={value}&b=2",
    "connection string": "Server=db;{name}={value};Timeout=1",
    "error": "KeyError: {{'{name}': '{value}'}}",
}
FORMS = {**ENVIRONMENT, **MARKED_UP, **JSON, **COMMAND_LINE, **PROSE}


def written(form: str, name: str, value: str) -> str:
    """A name and its value in one of the forms."""
    return FORMS[form].format(name=name, value=value)


def nested(name: str, value: str) -> str:
    """JSON in a text of JSON."""
    return json.dumps({"body": json.dumps({name: value})})


def printed(name: str, value: str) -> str:
    """A file of settings as a tool gives it."""
    return json.dumps({"output": f"HOST=a\n{name}={value}\nPORT=1\n", "exit_code": 0})


# Where the form, and not a name, says what is secret.
BY_FORM = {
    "curl -u": f"curl -u user:{RANDOM} https://example.org",
    "curl --user=": f"curl --user=user:{RANDOM} https://example.org",
    "httpie": f"http -a user:{RANDOM} example.org",
    "netrc": f"machine example.org login bob password {RANDOM}",
    "netrc in lines": f"machine example.org\n  login bob\n  password {RANDOM}\n",
    "npm": f"//registry.example.org/:_authToken={RANDOM}",
    "Azure SAS": f"https://a.blob.core.windows.net/b?sv=1&sig={RANDOM}%3D&se=2",
    "address": f"postgres://bob:{RANDOM}@db.example.org:5432/x",
    "address of a container": f"postgres://bob:{RANDOM}@db:5432/x",
    "bearer": f"sent Authorization: Bearer {RANDOM}",
    "sentence": f"the password is {RANDOM}",
    "list": f'{{"api_keys": ["{RANDOM}"]}}',
    "declared": f'password: str = "{RANDOM}"',
    "of Go": f'var password string = "{RANDOM}"',
    "curl -su": f"curl -sSu user:{RANDOM} https://example.org",
    "curl -b": f"curl -b 'session={RANDOM}' https://example.org",
    "token in the place of the user": f"git clone https://{RANDOM}@github.com/a/b",
    "YAML, a tag": f"password: !vault {RANDOM}",
    "YAML, a list": f"passwords: [first, {RANDOM}]",
    "YAML, a list below": f"passwords:\n  - first\n  - {RANDOM}\nport: 1",
    "JSON in one line": f'[{{"name":"DB_PASSWORD","value":"{RANDOM}"}}]',
    "property list": f"<key>ApiKey</key>\n  <string>{RANDOM}</string>",
    "XML in lines": f"<apiKey>\n  {RANDOM}\n</apiKey>",
    "PowerShell's secure string": f'$p = ConvertTo-SecureString "{RANDOM}" -AsPlainText',
    "Makefile": f"DB_PASSWORD ?= {RANDOM}",
    "Makefile, more": f"DB_PASSWORD+={RANDOM}",
    "a quotation that is cut off": f"DB_PASSWORD='{RANDOM}",
    "colors": f"\x1b[01;31mDB_PASSWORD\x1b[m=\x1b[32m{RANDOM}\x1b[0m",
    "blanks that do not break": f"DB_PASSWORD\xa0=\xa0{RANDOM}",
    "SQL": f"CREATE USER bob IDENTIFIED BY '{RANDOM}';",
    "data source of Go": f"bob:{RANDOM}@tcp(db.example.org:3306)/x",
    "pgpass": f"db.example.org:5432:*:bob:{RANDOM}",
    "GitHub Actions": f"echo ::add-mask::{RANDOM}",
    "Vault": f"vault login {RANDOM}",
}
BASIC = "Ym9iOmh1" + "bnRlcjI="  # a name and a password
BY_BASE64 = {
    "docker": f'{{"auths": {{"example.org": {{"auth": "{BASIC}"}}}}}}',
    "npm": f"_auth={BASIC}",
    "basic": f"Authorization: Basic {BASIC}",
    "Kubernetes": f"data:\n  password: {BASIC}\nkind: Secret",
}

_HEX = "abcd1234"
SERVICES = {
    "Artifactory": "AKC" + "x" * 10,
    "Artifactory, password": "AP6" + "x" * 10,
    "AWS": "AKIA" + "Z" * 16,
    "Azure Storage": "AccountKey=" + "aB3dEfGh" * 10 + "+/V1wX==",
    "Discord": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "GitHub": "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
    "GitLab": "glpat-" + "hellOworld380_testin",
    "GitLab, deploying": "gldt-" + "HwllOuhfw-wu0rlD_yep",
    "GitLab, runners": "GR1348941" + "PREfix_helloworld380",
    "GitLab, of a job": "glcbt-" + "helloworld380_testin",
    "IBM Cloud": "ibm_cloud_api_key: " + _HEX * 3 + _HEX.upper() * 2 + "--__",
    "IBM COS": "cos_hmac_secret_access_key=" + _HEX * 6,
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fw",
    "Mailchimp": "343ea45721923ed956e2b38c31db76aa" + "-us30",
    "npm": "npm_" + "aB3" * 12,
    "OpenAI": "sk-" + "Xi8tcNiHV9awbCcvilTeT3BlbkFJ3UDnpdEwNNm6wVBpYM0o",
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + "CJDU3OTM1" * 9,
    "SendGrid": "SG." + "ngeVfQFYQlKU0ufo8x5d1A" + ".TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr",
    "Slack": "xoxp-" + "523423-234243-234233-e039d02840a0b9379c",
    "Slack, webhook": "https://hooks.slack.com/services/" + "Txxxxxxxx/Bxxxxxxxx/" + "x" * 24,
    "SoftLayer": "softlayer_api_key: " + _HEX * 8,
    "SoftLayer, address": "https://api.softlayer.com/soap/v3/" + _HEX * 8,
    "Cloudant": "cloudant_password='" + _HEX * 8 + "'",
    "Cloudant, address": "https://name:" + _HEX * 8 + "@name.cloudant.com",
    "Square": "sq0csp-" + "ABCDEFGHIJK_LMNOPQRSTUVWXYZ-0123456789\\abcd",
    "Stripe": "sk_live_" + "ReTllpYQYfIZu2Jnf2lAPFjD",
    "Telegram": "110201543" + ":AAHdqTcvCH1vGWJxfSe1ofSAs0K5PALDsaw",
    "Twilio": "SK" + "x" * 32,
    "Twilio, account": "AC" + "x" * 32,
    "private key": "-----BEGIN PRIVATE KEY-----\n" + "MIIEow" * 10 + "\n-----END PRIVATE KEY-----",
}  # fmt: skip
SERVICE_FORMS = ("assignment", "YAML, in quotes", "JSON", "option", "sentence")


def secret_of(sample: str) -> str:
    """The part of a sample that has to be gone: the end of its longest word."""
    return max(re.split(r"[^\w-]", sample), key=len)[-16:]
