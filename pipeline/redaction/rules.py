"""The definition of a secret: the detect-secrets plugins in use, and token formats that it lacks.

Gives: `SecretRule`s, each a kind and a pattern, and `RULES_VERSION`, which increases with every change here or of the
masked columns, because a corpus must then be indexed again. Formats are as documented by the providers.

High-entropy detectors are not among the plugins: in code they flag hashes and test data. A value of unknown format
counts only if its name indicates a secret (`ASSIGNMENTS`). Encrypted private keys and UUIDs alone are not secrets.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

__all__ = [
    "ASSIGNMENTS",
    "BARE_KEY",
    "JWK_PRIVATE",
    "KEY_FENCE",
    "PASSWORDS",
    "PLUGINS",
    "PRIVATE_KEYS",
    "RULES_VERSION",
    "STATED",
    "WRAPPED",
    "SecretRule",
    "is_basic",
    "is_chosen",
    "is_generated",
    "is_jumbled",
    "is_mixed",
    "is_telling",
    "token_rules",
]

RULES_VERSION = 6

PLUGINS = (
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("cloudant", "CloudantDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("github_token", "GitHubTokenDetector"),
    ("gitlab_token", "GitLabTokenDetector"),
    ("ibm_cos_hmac", "IbmCosHmacDetector"),
    ("jwt", "JwtTokenDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("openai", "OpenAIDetector"),
    ("pypi_token", "PypiTokenDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("softlayer", "SoftlayerDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("stripe", "StripeDetector"),
    ("telegram_token", "TelegramBotTokenDetector"),
    ("twilio", "TwilioKeyDetector"),
)
"""Module and class of each plugin used. Left out: artifactory (matches words), basic_auth, keyword and private_key
(replaced here by rules that check the value), npm (quadratic on long lines), ibm_cloud_iam and the entropy plugins (any
hash), ip_public (not a secret).
"""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """Text that matches `pattern` is a secret of `kind`; a group named `s`, if any, is the secret itself."""

    kind: str
    pattern: re.Pattern[str]


@cache
def token_rules() -> tuple[SecretRule, ...]:
    """Tokens that are recognizable by their form. `postgres-gateway-token` and `scalr-token` are PASETO-like forms.

    Compiling them is slow, and most questions need none: see `masking`.
    """
    return tuple(SecretRule(kind, re.compile(rf"\b(?:{pattern})", re.ASCII)) for kind, pattern in _TOKENS)


_TOKENS = (
    ("1password-token", r"ops_eyJ[A-Za-z0-9+/_=-]{80,}"),
    ("1password-secret-key", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("adobe-secret", r"p8e-[A-Za-z0-9_-]{32}"),
    ("age-secret-key", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58,}"),
    ("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("akamai-token", r"ak[a-z]{2}-[a-z0-9]{16}-[a-z0-9]{16}(?![A-Za-z0-9.-])"),
    ("alibaba-key-id", r"LTAI[A-Za-z0-9]{16,24}(?![A-Za-z0-9])"),
    ("anthropic-key", r"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{60,}"),
    ("asana-token", r"[12]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}"),
    ("atlassian-token", r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{50,}"),
    ("authress-key", r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}"),
    ("aws-bedrock-key", r"(?:ABSK[A-Za-z0-9+/]{100,}={0,2}|bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=_-]*)"),
    ("aws-mws-key", r"amzn\.mws\.[0-9a-z]{8}(?:-[0-9a-z]{4}){3}-[0-9a-z]{12}"),
    ("azure-secret", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])"),
    ("azure-devops-token", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    ("azure-key", r"[A-Za-z0-9+/]{33,86}(?:\+AMC|APIM|ACDb|\+ACR|AzFu|AzSe|\+ASt|\+ABa|AIoT|\+ARm)[A-Za-z0-9+/]{5,10}={0,2}(?![A-Za-z0-9+/=])"),
    ("bitbucket-password", r"ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("brevo-key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("brevo-smtp-key", r"xsmtpsib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("cerebras-key", r"csk-[a-z0-9]{48}"),
    ("clickhouse-key", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("clojars-token", r"CLOJARS_[0-9a-f]{60}"),
    ("cloudflare-token", r"cf(?:[a-z]t|k)_[A-Za-z0-9]{40,}"),
    ("cloudflare-ca-key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    ("contentful-token", r"CFPAT-[A-Za-z0-9_-]{43}"),
    ("databricks-token", r"(?:dapi|dose|dkea)[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])|dapi[a-z][0-9a-f]{31}(?![A-Za-z0-9])"),
    ("defined-networking-key", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    ("digitalocean-token", r"do[opr]_v1_[0-9a-f]{64}"),
    ("docker-token", r"dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    ("docker-swarm-key", r"SWM(?:TKN-1-[0-9a-z]{50}-[0-9a-z]{25}|KEY-1-[A-Za-z0-9+/]{43})"),
    ("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("dropbox-token", r"sl\.(?:u\.)?[A-Za-z0-9_=-]{100,}"),
    ("duffel-token", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    ("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    ("easypost-key", r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("elastic-key", r"essu_[A-Za-z0-9+/=_-]{40,}"),
    ("facebook-token", r"EAA[A-Za-z0-9]{80,}"),
    ("facebook-app-token", r"[0-9]{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40}(?![A-Za-z0-9_-])"),
    ("figma-token", r"fig[doru]_[A-Za-z0-9_-]{40,}"),
    ("firebase-server-key", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{134,}"),
    ("flutterwave-key", r"FLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?"),
    ("fly-token", r"(?:fo1_[A-Za-z0-9_-]{43}|fm1[ar]_[A-Za-z0-9+/]{100,}={0,3}|fm2_[A-Za-z0-9+/]{100,}={0,3})"),
    ("frameio-token", r"fio-u-[A-Za-z0-9_=-]{64}"),
    ("github-token", r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})"),
    ("gitlab-token", r"gl(?:pat|dt|ft|ffct|soat|rt|rtr|cbt|imt|ptt|agent|oas|wt)-[A-Za-z0-9_.-]{20,}"),
    ("gocardless-token", r"live_[A-Za-z0-9_=-]{40}(?![A-Za-z0-9_=-])"),
    ("google-key", r"AIza[A-Za-z0-9_-]{35}"),
    ("google-oauth-secret", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    ("google-oauth-token", r"(?:ya29\.[A-Za-z0-9_-]{30,}[A-Za-z0-9_.-]*|1//0[A-Za-z0-9_-]{40,})"),
    ("grafana-token", r"(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9+/]{60,}={0,3})"),
    ("groq-key", r"gsk_[A-Za-z0-9]{48,}"),
    ("harness-key", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("heroku-key", r"HRKU-[A-Za-z0-9_-]{36,}"),
    ("hubspot-token", r"pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("huggingface-token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    ("infracost-key", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("intra42-secret", r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    ("jfrog-token", r"(?:AKC[a-z][1-9A-HJ-NP-Za-km-z]{69}|cmVmdGtuOjAx[A-Za-z0-9+/]{40,}={0,2})(?![A-Za-z0-9])"),
    ("jwt-wrapped", r"ZXlK(?:aGJHY2lPaU|MGVYQWlPaU|cmFXUWlPaU|aGRXUWlPaU|amRIa2lPaU|bGJtTWlPaU)[A-Za-z0-9+/_-]{40,}={0,2}"),
    ("langsmith-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    ("mailchimp-key", r"[A-Za-z0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    ("lob-key", r"(?:live|test)_(?:pub_)?[0-9a-f]{31,35}(?![A-Za-z0-9])"),
    ("mailgun-key", r"(?:pub)?key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mapbox-token", r"[ps]k\.eyJ1Ijoi[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{20,}"),
    ("maxmind-key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("messagebird-key", r"MessageBird[ A-Za-z:=]{1,16}[A-Za-z0-9]{25}(?![A-Za-z0-9])"),
    ("newrelic-key", r"NR(?:AK|II|IQ|JS|BR|RA|AA|SP)-[A-Za-z0-9_-]{19,42}"),
    ("newrelic-license-key", r"[a-z0-9]{36}(?:FFFF)?NRAL(?![A-Za-z0-9])"),
    ("nkey-seed", r"S[ACONUX][A-Z2-7]{56}(?![A-Za-z0-9])"),
    ("notion-token", r"(?:ntn_[0-9]{9,12}[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))"),
    ("npm-token", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    ("npm-token", r"_authToken\s{0,3}=\s{0,3}[\"']?(?P<s>[A-Za-z0-9_./+=-]{8,})"),
    ("nuget-key", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("nvidia-key", r"nvapi-[A-Za-z0-9_-]{60,}"),
    ("octopus-key", r"API-[A-Z0-9]{25,32}(?![A-Za-z0-9])"),
    ("onfido-token", r"api_(?:live|sandbox)(?:_(?:us|ca))?\.[A-Za-z0-9_-]{11}\.[A-Za-z0-9_-]{32}"),
    ("openai-key", r"sk-(?:[a-z]{4,10}-)?[A-Za-z0-9_-]{16,}T3BlbkFJ[A-Za-z0-9_-]{16,}"),
    ("openrouter-key", r"sk-or-v1-[0-9a-f]{64}"),
    ("openshift-token", r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("paypal-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("perplexity-key", r"pplx-[A-Za-z0-9]{48}"),
    ("picatic-key", r"sk_(?:live|test)_[0-9a-z]{32}"),
    ("pinecone-key", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("plaid-token", r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("planetscale-token", r"pscale_(?:tkn|oauth|pw|app_secret)_[A-Za-z0-9=._-]{32,}"),
    ("postgres-gateway-token", r"v2\.(?:local|public)\.[A-Za-z0-9_-]{80,}"),
    ("posthog-key", r"ph[acprsx]_[A-Za-z0-9]{40,}"),
    ("postman-key", r"PM(?:AK-[0-9a-f]{24}-[0-9a-f]{34}|AT-[0-9A-Z]{26})"),
    ("prefect-token", r"pn[ub]_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pulumi-token", r"pul-[0-9a-f]{40}(?![A-Za-z0-9])"),
    ("pypi-token", r"pypi-[A-Za-z0-9_-]{80,}"),
    ("rails-key", r"RAILS_MASTER_KEY=(?P<s>[0-9a-f]{32})"),
    ("readme-key", r"rdme_[a-z0-9]{70}"),
    ("replicate-token", r"r8_[A-Za-z0-9]{37,40}(?![A-Za-z0-9])"),
    ("rubygems-key", r"rubygems_[0-9a-f]{48}"),
    ("salesforce-token", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{80,}"),
    ("scalr-token", r"at-[a-z0-9]{14,20}\.[A-Za-z0-9_-]{40,}"),
    ("scalingo-token", r"tk-us-[A-Za-z0-9_-]{48}"),
    ("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}(?![A-Za-z0-9_-])"),
    ("sentry-token", r"(?:sntrys_eyJ[A-Za-z0-9+/=_-]{60,}|sntryu_[0-9a-f]{64})"),
    ("settlemint-token", r"sm_[aps]at_[A-Za-z0-9]{16}"),
    ("shippo-token", r"shippo_(?:live|test)_[0-9a-fA-F]{40}"),
    ("shopify-token", r"shp(?:at|ca|pa|ss|tka|rk|rca)_[0-9a-fA-F]{32}"),
    ("slack-token", r"xox[abcdeoprsx](?:\.xox[bp])?-[A-Za-z0-9%-]{20,}|xapp-[0-9]-[A-Z0-9]{8,}-[0-9]+-[a-z0-9]{32,}"),
    ("slack-webhook", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9+/]{40,60})"),
    ("snyk-token", r"snyk_(?:uat|sat)\.[0-9a-f]{8}\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    ("sonar-token", r"sq[pau]_[0-9a-f]{40}"),
    ("sourcegraph-token", r"sgp_(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}"),
    ("square-token", r"(?:EAAA[A-Za-z0-9+/_=-]{56,64}(?![A-Za-z0-9+/_=-])|sq0(?:atp|csp|idp|ids)-[A-Za-z0-9_-]{22,})"),
    ("stripe-key", r"(?:[rs]k|pk)_(?:test|live|prod)_[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9+/=]{32,}"),
    ("supabase-key", r"sb(?:p_(?:oauth_|v0_)?[0-9a-f]{40}|_secret_[A-Za-z0-9_-]{31,})"),
    ("tailscale-key", r"tskey-[a-z]{3,9}-[A-Za-z0-9]{10,}(?:-[A-Za-z0-9]{10,})?"),
    ("tavily-key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("telegram-token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    ("thunderstore-token", r"tss_[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("together-key", r"tgp_v1_[A-Za-z0-9_-]{43}"),
    ("twitter-token", r"A{18,24}[A-Za-z0-9]{4,12}(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9]){40,}"),
    ("twilio-key", r"SK[0-9a-fA-F]{32}(?![A-Za-z0-9])"),
    ("typeform-token", r"tfp_[A-Za-z0-9_-]{40,}"),
    ("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("vercel-key", r"(?:vcp|vci|vca|vcr|vck)_[A-Za-z0-9_-]{24,}"),
    ("vk-token", r"vk1\.a\.[A-Za-z0-9_-]{80,}"),
    ("wandb-key", r"wandb_v1_[A-Za-z0-9_]{40,}"),
    ("webex-token", r"[A-Za-z0-9]{64}_[A-Z0-9]{4}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("wundergraph-key", r"cosmo_[0-9a-f]{32}"),
    ("xai-key", r"xai-[A-Za-z0-9]{70,}"),
    ("yandex-key", r"(?:y[0-9]_[A-Za-z0-9_-]{55,}|t1\.[A-Za-z0-9_-]+={0,2}\.[A-Za-z0-9_-]{86}={0,2}|AQVN[A-Za-z0-9_-]{35,38}|YC[A-Za-z0-9_-]{38}(?![A-Za-z0-9_-]))"),
)  # fmt: skip

KEY_FENCE = re.compile(r"-----(?P<edge>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""First and last line of key material in PEM or OpenPGP form."""

