"""What all verbs have in common: when their code is loaded, which options they share, how their help looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from keyword import iskeyword
from typing import Any, TypeVar

import click

from gpuplan.terminal.session import Terminal

F = TypeVar("F", bound=Callable[..., Any])

GLOBAL = "Global options"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Option(click.Option):
    """An option that stands under a heading of its own in the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **kwargs)
        self.section = section


def option(*names: str, section: str = "Options", **attributes: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """`click.option` under a heading."""
    return click.option(*names, cls=Option, section=section, **attributes)


def completing(known: Callable[[click.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """What completes a word to one of these, whatever its letter case."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known(context) if name.lower().startswith(incomplete.lower())]

    return complete


def format_option(people: str, *programs: str, what: str = "For people or for programs") -> Callable[[F], F]:
    """The choice between a form for people, which is the default, and those for programs."""
    return option(
        "-o",
        "--output-format",
        "format_",
        type=click.Choice([people, *programs]),
        default=people,
        section="Output",
        help=f"{what} [default: {people}].",
    )


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep a global option's value, wherever it stands; one that is not given does not undo one that is."""
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source is not click.core.ParameterSource.DEFAULT:
        context.find_root().ensure_object(dict)[parameter.name] = value


def _global_options() -> list[click.Parameter]:
    """The options that every verb takes, before or after its name."""
    shared: dict[str, Any] = {"section": GLOBAL, "expose_value": False, "callback": _remember}
    return [
        Option(
            ["-C", "--directory"],
            type=click.Path(exists=True, file_okay=False),
            metavar="DIR",
            help="The repository's root, which holds `overlays/` [default: here].",
            **shared,
        ),
        Option(["-q", "--quiet"], count=True, help="Say less on stderr: no verdicts, no hints.", **shared),
        Option(["-v", "--verbose"], count=True, help="Say more on stderr; twice: tracebacks of bugs.", **shared),
        Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            help="Colours; `auto` obeys NO_COLOR, FORCE_COLOR and the terminal [default: auto].",
            **shared,
        ),
    ]


class _Sections(click.Command):
    """Help with the options under their headings, the global ones last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", GLOBAL), []).append(record)
        for heading in sorted(sections, key=lambda heading: heading == GLOBAL):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def verb(
    name: str, *, shows_pages: bool = False, **attributes: str
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a verb of a function that is given the terminal first, and returns the exit code if it is not 0.

    It takes the global options, too. One that ``shows_pages`` prints what docstrings say: those of rules and fields.
    """

    def make(function: Callable[..., int | None]) -> click.Command:
        @wraps(function)
        @click.pass_context
        def run(context: click.Context, /, *given: object, **options: object) -> None:
            if shows_pages and sys.flags.optimize > 1:
                from gpuplan.compiler.base.diagnostics import GpuplanError

                raise GpuplanError(
                    f"Python was started without docstrings, which hold what `gpuplan {name}` shows",
                    "start it without `-OO`, or unset PYTHONOPTIMIZE",
                )
            terminal = Terminal.of(context)
            if terminal.directory != Terminal().directory:
                from gpuplan.terminal.named import refuse_leaving

                refuse_leaving(terminal.directory)
            context.exit(function(terminal, *given, **options) or 0)

        command = click.command(name, _Sections, context_settings=CONTEXT, **attributes)(run)
        command.params += _global_options()
        return command

    return make


class Verbs(_Sections, click.Group):
    """A group whose verbs are modules, loaded when they are run.

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
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = import_module(f"gpuplan.{folders[cmd_name]}.commands.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from gpuplan.compiler.base.wording import closest

            verb = closest(args[0], self.list_commands(ctx))
            if verb is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{verb}'?", ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(verb, line) for verb, (_, line) in verbs.items()])
        super().format_options(ctx, formatter)
