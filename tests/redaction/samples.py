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
    "HTML, a field": f'<input type="password" name="pw" value="{RANDOM}">',
    "HTML, the value first": f'<input value="{RANDOM}" name="password" id="a"/>',
    "XML, settings of .NET": f'<setting name="ApiKey">\n  <value>{RANDOM}</value>\n</setting>',
    "XML, settings of Hadoop": f"<name>db.password</name>\n  <value>{RANDOM}</value>",
    "XML, a named element": f'<string name="api_key">{RANDOM}</string>',
    "XML, an attribute": f'<password encrypted="false">{RANDOM}</password>',
    "XML, as it is": f"<password><![CDATA[{RANDOM}]]></password>",
    "JSON, the value first": f'{{"value": "{RANDOM}", "name": "DB_PASSWORD"}}',
    "AWS": f'{{"Name": "DB_PASSWORD", "Type": "String", "Value": "{RANDOM}"}}',
    "CloudFormation": f"ParameterKey=DBPassword,ParameterValue={RANDOM}",
    "YAML, a block": f"password: >-\n  {RANDOM}\nport: 1",
    "YAML, the next line": f'password:\n  "{RANDOM}"\nport: 1',
    "Python, the next line": f'password = (\n    "{RANDOM}"\n)',
    "Terraform": f'variable "db_password" {{\n  type = string\n  default = "{RANDOM}"\n}}',
    "Terraform, a change": f'  ~ password = "old" -> "{RANDOM}"',
    "SQL, the rows of a table": f"INSERT INTO a (n, password) VALUES (1, 'a'), (f(2), '{RANDOM}');",
    "SQL, a call": f"SET PASSWORD FOR 'bob'@'localhost' = PASSWORD('{RANDOM}');",
    "Java": f'builder.withPassword("{RANDOM}")',
    "Windows, a user": f"net user bob {RANDOM} /add",
    "PowerShell, another order": f"ConvertTo-SecureString -AsPlainText -Force '{RANDOM}'",
    "ODBC": f"Server=db;UID=sa;PWD={{{RANDOM}}}",
    "Oracle": f"sqlplus bob/{RANDOM}@db",
    "a form in an address": f"user%3Dbob%26password%3D{RANDOM}%26x%3D1",
    "SMTP": f"AUTH PLAIN {RANDOM}==",
    "redis.conf": f"requirepass {RANDOM}",
    "sentence, of whom": f"Password for bob is {RANDOM}",
    "sentence, a prompt": f"Password for user 'bob': {RANDOM}",
    "words of a failed command": f"Command '['mysql', '-p{RANDOM}']' returned 1",
    "words of a command": f"['redis-cli', '-a', '{RANDOM}']",
    "-u and -p": f"mongosh -u bob -p {RANDOM} --quiet",
    "GitHub's secrets": f'gh secret set A --body "{RANDOM}"',
    "kubectl": f"kubectl create secret generic x --from-literal=a={RANDOM}",
    "OpsGenie": f"Authorization: GenieKey {RANDOM}",
    "NTLM": f"ntlm_hash={RANDOM}",
    **{
        word: f"{word}: {RANDOM}"
        for word in (
            *("Contraseña", "contrasena", "senha", "mot de passe", "Kennwort", "密码", "비밀번호"),
            *("hasło", "wachtwoord", "パスワード", "\u043f\u0430\u0440\u043e\u043b\u044c"),
        )
    },
    "a colon of full width": f"密码\uff1a{RANDOM}",
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
    "GitHub, of an app": "ghs_12345_eyJ" + "aB3d" * 12 + ".eyJ" + "aB3d" * 12 + "." + "aB3d" * 12,
    "GitLab, routable": "glpat-" + "aB3dE" * 6 + ".01." + "ab3de4fg9",
    "Vercel": "vcp_" + "aB3dEfGh" * 3,
    "Supabase": "sb_secret_" + "aB3dEfG_" * 4,
    "Cloudflare": "cfut_" + "aB3dEfGh" * 6,
    "Linear": "lin_oauth_" + _HEX * 8,
    "Resend": "re_" + "aB3dEfGh" + "_" + "aB3dEfGh" * 3,
    "Pinecone": "pcsk_" + "aB3dEf_" * 9,
    "Azure DevOps": "aB3d" * 19 + "AZDO" + "aB3d",
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