BARE_KEY = re.compile(r"(?<![A-Za-z0-9+/])(?:M[CEFGHI]|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{36,}")
"""Possible starts of key material: base64 of an ASN.1 sequence or of OpenSSH's magic; `private_keys` decodes it."""

PRIVATE_KEYS = (
    SecretRule("private-key", re.compile(r"PuTTY-User-Key-File-[0-9][\s\S]{20,12000}?Private-Lines: [0-9]+\s+(?:[A-Za-z0-9+/=]+\s+)+")),
    SecretRule("private-key", re.compile(r"<RSAKeyValue>[\s\S]{20,6000}?<D>[^<]{20,}</D>[\s\S]{0,200}?</RSAKeyValue>")),
)  # fmt: skip
"""Key material in other file formats; `masking` excludes encrypted keys."""

JWK_PRIVATE = SecretRule("jwk-private-part", re.compile(r'"(?:d|p|q|dp|dq|qi|k)"\s*:\s*"(?P<s>[A-Za-z0-9_-]{20,}=*)"'))
"""Secret members of a JSON Web Key; they count if the text contains `"kty"`."""

WRAPPED = re.compile(r"LS0tLS1CRUdJTi|0tLS0tQkVHSU4g|tLS0tLUJFR0lO|Imt0eSI|JrdHki|ia3R5I")
"""`-----BEGIN ` and `"kty"` in base64 at each of three alignments; the surrounding word is decoded and checked."""

