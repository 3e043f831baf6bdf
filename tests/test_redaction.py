"""Redaction: secrets are masked, everything else is left, and a second pass changes nothing.

Secrets in this file are put together from pieces, so that scanners of the repository do not report them.
"""

from __future__ import annotations

import base64
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.pipeline.redaction.masking import (
    mask_spans,
    redact_columns,
    redact_text,
)

MASK = re.compile(r"\[REDACTED:[a-z0-9-]+\]")
BODY = "MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAxAIxg6QtxmnJ0Bsj"
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
SECRETS = {
    "aws-access-key": "AKIA" + "QWERTYUIOPASDFGH",
    "github-token": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "stripe-key": "sk_" + "live_a1B2c3D4e5F6g7H8i9J0k1L2",
    "slack-token": "xoxb-" + "123456789012-123456789012-a1B2c3D4e5F6g7H8i9J0k1L2",
    "google-key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "private-key": f"{BEGIN}\n{BODY}\n{BODY}\nVC9=\n{END}",
    "anthropic-key": "sk-ant-" + "api03-" + "a1B2c3D4" * 11 + "-abcdeAA",
}
HARMLESS = (
    "password: str = None",
    "secret_key = os.environ['SECRET_KEY']",
    "login(user=name, password=field2value, retries=3)",
    "commit 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "https://user:password@example.org/",
    "password = field2value\n",
    "npm:lodash4x5y@a.b",
    "| password | required |",
    "Authorization: Basic <credentials>",
    "git@github.com:org/repo.git",
    "APIException: AccessKeyNotFound in module_with_a_long_name.method.another_name",
)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_masked_and_named(kind: str) -> None:
    masked = redact_text(f"first line\nvalue {SECRETS[kind]} and more\n")
    assert (
        masked == f"first line\nvalue [REDACTED:{kind}] and more\n"
        or MASK.sub("#", masked) == "first line\nvalue # and more\n"
    )
    assert SECRETS[kind] not in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_names_hashes_ids_and_placeholders_stay(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ('DB_PASSWORD = "', "t7Gq9xLm2Zr"),
        ("export API_TOKEN=", "9f8d7c6b5a4e3f2d1c0b"),
        ("client --password ", "Sne3sd8AZjqX"),
        ("Authorization: Bearer ", "a1B2c3D4e5F6g7H8"),
        ("postgres://app:", "t7Gq9xLm2Zr@db.internal/x"),
        ("heroku token: ", "1ace4d19-fa7e-b4e2-c3f0-9129474bcd81"),
    ],
)
def test_a_generated_value_under_a_telling_name_is_masked(before: str, value: str) -> None:
    masked = redact_text(f"{before}{value}")
    assert masked.startswith(f"{before}[REDACTED:")
    assert value.split("@")[0] not in masked


@pytest.mark.parametrize(
    "text",
    ['password: "%s"', "{'db_password': '%s'}", "the log says password=%s and goes on", "passwd=%s\n", 'pwd := "%s"'],
)
@pytest.mark.parametrize("value", ["hunter2" + "secret", "correct-horse-" + "77"])
def test_a_password_that_somebody_made_up_is_masked_where_a_name_says_what_it_is(text: str, value: str) -> None:
    assert MASK.sub("#", redact_text(text % value)) == text % "#"


JUMBLED, CHOSEN = "x9k2" + "mq7wz4", "Sommer" + "2024A"
BASIC = base64.b64encode(f"bob:{CHOSEN}".encode()).decode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("oauth.client_secret=%s&scope=all", JUMBLED + "lp"),  ("pwd: %s", "t7!gq9xl"), ("psql --db-password=%s", CHOSEN),
        ("| **API key** | `%s` |\n", JUMBLED), ("-H 'Authorization: Basic %s'", BASIC), ("redis://:%s@cache:6379", CHOSEN), ("Server=db;User Id=app;Password=%s;", CHOSEN),
    ],
)  # fmt: skip
def test_a_secret_that_only_its_place_tells_is_masked(text: str, value: str) -> None:
    assert MASK.sub("#", redact_text(text % value)) == text % "#"
    long = [text % value, "plain words " * 1_000]  # so much that RE2 picks the texts
    assert [MASK.sub("#", one) for one in redact_columns([pa.array(long)])[0].to_pylist()] == [text % "#", long[1]]


