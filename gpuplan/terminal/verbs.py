"""All verbs: when their code is loaded, the options that they share, and the look of their help.

This is the boundary of late imports. What is imported on this side of it (this module, `options`, and the package
`commands` of a folder) is loaded for help and for completion. A verb's work, and what `late` names, is loaded when it
runs, with all that it imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from keyword import iskeyword
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

GLOBAL = "Global options"
TYPED = "gpuplan.typed"
"""The key of the words behind the verb, in what click's contexts share."""
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def late(entry: str) -> Callable[..., Any]:
    """Return the function that ``module:name`` names, which is imported when it is called."""

    def call(*given: object, **named: object) -> Any:  # noqa: ANN401 - whatever the function returns
        module, _, name = entry.partition(":")
        return getattr(import_module(module), name)(*given, **named)

    return call


class Option(click.Option):
    """An option that stands under a heading of its own in the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **kwargs)
        self.section = section


def option(*names: str, section: str = "Options", **attributes: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """`click.option` under a heading."""
    return click.option(*names, cls=Option, section=section, **attributes)


def completing(known: Callable[[click.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Return a function that completes a word to one of the known ones, whatever its letter case."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known(context) if name.lower().startswith(incomplete.lower())]

    return complete


def format_option(people: str, *programs: str, help: str = "For people or for programs") -> Callable[[F], F]:  # noqa: A002 - click's name
    """Offer a choice between a form for people, which is the default, and those for programs."""
    return option(
        "-o",
        "--output-format",
        "format_",
        type=click.Choice([people, *programs]),
        default=people,
        section="Output",
        help=f"{help} [default: {people}].",
    )


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep the value of a global option, before or after the verb's name.

    The default of an option does not replace a value that was given.
    """
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source is not click.core.ParameterSource.DEFAULT:
        context.find_root().ensure_object(dict)[parameter.name] = value


def _global_options() -> list[click.Parameter]:
    """Return the options that every verb takes, before or after its name."""
    shared: dict[str, Any] = {"section": GLOBAL, "expose_value": False, "callback": _remember}
    return [
        Option(
            ["-C", "--directory"],
            type=click.Path(exists=True, file_okay=False),
            metavar="DIR",
            is_eager=True,  # the values of others are checked in that folder
            help="The repository's root, which holds `overlays/` [default: here].",
            **shared,
        ),
        Option(["-q", "--quiet"], count=True, help="Print less on stderr: no verdicts, no hints.", **shared),
        Option(["-v", "--verbose"], count=True, help="Print more on stderr; twice: tracebacks of bugs.", **shared),
        Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            help="Colours; `auto` obeys NO_COLOR, FORCE_COLOR and the terminal [default: auto].",
            **shared,
        ),
    ]


_answer_usage = late("gpuplan.terminal.habits:answer_usage")
_answer_verb = late("gpuplan.terminal.habits:answer_verb")


class _Sections(click.Command):
    """Shows the options under their headings in the help, the global ones last, and answers what it does not take."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = ctx.meta[TYPED] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _answer_usage(error, ctx, typed) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", GLOBAL), []).append(record)
        for heading in sorted(sections, key=lambda heading: heading == GLOBAL):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def verb(module: str, *, shows_pages: bool = False, **attributes: str) -> Callable[[Callable[[], None]], click.Command]:
    """Make a verb of a function that has its name and its help; it takes the global options, too.

    Its work is the function of the same name in ``module``, beside the package that has the verb. That function is
    given the terminal and the options, and returns the exit code if it is not 0. A verb that ``shows_pages`` prints
    docstrings: those of rules and fields.
    """

    def make(function: Callable[[], None]) -> click.Command:
        name = function.__name__.removesuffix("_")
        entry = f"{function.__module__}.{module}:{function.__name__}"
        work = late(entry)

        @wraps(function)
        @click.pass_context
        def run(context: click.Context, /, **options: object) -> None:
            terminal = _begin(context, needs_docstrings=shows_pages)
            context.exit(work(terminal, **options) or 0)

        run.work = entry  # type: ignore[attr-defined]  # for tests
        command = click.command(name, _Sections, context_settings=CONTEXT, **attributes)(run)
        command.params += _global_options()
        return command

    return make


_begin = late("gpuplan.terminal.session:begin")


class Verbs(_Sections, click.Group):
    """A group whose verbs are loaded when they are asked for.

    ``sections`` maps a heading to its verbs, and a verb to the folder of gpuplan that has it, with the line that the
    help shows, so that help loads none.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        **kwargs: Any,  # noqa: ANN401 - click's
    ) -> None:
        super().__init__(*args, context_settings=CONTEXT, **kwargs)
        self.sections = sections
        self.params += _global_options()

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [verb for verbs in self.sections.values() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        folders = {verb: folder for verbs in self.sections.values() for verb, (folder, _) in verbs.items()}
        if cmd_name not in folders:
            return None
        commands = import_module(f"gpuplan.{folders[cmd_name]}.commands")
        command: click.Command = getattr(commands, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":
            args = [*args[1:2], "--help"]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-"):
                raise
            lines = {verb: line for verb, (_, line) in next(iter(self.sections.values())).items()}
            raise click.UsageError(f"{error.message} {_answer_verb(args, ctx, lines)}", ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(verb, line) for verb, (_, line) in verbs.items()])
        super().format_options(ctx, formatter)
