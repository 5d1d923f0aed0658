"""Write what the GPU Operator and the DCGM exporter do at named tags as tables of facts, each with its file and line.

    python tools/operator_tables.py --sources DIR          # mirrors DIR/NVIDIA+gpu-operator/repo and so on
    python tools/operator_tables.py --sources DIR --check  # say what differs, and write nothing

The tables lie beside the tests that hold the catalog against them. They hold names and lines, no text of the source.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from go_source import Call, Function, Mirror, calls, constants, functions, structs

TABLES = Path(__file__).resolve().parents[1] / "tests/laws/operands/tables"
OPERATOR = "NVIDIA/gpu-operator"
EXPORTER = "NVIDIA/dcgm-exporter"
FIELDS = "NVIDIA/go-dcgm"
# The newest release of each line that the catalog knows, and the exporter that its chart brings; 4.6.0-4.8.3, which
# v26.7.0 brings, is not among the tags that were read.
RELEASES = ("v24.6.2", "v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0")
EXPORTERS = ("3.3.7-3.5.0", "3.3.9-3.6.1", "4.3.1-4.4.0", "4.4.2-4.7.0", "4.5.3-4.8.2")

CONTROLS = "controllers/object_controls.go"
STATES = "controllers/state_manager.go"
TYPES = "api/nvidia/v1/clusterpolicy_types.go"
CHART = "deployments/gpu-operator/values.yaml"
# Folders of assets of what gpuplan's policies can turn on; those for virtual machines are left out.
OPERANDS = (
    "gpu-feature-discovery",
    "state-container-toolkit",
    "state-dcgm",
    "state-dcgm-exporter",
    "state-device-plugin",
    "state-driver",
    "state-mig-manager",
    "state-mps-control-daemon",
    "state-node-status-exporter",
    "state-operator-validation",
)
_ROOT = "ClusterPolicySpec"
Route = tuple[str, ...]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder of git mirrors, OWNER+NAME/repo")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    given = parser.parse_args(arguments)
    differing = [name for name, text in tables(given.sources).items() if not _written(name, text, check=given.check)]
    for name in differing:
        sys.stderr.write(f"{name} is not what the source says\n")
    return 1 if differing else 0


def tables(sources: Path) -> Mapping[str, str]:
    """The text of each table by its file name."""
    operators = {tag: operator_table(mirror(sources, OPERATOR, tag)) for tag in RELEASES}
    exporters = {tag: exporter_table(mirror(sources, EXPORTER, tag), sources) for tag in EXPORTERS}
    named = {f"gpu-operator-{tag}": table for tag, table in operators.items()}
    named |= {f"dcgm-exporter-{tag}": table for tag, table in exporters.items()}
    return {f"{name}.yaml": _text(table) for name, table in named.items()}


def mirror(sources: Path, repository: str, tag: str) -> Mirror:
    return Mirror(sources / repository.replace("/", "+") / "repo", tag)


def _written(name: str, text: str, *, check: bool) -> bool:
    path = TABLES / name
    if not check:
        path.write_text(text, encoding="utf-8")
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _text(table: Mapping[str, Any]) -> str:
    """Blocks outside, and lists of facts as mappings in braces: each fact and its line."""
    head = "# Written by tools/operator_tables.py from the source at this tag; facts only.\n"
    return head + yaml.dump(table, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    pass


def _mapping(dumper: yaml.SafeDumper, value: Mapping[str, object]) -> yaml.MappingNode:
    is_flat = not any(isinstance(part, dict | list) for part in value.values())
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=is_flat)


def _list(dumper: yaml.SafeDumper, value: list[object]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)


_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(list, _list)


@dataclass(frozen=True)
class Code:
    """What is read of a release of the operator."""

    functions: Mapping[str, Function]
    methods: Mapping[tuple[str, str], Function]
    structs: Mapping[str, Mapping[str, tuple[str, str]]]
    constants: Mapping[str, str]


def operator_table(source: Mirror) -> Mapping[str, Any]:
    """What each DaemonSet reads of the ClusterPolicy, and what is set in it; lines are those of ``controls``."""
    code = _code(source)
    return {
        "source": f"{OPERATOR} {source.tag}",
        "controls": CONTROLS,
        "states": STATES,
        "images": _images(source),
        "chart": {"read": sorted(chart_reads(source)), "unread": _unread(source)},
        "daemonSets": dict(sorted(_daemon_set(source, code, folder) for folder in OPERANDS)),
    }


def _code(source: Mirror) -> Code:
    controls, types = source.text(CONTROLS), source.text(TYPES)
    others = [source.text(path) for path in source.paths("internal") if re.search(r"(consts|config)/\w+\.go$", path)]
    known: dict[str, str] = {}
    for text in (*others, types, controls):
        known |= constants(text)
    found = [*functions(controls), *functions(source.text(STATES))]
    return Code(
        {each.name: each for each in found},
        {(each.receiver[1], each.name): each for each in functions(types) if each.receiver},
        structs(types),
        known,
    )


def _images(source: Mirror) -> Mapping[str, str]:
    """The version of each operand that the chart names; the operator's own image has the chart's."""
    values = yaml.safe_load(source.text(CHART))
    sections = {name: part for name, part in values.items() if isinstance(part, dict)}
    versions = {name: str(part["version"]) for name, part in sections.items() if part.get("version")}
    return dict(sorted({**versions, "driver.manager": str(values["driver"]["manager"]["version"])}.items()))


def chart_reads(source: Mirror) -> set[str]:
    """Values that a template of the chart names; those of its parts, where it copies the whole."""
    return {found[1:] for found in re.findall(r"\.Values((?:\.\w+)+)", _templates(source))}


def _unread(source: Mirror) -> list[str]:
    """Values that the chart lists and no template reads, neither by name nor with the whole that they are of."""
    text = _templates(source)
    whole = set(re.findall(r"(?:toYaml|with|range [^}]*|:=)\s*\(?\.Values((?:\.\w+)+)(?![\w.])", text))
    read = set(re.findall(r"\.Values((?:\.\w+)+)(?![\w.])", text))
    routes = [
        route
        for route in _leaves(yaml.safe_load(source.text(CHART)))
        if _ways_up(route)[0] not in read and not whole & set(_ways_up(route)) and route[0] not in _SUBCHARTS
    ]
    return [".".join(route) for route in routes]


_SUBCHARTS = ("node-feature-discovery", "nvidia-dra-driver-gpu")


def _templates(source: Mirror) -> str:
    return "\n".join(map(source.text, source.paths("deployments/gpu-operator/templates")))


def _leaves(value: object, route: Route = ()) -> Iterator[Route]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(part, (*route, str(key)))
    else:
        yield route


def _ways_up(route: Route) -> list[str]:
    """The route and those above it, as templates write them."""
    return ["".join(f".{key}" for key in route[:count]) for count in range(len(route), 0, -1)]


def _daemon_set(source: Mirror, code: Code, folder: str) -> tuple[str, Mapping[str, Any]]:
    path, line, asset = _asset(source, folder)
    name = asset["metadata"]["name"]
    before = code.functions["preProcessDaemonSet"]
    transform = code.functions[re.findall(rf'"{name}":\s*(\w+),', before.text)[0]]
    walk = Walk(code, asset)
    walk.visit(before, {})
    walk.visit(transform, {})
    template = asset["spec"]["template"]["spec"]
    return name, {
        "asset": f"{path}:{line}",
        "transform": f"{transform.name}:{transform.line}",
        "enabledBy": _enabling(code, folder),
        "updateStrategy": asset["spec"].get("updateStrategy", {}).get("type", "RollingUpdate"),
        "nodeSelector": template["nodeSelector"],
        "reads": walk.fields(outside_template=False),
        "readsOutsideTemplate": walk.fields(outside_template=True),
        "sets": dict(sorted(walk.environment.items())),
    }


def _asset(source: Mirror, folder: str) -> tuple[str, int, Mapping[str, Any]]:
    for path in source.paths(f"assets/{folder}"):
        text = source.text(path)
        if found := re.search(r"^kind: DaemonSet$", text, re.MULTILINE):
            return path, 1 + text.count("\n", 0, found.start()), yaml.safe_load(text)
    raise ValueError(f"{folder} has no DaemonSet at {source.tag}")


def _enabling(code: Code, state: str) -> Mapping[str, int]:
    """The fields that decide whether the state is there at all."""
    deciding = code.functions["isStateEnabled"]
    start = deciding.text.index(f'case "{state}":')
    end = deciding.text.index("return", start)
    part = deciding.text[end : deciding.text.index("\n", end)]
    walk = Walk(code, {})
    walk.reads_in(Function(deciding.name, None, (), part, deciding.line_at(end)), {"clusterPolicySpec": ()})
    return walk.fields(outside_template=False)


@dataclass
class Walk:
    """Follows a function and those it calls, the ClusterPolicy's parts bound to the names they have there."""

    code: Code
    asset: Mapping[str, Any]
    reads: dict[tuple[str, Route], int] = field(default_factory=dict)
    environment: dict[str, int] = field(default_factory=dict)
    seen: set[tuple[str, tuple[tuple[str, Route], ...]]] = field(default_factory=set)

    def visit(self, function: Function, bound: Mapping[str, Route]) -> None:
        known = {name: () for name, kind in function.parameters if kind.endswith(_ROOT)} | dict(bound)
        if any(kind.endswith("ClusterPolicyController") for _, kind in function.parameters):
            known["n.singleton.Spec"] = ()
        key = (function.name, tuple(sorted(known.items())))
        if key in self.seen or not self._has_volumes(function.name):
            return
        self.seen.add(key)
        part = self._of_components(function)
        known |= _aliases(part.text, known)
        self.reads_in(part, known)
        for call in calls(part.text):
            self._follow(part, call, known)

    def reads_in(self, function: Function, known: Mapping[str, Route]) -> None:
        for name, route in known.items():
            for found in re.finditer(rf"(?<![\w.]){re.escape(name)}((?:\.\w+)+)(\()?", function.text):
                path = (*route, *found[1].split(".")[1:])
                for each in self._called(path) if found[2] else [path]:
                    self._read(function, each, found.start())

    def _called(self, path: Route) -> Iterator[Route]:
        """What a method of a part of the ClusterPolicy reads of it."""
        *above, name = path
        method = self.code.methods.get((self._type(tuple(above)), name))
        if method is None or method.receiver is None:
            return
        for found in re.finditer(rf"\b{method.receiver[0]}((?:\.\w+)+)(\()?", method.text.partition("\n")[2]):
            deeper = (*above, *found[1].split(".")[1:])
            yield from self._called(deeper) if found[2] else [deeper]

    def _follow(self, function: Function, call: Call, known: Mapping[str, Route]) -> None:
        routes = [_route(argument, known) for argument in call.arguments]
        called = self.code.functions.get(call.name.rpartition(".")[2])
        match call.name:
            case "setContainerEnv" if not call.arguments[1].endswith(".Name"):
                name = call.arguments[1].rpartition(".")[2].strip('"')
                self.environment.setdefault(self.code.constants.get(name, name), function.line_at(call.offset))
            case "gpuv1.ImagePath" if routes[0] is not None:
                for last in ("Repository", "Image", "Version"):
                    self._read(function, (*routes[0], last), call.offset)
            case "gpuv1.GetConfigMapName" if routes[0] is not None:
                self._read(function, (*routes[0], "Name"), call.offset)
            case _ if called is not None and "." not in call.name:
                names = [name for name, _ in called.parameters]
                bound = {name: route for name, route in zip(names, routes, strict=False) if route is not None}
                self.visit(called, bound)

    def _of_components(self, function: Function) -> Function:
        """Without the cases of components that the DaemonSet has no container for; the rest keeps its lines."""
        text = function.text
        for found in re.finditer(r'\t+case "([\w-]+)":\n.*?(?=\t+case "|\t+default:)', text, re.DOTALL):
            if function.name == "TransformValidatorComponent" and not self._has_init(found[1]):
                text = text.replace(found[0], "\n" * found[0].count("\n"))
        return Function(function.name, function.receiver, function.parameters, text, function.line)

    def _has_volumes(self, function: str) -> bool:
        """Whether the DaemonSet has the volumes that functions on paths of the host ask for."""
        needed = {
            "transformHostRootVolume": {"host-root"},
            "transformHostDevCharVolume": {"host-dev-char"},
            "transformForDriverInstallDir": {"driver-install-dir"},
        }.get(function)
        volumes = self.asset["spec"]["template"]["spec"].get("volumes", ()) if needed else ()
        return not needed or bool(needed & {each["name"] for each in volumes})

    def _has_init(self, beginning: str) -> bool:
        return any(name.startswith(beginning) for name in self._init_containers())

    def _init_containers(self) -> list[str]:
        return [each["name"] for each in self.asset["spec"]["template"]["spec"].get("initContainers", ())]

    def _read(self, function: Function, path: Route, offset: int) -> None:
        if self._json(path):
            line = function.line_at(offset)
            key = (function.name, path)
            self.reads[key] = min(line, self.reads.get(key, line))

    def fields(self, *, outside_template: bool) -> Mapping[str, int]:
        """Each field that is read, as it is written in YAML, with its first line; no part that holds others."""
        found: dict[str, int] = {}
        for (function, path), line in self.reads.items():
            if self._applies(function, path) and (function == "applyUpdateStrategyConfig") is outside_template:
                written = self._json(path)
                found[written] = min(line, found.get(written, line))
        return {name: found[name] for name in sorted(found) if not any(other.startswith(f"{name}.") for other in found)}

    def _applies(self, function: str, path: Route) -> bool:
        """Whether what the function asks of the DaemonSet is so, where it asks for a container or a volume by name."""
        if not self.asset:
            return True
        pod = self.asset["spec"]["template"]["spec"]
        is_gfd = any(each["name"] == "gpu-feature-discovery" for each in pod["containers"])
        match function, path:
            case "preProcessDaemonSet", ("HostPaths", "RootFS"):
                return any(map(self._has_volumes, ("transformHostRootVolume", "transformHostDevCharVolume")))
            case "preProcessDaemonSet", ("HostPaths", "DriverInstallDir"):
                return self._has_volumes("transformForDriverInstallDir")
            case "transformValidationInitContainer", ("Validator", "Driver" | "Toolkit" as part, "Env"):
                return self._has_init(part.lower())
            case "transformValidationInitContainer", _ if path[-1] != "ImagePullSecrets":
                return any("validation" in name for name in self._init_containers())
            case "configManagerResourceRequirements", (section, *_):
                return (section == "GPUFeatureDiscovery") is is_gfd
            case _:
                return True

    def _json(self, path: Route) -> str:
        """The route as it is written in YAML; empty where the type has no such field."""
        kind, written = _ROOT, list[str]()
        for name in path:
            if name not in self.code.structs.get(kind, {}):
                return ".".join(written) if kind not in self.code.structs else ""
            kind, json = self.code.structs[kind][name]
            written.append(json)
        return ".".join(written)

    def _type(self, path: Route) -> str:
        kind = _ROOT
        for name in path:
            kind = self.code.structs.get(kind, {}).get(name, ("", ""))[0]
        return kind


