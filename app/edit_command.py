"""`redraft edit`: options in, `app.headless` called, exit code out."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from app.load_flags import load_flags
from app.load_options import Given

if TYPE_CHECKING:  # the edit brings the language tables and parsers: 0.1 s that `--help` must not pay
    from app.engine_client import EngineClient
    from app.headless import EditOptions


class EditCommand(click.Command):
    """A command that, as a filter, gives back the text that came in even when its options cannot be parsed."""

    answers_noted_signals = True
    """`app.headless` ends it then as at any other time: with its result, and the text that came in."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        given = tuple(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError:
            if "-" in given:
                from app.headless import give_back_stdin

                give_back_stdin()
            raise


@click.command(cls=EditCommand)
@click.argument("file")
@click.option("-i", "--instruction", required=True, help="What to change, in plain words.")
@click.option("--lines", metavar="A:B", help="Only these lines may change (counted from 1, both ends included).")
@click.option("--symbol", metavar="NAME", help="Only this function, class or method may change.")
@click.option("--context", multiple=True, metavar="FILE", help="A file the model may read; repeat for several.")
@click.option("--apply", is_flag=True, help="Write the change, if no check blocks it.")
@click.option("--patch", metavar="OUT", help="Write the diff to a file, too.")
@click.option("--stdout", is_flag=True, help="Print the new file instead of the diff.")
@click.option("--json", "json_", is_flag=True, help="Print JSON lines instead of the diff.")
@click.option("--dry-run", is_flag=True, help="Print the prompt, token counts and expected time; run nothing.")
@click.option("--strict", is_flag=True, default=None, help="New syntax errors block.")
@click.option("--no-draft", is_flag=True, default=None, help="Decode plainly: the same output, slower.")
@click.option("--prove", is_flag=True, help="Decode again without drafting and compare the tokens; 1 if they differ.")
@click.option("--max-deletions", type=click.IntRange(0), metavar="N", help="Most lines that may be deleted.")
@click.option("--path", "name", metavar="NAME", help="With - as FILE: the name that stdin goes by.")
@click.option("--encoding", metavar="NAME", help="How the file is encoded, where it is not UTF-8 or UTF-16.")
@click.option("--engine", metavar="URL", help="Address of another engine, as http://localhost:8000/v1 or unix:SOCKET.")
@load_flags()
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors and warnings.")
@click.option("--stream", is_flag=True, help="Show the reply as it comes, coloured by where each token came from.")
@click.option("-v", "--verbose", is_flag=True, help="Say more: figures by source, and the output's log-likelihood.")
def edit(
    file: str,
    instruction: str,
    lines: str | None,
    symbol: str | None,
    context: tuple[str, ...],
    apply: bool,
    patch: str | None,
    stdout: bool,
    json_: bool,
    dry_run: bool,
    strict: bool | None,
    no_draft: bool | None,
    prove: bool,
    max_deletions: int | None,
    name: str | None,
    encoding: str | None,
    engine: str | None,
    load: Given,
    quiet: bool,
    stream: bool,
    verbose: bool,
) -> int:
    """Edit FILE as the instruction says; print a diff and write nothing without --apply (or a yes on a terminal).

    With - as FILE, stdin is read and the new file printed; on any failure the text that came in is printed unchanged
    and the exit code is not 0.
    """
    from app.headless import EditOptions, edit, hush_joined_stderr, standard_streams

    if file == "-":
        hush_joined_stderr()

    def connect(options: "EditOptions") -> "tuple[EditOptions, EngineClient]":
        from app.clients.choose import choose
        from app.settings import load_settings

        settings = load_settings()
        options = replace(
            options,
            strict=settings.strict if strict is None else strict,
            draft=settings.draft if no_draft is None else not no_draft,
        )
        return options, choose(settings, engine=engine, load=load)

    options = EditOptions(
        file=file,
        instruction=instruction,
        lines=lines,
        symbol=symbol,
        context=context,
        name=name,
        encoding=encoding,
        apply=apply,
        patch=patch,
        stdout=stdout,
        json=json_,
        dry_run=dry_run,
        prove=prove,
        max_deletions=max_deletions,
        quiet=quiet,
        stream=stream,
        verbose=verbose,
    )
    return edit(options, connect, standard_streams())
