"""Ways to make kustomize fetch something, each as the text of a Component with the files beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

# `@` stands for the address of a listener.
FILE_FORMS = {
    "http": "http://@/a.yaml",
    "https": "https://@/a.yaml",
    "upper-case": "HTTP://@/a.yaml",
    "user": "http://user:pass@@/a.yaml",
    "query": "http://@/a.yaml?x=y",
}
FOLDER_FORMS = {
    "http": "http://@/org/repo?ref=main",
    "https": "https://@/org/repo",
    "upper-case": "HTTPS://@/org/repo",
    "sub-folder": "http://@/org/repo//sub?ref=main",
    "git-suffix": "http://@/org/repo.git",
    "forced": "git::http://@/org/repo",
    "upper-case-forced": "GIT::http://@/org/repo",
    "ssh": "ssh://git@@/org/repo",
    "git": "git://@/org/repo",
    "scp": "git@@:org/repo",
    "scp-of-somebody": "somebody@@:org/repo.git",
    "scp-with-slashes": "somebody@@/org/repo/sub",
    "devops": "https://@/org/project/_git/repo",
    "github-like": "@/org/repo?ref=main",
    "host-and-port": "@/org/repo",
    "version": "@/org/repo?version=v1",
    "blanks": '"  http://@/org/repo  "',
    "line-end": "|\n    http://@/org/repo\n",
    "file-scheme": "file:///nowhere/@/repo",
}
FILE_FIELDS = {
    "crds": "crds:\n  - {}\n",
    "configurations": "configurations:\n  - {}\n",
    "patchesStrategicMerge": "patchesStrategicMerge:\n  - {}\n",
    "patches": "patches:\n  - path: {}\n",
    "patchesJson6902": "patchesJson6902:\n  - target: {{version: v1, kind: Node, name: a}}\n    path: {}\n",
    "replacements": "replacements:\n  - path: {}\n",
    "openapi": "openapi:\n  path: {}\n",
    "configMapGenerator-files": "configMapGenerator:\n  - name: a\n    files:\n      - {}\n",
    "configMapGenerator-key": "configMapGenerator:\n  - name: a\n    files:\n      - key={}\n",
    "configMapGenerator-envs": "configMapGenerator:\n  - name: a\n    envs:\n      - {}\n",
    "secretGenerator-env": "secretGenerator:\n  - name: a\n    env: {}\n",
    "other-case": "SecretGenerator:\n  - name: a\n    ENV: {}\n",
}
FOLDER_FIELDS = {
    name: f"{name}:\n  - {{}}\n"
    for name in ("resources", "components", "bases", "generators", "transformers", "validators", "Resources")
}
PLUGINS = {
    "PatchTransformer": "path: http://@/a.yaml",
    "PatchJson6902Transformer": "target: {kind: Node, name: a}\npath: http://@/a.yaml",
    "PatchStrategicMergeTransformer": "paths:\n  - http://@/a.yaml",
    "ReplacementTransformer": "replacements:\n  - path: http://@/a.yaml",
    "ConfigMapGenerator": "files:\n  - http://@/a.yaml",
    "SecretGenerator": "envs:\n  - http://@/a.yaml",
    "ValueAddTransformer": "value: a\ntargetFilePath: http://@/a.yaml",
}


@dataclass(frozen=True)
class Fetching:
    """A Component that would fetch something; files are named from its folder."""

    name: str
    text: str
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def at(self, address: str) -> Fetching:
        host = address if not self.name.startswith("scp") else address.partition(":")[0]
        files = {path: _with_address(text, host) for path, text in self.files.items()}
        return Fetching(self.name, _with_address(self.text, host), files, self.links)


def _with_address(text: str, address: str) -> str:
    """A double `@` is a user's and the address."""
    return text.replace("@@", f"\0{address}").replace("@", address).replace("\0", "@")


def _plugin(kind: str, rest: str) -> str:
    return f"apiVersion: builtin\nkind: {kind}\nmetadata: {{name: a}}\n{rest}\n"


