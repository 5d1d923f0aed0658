"""Credentials are known by their forms and by the names that they are under, and what only resembles one is none."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.confidential import confidential_in
from gpuplan.compiler.base.credentials import hidden, holds_credential, is_secret_name
from tests.cli.secret_forms import CREDENTIALS, PLAIN


@pytest.mark.parametrize("form", CREDENTIALS)
def test_each_form_is_stars(form: str) -> None:
    assert PLAIN[:6] not in hidden(CREDENTIALS[form].replace("\n", "\\n"))


@pytest.mark.parametrize("form", ["jwt", "aws", "google", "azure", "address", "pem"])
def test_those_that_tell_by_themselves_are_found_in_policies(form: str) -> None:
    assert holds_credential(CREDENTIALS[form])


@pytest.mark.parametrize("text", ["ssh://git@example.com/a", "http://a:80/b", "eyJhbGci", "sk-learn", "AKIA", "a://b"])
def test_what_resembles_one_is_none(text: str) -> None:
    assert not holds_credential(text)
    assert hidden(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("password", "DB_PASSWORD", "token", "HF_TOKEN", "hfToken", "secret", "clientSecret", "APP_SECRET", "apiKey"),
        *(
            "api_key",
            "api-key",
            "--api-key",
            "NGC_API_KEY",
            "SSH_KEY",
            "auth",
            ".dockerconfigjson",
            "AccountKey",
            "TOKEN2",
        ),
    ],
)
def test_names_that_hold_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("tlsSecret", "kubeConfigSecret", "secretName", "imagePullSecrets", "secretKeyRef", "key", "nvidia.com/key"),
        *(
            "tokenizer",
            "max_tokens",
            "token_file",
            "serviceAccountTokenPath",
            "author",
            "passthrough",
            "",
            "privileged",
        ),
    ],
)
def test_names_that_name_one_or_something_else(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--password hunter2 --port 80", "--password ******* --port 80"),
        ("A_TOKEN=hunter2 python x.py --tokenizer llama", "A_TOKEN=******* python x.py --tokenizer llama"),
        ("--token $(TOKEN) password=<yours>", "--token $(TOKEN) password=<yours>"),
        ("--password=a,b;c{d} x", "--password=******** x"),
        ("Authorization: Basic abcd1234=", "Authorization: Basic *********"),
        ("a token: name the Secret", "a token: name the Secret"),
    ],
)
def test_values_are_stars_of_the_same_width(text: str, shown: str) -> None:
    assert hidden(text) == shown


@pytest.mark.parametrize("text", ["[" * 300_000 + "]" * 300_000, "[{" * 150_000 + "}]" * 150_000, "data:\n" * 300_000])
def test_a_text_is_read_once_however_it_nests(text: str) -> None:
    """To go through what is open at each bracket, or through all keys at each key, would take hours."""
    assert confidential_in(f"password: hunter2x\n{text}").values == {"hunter2x"}