_NAME = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|api_?-?key|apikey|auth_?-?(?:key|token)|access_?-?(?:key|token)"
    r"|priv(?:ate)?_?-?key|client_?-?key|service_?-?key|account_?-?key|db_?-?pass|token|credential)"
)

ASSIGNMENTS = (
    SecretRule(  # api_key = "…", "password": '…', secret => "…", password("…")
        "assigned-secret",
        re.compile(rf"(?i){_NAME}[A-Za-z0-9_-]{{0,20}}[\"'\]]{{0,2}}[ \t]*(?:=|:|=>|:=|==|\()[ \t]*[bru]?[\"'`](?P<s>[^\s\"'`]{{8,200}})[\"'`]"),
    ),
    SecretRule(  # DB_PASSWORD=…, export API_TOKEN=…
        "assigned-secret",
        re.compile(r"\b[A-Z0-9_]{0,40}(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]{0,20}[ \t]*[=:][ \t]*(?P<s>[^\s\"'`#;,()]{8,200})"),
    ),
    SecretRule(  # --password …, password: …, "the token is …"
        "stated-secret",
        re.compile(rf"(?i){_NAME}[A-Za-z0-9_-]{{0,20}}(?:[\"'\]]?[ \t]{{0,3}}[:=>/|-]{{1,3}}[ \t]{{0,3}}|[ \t]+is[: \t]+|[ \t]+)[\"'`]?(?P<s>[^\s\"'`,;<>]{{8,100}})"),
    ),
    SecretRule("assigned-secret", re.compile(rf"(?i){_NAME}[\"'\s:=>-]{{1,6}}(?P<s>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")),
    SecretRule(  # client_secret=…, api_key=…: in code a name is followed by a comma, a dot or a bracket
        "assigned-secret",
        re.compile(rf"(?i){_NAME}[a-z0-9_-]{{0,20}}=(?P<s>[^\s\"'`,;()\[\].:<>&]{{12,200}})(?=[\s&;]|$)"),
    ),
    SecretRule("authorization", re.compile(r"(?i)authorization[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?(?:basic|bearer|token)[ \t]+(?P<s>[A-Za-z0-9+/_.=~-]{16,})")),
    SecretRule("url-password", re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:\"'<>]{1,80}:(?P<s>[^\s/@\"'<>]{6,100})@[A-Za-z0-9]")),
)  # fmt: skip
"""Values of no known form under a telling name; only those that `is_generated` accepts count."""