def _field_of(kind: str) -> str:
    return "generators" if kind.endswith("Generator") else "transformers"


def _inline(kind: str, rest: str) -> str:
    lines = _plugin(kind, rest).splitlines()
    return "".join((f"{_field_of(kind)}:\n  - |\n", *(f"    {line}\n" for line in lines)))


KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
ALL = (
    *(Fetching(f"{name}-resources", FOLDER_FIELDS["resources"].format(form)) for name, form in FOLDER_FORMS.items()),
    *(Fetching(f"{name}-components", FOLDER_FIELDS["components"].format(form)) for name, form in FOLDER_FORMS.items()),
    *(Fetching(f"repository-{name}", text.format("http://@/org/repo")) for name, text in FOLDER_FIELDS.items()),
    *(Fetching(f"file-{name}", text.format("http://@/a.yaml")) for name, text in FILE_FIELDS.items()),
    *(Fetching(f"{name}-patches", FILE_FIELDS["patches"].format(form)) for name, form in FILE_FORMS.items()),
    *(
        Fetching(f"{name}-files", FILE_FIELDS["configMapGenerator-files"].format(form))
        for name, form in FILE_FORMS.items()
    ),
    *(Fetching(f"inline-{kind}", _inline(kind, rest)) for kind, rest in PLUGINS.items()),
    *(
        Fetching(f"listed-{kind}", f"{_field_of(kind)}:\n  - plugin.yaml\n", {"plugin.yaml": _plugin(kind, rest)})
        for kind, rest in PLUGINS.items()
    ),
    *(
        Fetching(f"json-{kind}", f"{_field_of(kind)}:\n  - plugin.json\n", {"plugin.json": _plugin(kind, rest)})
        for kind, rest in PLUGINS.items()
    ),
    Fetching(
        "one-line-inline",
        'transformers:\n  - \'{"apiVersion": "builtin", "kind": "PatchTransformer", "metadata": {"name": "a"}, '
        '"path": "http://@/a.yaml"}\'\n',
    ),
    Fetching(
        "plugins-of-a-folder",
        "transformers: [../../../../plugins]\n",
        {
            "../../../../plugins/kustomization.yaml": KUSTOMIZATION + "resources: [a.yaml]\n",
            "../../../../plugins/a.yaml": _plugin("PatchTransformer", PLUGINS["PatchTransformer"]),
        },
    ),
    Fetching(
        "nested-base",
        "resources: [../../../../base]\n",
        {
            "../../../../base/kustomization.yaml": KUSTOMIZATION + "resources: [../other]\n",
            "../../../../other/kustomization.yml": KUSTOMIZATION + "resources:\n  - http://@/org/repo\n",
        },
    ),
    Fetching(
        "base-of-a-third-name",
        "resources: [../../../../base]\n",
        {"../../../../base/Kustomization": KUSTOMIZATION + "resources:\n  - http://@/org/repo\n"},
    ),
    Fetching(
        "linked-file",
        "transformers: [link.txt]\n",
        {"plugin.txt": _plugin("PatchTransformer", PLUGINS["PatchTransformer"])},
        {"link.txt": "plugin.txt"},
    ),
    Fetching(
        "linked-folder",
        "resources: [../../../../link]\n",
        {"../../../../base/kustomization.yaml": KUSTOMIZATION + "resources:\n  - http://@/org/repo\n"},
        {"../../../../link": "base"},
    ),
    Fetching(
        "list-of-plugins",
        "transformers: [plugins.yaml]\n",
        {
            "plugins.yaml": "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: builtin\n    kind: PatchTransformer\n"
            "    metadata: {name: a}\n    path: http://@/a.yaml\n"
        },
    ),
    Fetching("anchored", "resources: &a\n  - http://@/org/repo\ngenerators: *a\n"),
    Fetching("chart", "helmCharts:\n  - {name: a, repo: 'http://@/charts', releaseName: a}\n"),
)