HEX, KEY = "0f9e8d7c" * 8, "a1B2c3D4e5F6g7H8" * 4
UUID = "1ace4d19-fa7e-b4e2-c3f0-9129474bcd81"
FORMATS = {
    "algolia": f"algoliasearch('APP1234567', '{HEX[:32]}')",
    "azure sas": f"https://a.blob.core.windows.net/c?sv=2024-01-01&sig={KEY[:43]}%3D",
    "datadog": f"DD_API_KEY={HEX[:32]}",
    "discord webhook": f"https://discord.com/api/webhooks/123456789012345678/{KEY}",
    "django": f"SECRET_KEY = 'k$v(9x&{KEY[:30]}'",
    "docker": f'{{"auths": {{"r.io": {{"auth": "{BASIC}"}}}}}}',
    "fireworks": f"fw_{KEY[:24]}",
    "htpasswd": f"ann:$apr1$abcdefgh${KEY[:22]}",
    "langfuse": f"sk-lf-{UUID}",
    "neon": f"postgresql://ann:npg_{KEY[:12]}@ep.neon.tech/db",
    "netlify": f"nfp_{KEY[:36]}",
    "okta": f"Authorization: SSWS 00{KEY[:40]}",
    "render": f"rnd_{KEY[:28]}",
    "resend": f"re_{KEY[:8]}_{KEY[:24]}",
    "session cookie": f"Set-Cookie: sessionid={KEY}; Path=/",
    "slack webhook": f"https://hooks.slack.com/services/T00000000/B00000000/{KEY[:24]}",
    "stripe organization": f"sk_org_live_{KEY}",
    "teams webhook": f"https://x.webhook.office.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/{HEX[:32]}/{UUID}",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_documented_format_is_masked(name: str) -> None:
    masked = redact_text(FORMATS[name])
    assert MASK.search(masked)
    assert not any(part in masked for part in (KEY[:12], HEX[:12], UUID, BASIC))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", "ghp_" + KEY * 5),  ("token={}\n", KEY * 5), ("postgres://app:{}@db.internal/x", KEY * 3),
        ("https:/app:{}@db.internal/x", KEY * 3),  ("Authorization: Bearer {}", KEY * 9),
    ],
)  # fmt: skip
def test_a_secret_is_masked_to_the_end_of_its_value(text: str, value: str) -> None:
    assert MASK.sub("#", redact_text(text.format(value))) == text.format("#")


def test_spans_are_byte_ranges_of_the_masks_in_the_masked_text() -> None:
    texts = pa.array(
        [f"schlüssel {SECRETS['github-token']} und {SECRETS['google-key']}", None, "nichts"], pa.large_string()
    )
    (masked,) = redact_columns([texts])
    spans = mask_spans(masked)
    assert masked.type == texts.type
    assert masked.to_pylist()[1:] == [None, "nichts"]
    data = masked[0].as_py().encode()
    found = [data[span["start"] : span["end"]].decode() for span in spans[0].as_py()]
    assert len(found) == 2
    assert all(MASK.fullmatch(mask) for mask in found)
    assert spans.to_pylist()[1:] == [[], []]


def test_a_column_is_masked_like_each_of_its_values_however_it_is_chunked() -> None:
    texts = [f"row {i} {secret}" for i, secret in enumerate([*SECRETS.values(), *HARMLESS])] * 2
    expected = [redact_text(text) for text in texts]
    chunked = pa.chunked_array([pa.array(texts[:5]), pa.array(texts[5:6]), pa.array(texts[6:])])
    assert redact_columns([chunked])[0].to_pylist() == expected
    assert redact_columns([pa.array(["x", *texts])[1:]])[0].to_pylist() == expected


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [*SECRETS.values(), *HARMLESS, "[REDACTED:github-token]", "password=", '"', "\n", " ", "@", "://u:"]
            ),
            st.text(max_size=12),
        ),
        max_size=8,
    ).map("".join)
)
def test_masking_twice_changes_nothing(text: str) -> None:
    (first,) = redact_columns([pa.array([text])])
    assert redact_columns([first])[0].equals(first)