_PASSWORD = r"(?i)\b[a-z0-9_]{0,20}(?:passw(?:or)?d|passwd|passphrase|pwd)"

PASSWORDS = (
    SecretRule(
        "password",
        re.compile(
            rf"{_PASSWORD}[\"'\]\\]{{0,4}}[ \t]{{0,3}}(?:=|:|=>|:=)[ \t]{{0,3}}\\{{0,3}}[\"'](?P<s>[^\s\"'`\\]{{8,64}})\\{{0,3}}[\"']"
        ),
    ),
    # Without quotes only if nothing follows: in code such a value is a name, followed by a comma or bracket.
    SecretRule("password", re.compile(rf"{_PASSWORD}=(?P<s>[^\s\"'`,;()\[\].:<>]{{8,64}})(?=\s|$)")),
)
"""Passwords chosen by people, indicated by a name; only those that `is_chosen` accepts count."""

STATED = (
    (  # password = …, pwd: …, with nothing after it: in code the value is a name
        "jumbled",
        SecretRule("password", re.compile(rf"{_PASSWORD}[ \t]{{0,3}}[=:][ \t]{{1,3}}(?P<s>[^\s\"'`,;()\[\].:<>]{{8,64}})(?=[ \t]*[\r\n]|[ \t]*$)")),
    ),
    (  # --password …
        "chosen",
        SecretRule("password", re.compile(r"(?i)(?:^|[\s\"'`])--?[a-z-]{0,20}(?:passw(?:or)?d|passwd|passphrase|pwd)[ =][\"']?(?P<s>[^\s\"'`<>]{8,64})")),
    ),
    (  # | password | … |
        "chosen",
        SecretRule("password", re.compile(r"(?i)\|[ \t*_`]{0,6}[a-z0-9 _-]{0,20}(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[ _-]?key)[ \t*_`]{0,6}\|[ \t*_`]{0,6}(?P<s>[^\s|`<>]{8,64})[ \t*_`]{0,6}(?:\||[\r\n]|$)")),
    ),
    (  # Server=…;Password=…;
        "chosen",
        SecretRule("password", re.compile(r"(?i)[;\"'][ \t]?(?:password|pwd)[ \t]?=[ \t]?(?P<s>[^\s;\"'`<>]{8,64})(?=[;\"']|\s|$)")),
    ),
    (  # Authorization: Basic …
        "basic",
        SecretRule("authorization", re.compile(r"(?i)authorization[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?basic[ \t]+(?P<s>[a-z0-9+/]{8,200}={0,2})")),
    ),
    (  # scheme://user:…@host
        "chosen",
        SecretRule("url-password", re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:\"'<>]{0,80}:(?P<s>[^\s/@\"'<>]{6,100})@[a-z0-9]")),
    ),
    (  # user:…@host.name, user:…@host:5432 and user:…@host/path, without a scheme
        "jumbled",
        SecretRule("url-password", re.compile(r"(?i)(?:^|[\s\"'`=(])(?!mailto:|e-?mail:|mail:|from:|to:|cc:|by:|contact:|author:|sip:|xmpp:|acct:|npm:)[a-z][a-z0-9_.-]{1,30}:(?P<s>[^\s/@:\"'`<>=]{8,64})@[a-z][a-z0-9-]{0,62}(?:\.[a-z]|:[0-9]{2,5}\b|/)")),
    ),
)  # fmt: skip
"""Secrets that are recognized only by their position: the condition on the value, and the rule."""

_PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|change_?me|dummy|your[_-]|redacted|sample|fake|mock|insert|[<>{}$%()|\\]|://|^(?:0x)?[0-9a-f]{0,6}$"
)
_IN_TESTS = re.compile(
    r"(?i)(?:my|new|old|test|user|admin)?_?(?:passw(?:or)?d|pass|pwd|secret|user|admin|test|abc|foo|bar)?_?[0-9]{0,6}"
)
_HEX = re.compile(r"(?i)[0-9a-f]{8,}")
_NAME_LIKE = re.compile(r"[A-Za-z_]+(?:[._:/-][A-Za-z_]*)*[0-9]{0,4}")


_TELLING = re.compile(rf"(?i){_NAME}")


def is_telling(name: str) -> bool:
    """Whether a name indicates that its value may be a secret."""
    return bool(_TELLING.search(name))


def is_chosen(value: str) -> bool:
    """Whether a value has letters and digits like a chosen password, and is not a placeholder, word or common test
    value.
    """
    if _PLACEHOLDER.search(value) or _IN_TESTS.fullmatch(value):
        return False
    return bool(re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value))


def is_jumbled(value: str) -> bool:
    """Like `is_chosen`, with alternating letters and digits or with symbols, as in no name in code."""
    turns = len(re.findall(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])", value))
    return is_chosen(value) and not _HEX.fullmatch(value) and (turns >= 3 or bool(re.search(r"[!#^&*?+~]", value)))


def is_basic(value: str) -> bool:
    """Whether a value is base64 of a name, a colon and a password, RFC 7617."""
    try:
        name, colon, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode("utf-8").partition(":")
    except ValueError:
        return False
    if not colon or not (name + password).isprintable() or len(password) < 4:
        return False
    return not _PLACEHOLDER.search(password) and not _IN_TESTS.fullmatch(password)


def is_mixed(value: str) -> bool:
    """Whether a value is generated and has lowercase, uppercase and digits, as an unquoted value after a name must."""
    return bool(re.search(r"[a-z]", value) and re.search(r"[A-Z]", value)) and is_generated(value)


def is_generated(value: str) -> bool:
    """Whether a value is a generated key or password: letters and digits unlike a name, not a placeholder."""
    if _PLACEHOLDER.search(value) or _NAME_LIKE.fullmatch(value):
        return False
    if not (re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)):
        return False
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values()) >= 2.9
