"""Files that hold a secret, in all the shapes in which people and programs write one, right and broken."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping

PLAIN = "Zq7xKv9wJm3tPf8yRb2n"
"""What is secret; no word of gpuplan has six characters of it."""
CODED = b64encode(PLAIN.encode()).decode()
TOKEN = f"hf_{PLAIN}{PLAIN}"
BOUGHT = f"nvapi-{PLAIN}{PLAIN}{PLAIN}"

NODE: Mapping[str, object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "research-1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
    "status": {"capacity": {"nvidia.com/gpu": "eight"}, "allocatable": {"nvidia.com/gpu": "8"}},
}
SECRET: Mapping[str, object] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "research"},
    "data": {"token": CODED},
    "stringData": {"p": PLAIN},
}
QUOTA: Mapping[str, object] = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpuplan", "namespace": "research"},
    "spec": {"hard": {"nvidia.com/gpu": "4"}},
}
HEAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: research}\n"
LINES = f"{HEAD}data:\n  token: {CODED}\n"


def listed(*items: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def policy(**driver: object) -> str:
    """A ClusterPolicy in one line, with a field that no release knows beside what is said."""
    spec = {"driver": {**driver, "enabled": "maybe"}, "mig": {"strategy": "mixt"}}
    return listed(
        NODE,
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": spec},
    )


def pod(**container: object) -> str:
    spec = {
        "containers": [
            {"name": "main", "image": "x:1", **container, "resources": {"limits": {"nvidia.com/mig-9g.90gb": 1}}}
        ]
    }
    metadata = {"name": "p", "namespace": "research"}
    return listed(NODE, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def noted(body: object, value: str) -> str:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(body)}
    metadata = {"name": value, "namespace": "research", "annotations": annotations}
    return json.dumps({**QUOTA, "metadata": metadata})


def map_of(**data: str) -> str:
    metadata = {"name": "c", "namespace": "research"}
    return listed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _texts() -> Iterator[tuple[str, str]]:
    # A Secret, whole.
    yield "one-line", listed(NODE, SECRET)
    yield "many-lines", json.dumps(json.loads(listed(NODE, SECRET)), indent=2)
    yield "nested-list", listed(NODE, json.loads(listed(SECRET)))
    items = [{"metadata": {"name": "s"}, "data": {"token": CODED}, "type": 5}]
    yield "secret-list", json.dumps({"apiVersion": "v1", "kind": "SecretList", "items": items})
    yield "kind-lower-case", listed(NODE, {**SECRET, "kind": "secret"})
    yield "no-version", listed(NODE, {key: value for key, value in SECRET.items() if key != "apiVersion"})
    yield "version-is-list", listed(NODE, {**SECRET, "apiVersion": ["v1"]})
    yield "other-version", listed(NODE, {**SECRET, "apiVersion": "core/v1"})
    yield "kind-escaped", listed(NODE, SECRET).replace('"Secret"', '"Secr\\u0065t"')
    yield "kind-tagged", f"{LINES.replace('Secret', '!!str Secret')}extra: [\n"
    yield "kind-anchored", f"a: &k Secret\n---\n{LINES.replace('Secret', '&k Secret')}x: *none\n"
    yield "wrong-type", listed(NODE, {**SECRET, "data": {"token": [CODED], "b": 5}, "type": {"a": CODED}})
    yield "numbers", f"{HEAD}data: {{pin: 7391846205518}}\nstringData: {CODED}\n".replace("7391846205518", CODED)
    # A Secret, broken.
    yield "syntax-in", f"{LINES}  bad: [\n"
    yield "syntax-after", f"{LINES}---\napiVersion: v1\nkind: Node\n\tmetadata: x\n"
    yield "syntax-in-line", f"kind: List\nitems:\n- kind: Secret\n  data: {{token: {CODED}, other: {CODED} x: y}}\n"
    yield "tab", f"{HEAD}data:\n\ttoken: {CODED}\n"
    yield "doubled-key", f"{LINES}  token: {CODED}\n"
    yield "doubled-kind", listed(NODE, SECRET).replace('"Secret"', '"Secret", "kind": "Node"')
    anchored = f"- kind: Secret\n  apiVersion: v1\n  metadata: {{name: s}}\n  data: &d {{token: {CODED}}}\n"
    another = "- kind: ConfigMap\n  apiVersion: v1\n  metadata: {name: c, namespace: research}\n  data: *d\n"
    yield "anchor", f"apiVersion: v1\nkind: List\nitems:\n{anchored}{another}- {json.dumps(NODE)}\n"
    yield "alias-of-nothing", f"{HEAD}data:\n  token: *{PLAIN}\n"
    yield "unknown-tag", f"{HEAD}data:\n  token: !{PLAIN} x\n  other: !!binary {CODED}\n"
    yield "merge", f"a: &a\n  kind: Secret\n  data: {{t: {CODED}}}\nb:\n  <<: *a\n  data: {{t: {CODED}, t: {CODED}}}\n"
    yield "cut-off", listed(NODE, SECRET)[:-30]
    yield "cut-off-before-kind", f'{{"apiVersion": "v1", "data": {{"token": "{CODED}", "b": "{CODED[:20]}'
    yield "json-without-quotes", listed(NODE, SECRET).replace('"stringData"', "stringData")
    yield "json-trailing-comma", listed(NODE, SECRET).replace("}}]", "},}]")
    yield "stray-quote", listed(NODE, SECRET).replace('"token"', '"token""')
    yield "open-quote", f'{HEAD}stringData:\n  a: "{PLAIN}\n  b: {PLAIN}\n'
    yield "single-quote", f"{HEAD}stringData:\n  a: '{PLAIN}\n  b: x: {PLAIN}\n"
    yield "colon", f"{HEAD}stringData:\n  a: {PLAIN}: {PLAIN}\n  : {PLAIN}\n"
    yield "wrong-indentation", f"items:\n- kind: Secret\n data:\n   token: {CODED}\n  x: {PLAIN}\n"
    yield "block-scalar", f"{HEAD}stringData:\n  a: |\n    {PLAIN}\n   {PLAIN}\n  b: >-\n      {PLAIN}\n"
    yield "comment", f"{LINES}  # {PLAIN}\n  token: 1 # {PLAIN}\n"
    yield "percent", f"{HEAD}stringData:\n  a: %{PLAIN}\n  b: @{PLAIN}\n  c: `{PLAIN}`\n"
    yield "nul-escaped", listed(NODE, SECRET).replace("research", "l\\u0000b")
    yield "nul", f"{LINES}x: \0\n"
    yield "nul-in-kind", LINES.replace("Secret", "Sec\0ret")
    yield "zero-width-in-kind", LINES.replace("Secret", "Sec\u200bret") + "x: [\n"
    yield "bom", f"\ufeff{LINES}  bad: [\n"
    yield "bom-inside", f"{LINES}\ufeffx: 1\n"
    yield "crlf", f"{LINES}  bad: [\n".replace("\n", "\r\n")
    yield "cr", f"{LINES}  token: [\n".replace("\n", "\r")
    # Texts that hold one.
    yield "last-applied", noted(SECRET, "a b")
    yield (
        "last-applied-in-block",
        (
            "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: a b\n  annotations:\n"
            f"    kubectl.kubernetes.io/last-applied-configuration: |\n      {json.dumps(SECRET)}\n    x: [\n"
        ),
    )
    yield "twice-applied", noted(json.loads(noted(SECRET, "a")), "a b")
    yield "manifest-in-map", map_of(**{"config.yaml": f"version: v1\n{LINES}sharing: 5\n", "a": "b: ["})
    yield (
        "generator",
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nsecretGenerator:\n- name: s\n"
            f"  literals:\n  - password={PLAIN}\n  - {PLAIN}\n  files: 5\nnameprefix: x\nbad: [\n"
        ),
    )
    # Values under names that say so.
    yield "variable", policy(env=[{"name": "DB_PASSWORD", "value": PLAIN}])
    yield "variable-first", policy(env=[{"value": PLAIN, "name": "API_KEY"}])
    yield "field", policy(password=PLAIN, apiKey=PLAIN, auth=PLAIN, client_secret=PLAIN)
    yield "fields-of-work", pod(env=[{"name": "TOKEN", "value": PLAIN}, {"name": "B", "value": 5}])
    yield "arguments", pod(args=["--api-key", PLAIN, f"--password={PLAIN}", f"--token {PLAIN}"], command="x")
    yield (
        "shell",
        pod(command=["sh", "-c", f"export A_TOKEN={PLAIN}; curl -H 'Authorization: Bearer {PLAIN}' u"], tty=1),
    )
    docker = json.dumps({"auths": {"nvcr.io": {"auth": CODED}}})
    yield "docker", map_of(**{".dockerconfigjson": docker, "config.yaml": "version: v1\nsharing: 5\n"})
    replicas = f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {PLAIN}}}]}}}}\n"
    yield "elsewhere-too", map_of(**{"password": PLAIN, "config.yaml": replicas})
    yield "chart-values", f"driver:\n  env:\n  - {{name: PROXY_PASSWORD, value: {PLAIN}}}\n  enabled: maybe\n  x: [\n"
    yield (
        "policy-text",
        (
            "apiVersion: gpuplan.dev/v1\nkind: Workload\nmetadata: {name: a}\n"
            f"spec: {{tenant: research, env: {{DB_PASSWORD: {PLAIN}, X: [1]}}, image: {{a: 1}}, bad: *x}}\n"
        ),
    )
    # Credentials by their form.
    for name, text in CREDENTIALS.items():
        yield name, policy(env=[{"name": "X", "value": text}])


CREDENTIALS: Mapping[str, str] = {
    "hugging-face": TOKEN,
    "ngc": BOUGHT,
    "jwt": f"eyJ{PLAIN}.eyJ{PLAIN}.{PLAIN}",
    "aws": f"AKIA{'ABCD' * 4} {(PLAIN * 2)[:40]}",
    "google": f"AIza{(PLAIN * 2)[:35]}",
    "azure": f"abc8Q~{(PLAIN * 2)[:34]}",
    "storage": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={CODED}",
    "address": f"postgres://user:{PLAIN}@db:5432/x",
    "bearer": f"Bearer {PLAIN}",
    "query": f"https://x.example.com/?sig={PLAIN}",
    "pem": f"-----BEGIN PRIVATE KEY-----\n{PLAIN}\n-----END PRIVATE KEY-----\n",
}

FORMS: Mapping[str, bytes] = {
    **{name: text.encode() for name, text in _texts()},
    "utf-16": f"{LINES}  bad: [\n".encode("utf-16"),
    "utf-16-without-mark": f"{LINES}  bad: [\n".encode("utf-16-le"),
    "latin-1": f"{LINES}x: ".encode() + b"\xe9\n",
}

LEGAL: Mapping[str, str] = {
    "reference": "token: {secretKeyRef: {name: hugging-face, key: token}}",
    "pull secrets": "imagePullSecrets: [registry-one]",
    "secrets of an account": "secrets: [{name: registry-one}]",
    "kubeconfig": "kubeConfigSecret: cluster-two",
    "certificate": "tlsSecret: front-door",
    "volume": "secretName: front-door",
    "switch": "automountServiceAccountToken: false",
    "variable that names another": "args: [--api-key, $(API_KEY), --token-file, /run/token, --tokenizer, llama]",
    "path": "- {name: SSH_KEY, value: /etc/ssh/key}",
    "toleration": "tolerations: [{key: nvidia.com/gpu, value: present}]",
    "count": "max_tokens: 40960",
    "encrypted": "kind: ExternalSecret\nspec: {data: [{secretKey: token, remoteRef: {key: path-of-it}}]}",
    "sealed": "kind: SealedSecret\nspec: {encryptedData: {password: AgBy8hC}}",
    "map": "apiVersion: v1\nkind: ConfigMap\ndata: {mode: mixed, key: value}",
    "address": "url: https://git.example.com/a@b",
    "digest": f"image: example.com/app@sha256:{'0a' * 32}",
    "template": "password: '{{ .password }}'",
    "placeholder": "password: <from the vault>",
}