def _aliases(text: str, known: Mapping[str, Route]) -> Mapping[str, Route]:
    """Local names of parts: ``x := config.A`` and ``x := given.(*Type)``."""
    found: dict[str, Route] = {}
    for name, value in re.findall(r"^\s*(\w+) := (&?[\w.]+)(?:\.\(\*?[\w.]+\))?$", text, re.MULTILINE):
        route = _route(value, known)
        if route is not None and name not in known:
            found[name] = route
    return found


def _route(argument: str, known: Mapping[str, Route]) -> Route | None:
    """The part that an argument is, if it is one."""
    value = argument.lstrip("&*")
    for name, route in known.items():
        if value == name:
            return route
        if re.fullmatch(rf"{re.escape(name)}(\.\w+)+", value):
            return (*route, *value.removeprefix(f"{name}.").split("."))
    return None


def exporter_table(source: Mirror, sources: Path) -> Mapping[str, Any]:
    """Settings, what counts as a GPU's resource, counters of its own, labels for pods; each with its place.

    ``fields`` are DCGM's that it knows, each without ``DCGM_FI_``: it ends at any other.
    """
    paths = [
        path
        for folder in ("pkg", "internal")
        for path in source.paths(folder)
        if path.endswith(".go") and not path.endswith("_test.go") and "/mocks/" not in path
    ]
    lines = [(path, number, line) for path in paths for number, line in enumerate(source.text(path).splitlines(), 1)]
    return {
        "source": f"{EXPORTER} {source.tag}",
        "environment": _matching(lines, r'EnvVars:\s+\[\]string\{"(\w+)"\}'),
        "resources": _matching(lines, r'^\s+[nN]vidia\w*Resource\w*\s+= "(nvidia\.com/[\w-]+)"'),
        "counters": _matching(lines, r'^\s+[dD]cgmExp\w+\s+= "(DCGM_EXP_\w+)"|^\s+DCGMExp\w+\s+= "(DCGM_EXP_\w+)"'),
        "podLabels": _matching(lines, r'^\s+(?:pod|namespace|container|uid|vgpu|hpcJob)Attribute\s+= "(\w+)"'),
        "resourceFilter": _places(lines, r"\bNvidiaResourceNames, resourceName\)"),
        "virtualGPUs": _places(lines, r"\.KubernetesVirtualGPUs\b"),
        "claims": _places(lines, r"\.KubernetesEnableDRA\b"),
        "instancesInPlaceOfGPUs": _places(lines, r"EntityGroupId: dcgm\.FE_GPU_I,"),
        "fieldsOfInstances": _places(lines, r"FE_GPU_CI \|\|"),
        **_fields(source, sources),
    }


def _fields(source: Mirror, sources: Path) -> Mapping[str, Any]:
    """DCGM's fields as the exporter's module of them has them, at the commit that its go.mod names."""
    commit = re.findall(rf"{FIELDS} v\S+-([0-9a-f]{{12}})", source.text("go.mod"))[0]
    module = mirror(sources, FIELDS, commit)
    texts = [module.text(path) for path in module.paths("pkg/dcgm") if re.search(r"/const(_fields)?\.go$", path)]
    named = {name for text in texts for name in re.findall(r'^\s+"DCGM_FI_(\w+)":', text, re.MULTILINE)}
    return {"module": f"{FIELDS} {commit}", "fields": sorted(named)}


Lines = list[tuple[str, int, str]]


def _matching(lines: Lines, pattern: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path, number, line in lines:
        if match := re.search(pattern, line):
            found.setdefault(next(group for group in match.groups() if group), f"{path}:{number}")
    return dict(sorted(found.items()))


def _places(lines: Lines, pattern: str) -> list[str]:
    return [f"{path}:{number}" for path, number, line in lines if re.search(pattern, line) and "testutils" not in path]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
