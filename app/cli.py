"""The `redraft` command: options in, a call, an exit code out. Imports nothing heavy at module level.

Commands are imported when they are run, so `--help` loads neither numpy nor a model. Invariant: no traceback reaches a
user; what was not foreseen is one sentence and a report file.
"""

import contextlib
import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from app.early_signals import raise_noted
from app.errors import AppError, ExitCode, foreseen

COMMANDS = {
    "edit": ("app.edit_command:edit", "Edit one file; prints a diff and writes nothing without --apply."),
    "watch": ("app.watch_command:watch", "Propose an edit whenever a file is saved."),
    "review": ("app.review_command:review", "Decide hunk by hunk about a patch, or what a watch proposed."),
    "undo": ("app.history_command:undo", "Take back the newest applied edit."),
    "redo": ("app.history_command:redo", "Apply an undone edit again."),
    "history": ("app.history_command:history", "List applied edits."),
    "bench": ("app.bench_command:bench", "Measure speed: prefill, plain, peers, edit, pair, replay, server."),
    "verify": ("app.verify_command:verify", "Prove that drafting changes nothing; print the token hash."),
    "serve": ("app.serve_command:serve", "Serve the engine to OpenAI-compatible clients."),
    "models": ("app.models_command:models", "List, pull, verify, import, export and remove model weights."),
}
"""Name -> (where it is, what it does); the text here lets `--help` answer without importing the commands."""

_UI = "[FILE]"
"""Stands for the terminal UI, which has no name: what runs when no command is given."""
_EVERYWHERE = ("-h", "--help", "--version")


class LazyGroup(click.Group):
    """A group that imports a command when it is run, not when it is listed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in COMMANDS and args[0] not in _EVERYWHERE):
            if args and not args[0].startswith("-") and not os.path.lexists(args[0]):
                for meant in difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.7):
                    raise click.UsageError(f"There is no command or file {args[0]!r}; did you mean `redraft {meant}`?")
            args = [_UI, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = "app.ui_command:ui" if cmd_name == _UI else COMMANDS.get(cmd_name, ("",))[0]
        if not where:
            return None
        module, _, attribute = where.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if not getattr(command, "answers_noted_signals", False):
            raise_noted()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            listed = [(name, text) for name, (_, text) in COMMANDS.items()]
            formatter.write_dl([(_UI, "The terminal UI: edit a file, watch it happen, review, apply."), *listed])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        command = self.get_command(ctx, _UI)
        assert command is not None
        with formatter.section("Options of the terminal UI"):
            records = [option.get_help_record(ctx) for option in command.params if isinstance(option, click.Option)]
            formatter.write_dl([record for record in records if record is not None])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="redraft", message="redraft %(version)s")
def cli() -> None:
    """Edit a source file with a local model.

    The model rewrites the whole file, drafted from the file itself, so the output is exactly what plain greedy
    decoding gives, several times faster. You see a diff; nothing is written before you say so.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (the console script passes it to `sys.exit`)."""
    _open_missing_streams()
    try:
        result = cli.main(args=None if arguments is None else list(arguments), standalone_mode=False)
        sys.stdout.flush()
        return int(result) if isinstance(result, int) else ExitCode.OK
    except click.ClickException as error:
        error.show(sys.stderr)
        return ExitCode.USAGE
    except AppError as error:
        from app.terminal_text import visible_lines  # brings the diff, which `--help` need not pay

        click.echo(f"redraft: {visible_lines(str(error))}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("redraft: interrupted.", err=True)
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click makes the latter of the former
        # The reader of our output has gone. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        click.echo(f"redraft: {foreseen(error)}", err=True)
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FILE
    except Exception as error:
        from app.crash_report import write_report

        click.echo(f"redraft: {foreseen(error)} {write_report(traceback.format_exc())}", err=True)
        return ExitCode.REFUSED


def _open_missing_streams() -> None:
    """A stream that was closed before we started reads and writes nothing, and is no error."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # lives as long as the process


if __name__ == "__main__":
    sys.exit(main())
