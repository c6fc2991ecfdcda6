"""`redraft [FILE]`: options in, the terminal UI run, exit code out."""

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from app.errors import UsageError
from app.load_flags import load_flags
from app.load_options import LOAD_OPTIONS, Given, command_words

if TYPE_CHECKING:  # what reaches an engine need not be imported to print help
    from app.engine_client import EngineClient


@click.command()
@click.argument("file", required=False)
@load_flags()
@click.option("--engine", metavar="URL", help="Address of another engine, as http://localhost:8000/v1 or unix:SOCKET.")
@click.option("--encoding", metavar="NAME", help="How the file is encoded, where it is not UTF-8 or UTF-16.")
@click.option("--no-draft", is_flag=True, default=None, help="Decode plainly: the same output, slower.")
@click.option("--strict", is_flag=True, default=None, help="New syntax errors block.")
@click.option("--plain", is_flag=True, help="Ask in plain lines, for screen readers and scripts; needs FILE.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def ui(
    file: str | None,
    load: Given,
    engine: str | None,
    encoding: str | None,
    no_draft: bool | None,
    strict: bool | None,
    plain: bool,
    no_mouse: bool,
) -> int:
    """Edit FILE in the terminal UI; without FILE, choose one there."""
    if plain:
        return _plain(file, load, engine, encoding, no_draft, strict)
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # textual paints on stderr
        raise UsageError("The terminal UI needs a terminal; --plain and `redraft edit FILE -i TEXT` work without one.")
    from app.editing.document import open_document
    from app.settings import load_settings
    from app.tui.garbage import looked_for_later
    from app.tui.look import choose_look, tell_textual
    from app.tui.thread_turns import short_turns

    begin_to_look = click.get_current_context().with_resource(looked_for_later())
    if file is not None:
        open_document(file, encoding)  # what cannot be opened is said where the user is, not on a screen of its own
    settings = load_settings()
    look = choose_look(settings, os.environ)
    tell_textual(look, os.environ)
    # Deferred: textual costs 0.3 s that no other command must pay, and reads what it is told when it is imported.
    from app.tui.app import RedraftApp, UiOptions

    def connect(chosen: str | None) -> "EngineClient":
        from app.clients.choose import choose

        # A model picked from those of this machine runs here, whatever engine was named at the start.
        return choose(
            settings if chosen is None else replace(settings, engine_url=None),
            engine=engine if chosen is None else None,
            load=load if chosen is None else _for_picked(load, chosen),
            child=True,
            on_note=lambda note: app.engine_note(note),
        )

    def watch_options(chosen: str | None) -> tuple[str, ...]:
        from app.watch_jobs import command_options

        if chosen is None:
            given = load
        elif settings.engine_url is None:
            given = _for_picked(load, chosen)
        else:  # a watch asks the engine of the settings, not the model that was picked here
            given = {}
        return command_options(
            engine=engine if chosen is None else None,
            load=given,
            strict=strict,
            no_draft=no_draft,
        )

    options = UiOptions(
        file=file,
        encoding=encoding,
        draft=settings.draft if no_draft is None else not no_draft,
        strict=settings.strict if strict is None else strict,
        keys=dict(settings.keys),
        theme=look.theme,
        watch_options=watch_options,
        given=origins(load, engine, no_draft, strict),
        on_picture=begin_to_look,
        load_options=tuple(command_words(_for_any(load))),
    )
    app = RedraftApp(options, connect)
    with short_turns():
        app.run(mouse=look.mouse and not no_mouse)
    return app.return_code or 0


def _for_picked(load: Given, chosen: str) -> Given:
    """The options for a model that was picked meanwhile."""
    return {**_for_any(load), "model": chosen}


def _for_any(load: Given) -> Given:
    """The options that are not about one model; consent to run code was given for that one."""
    return {name: value for name, value in load.items() if name not in ("model", "remote_code")}


def origins(
    load: Given, engine: str | None, no_draft: bool | None, strict: bool | None
) -> dict[str, tuple[object, str]]:
    """Settings key -> value and option, of what was given."""
    given: dict[str, tuple[object, str]] = {
        option.key: (load[option.name], option.flag) for option in LOAD_OPTIONS if option.name in load
    }
    if engine is not None:
        given["engine.url"] = engine, "--engine"
    if no_draft is not None:
        given["edit.draft"] = not no_draft, "--no-draft"
    if strict is not None:
        given["edit.strict"] = strict, "--strict"
    return given


def _plain(
    file: str | None,
    load: Given,
    engine: str | None,
    encoding: str | None,
    no_draft: bool | None,
    strict: bool | None,
) -> int:
    from app.clients.choose import choose
    from app.headless import standard_streams
    from app.plain_session import PlainOptions, plain_session
    from app.settings import load_settings

    if file is None:
        raise UsageError("--plain needs the name of a file.")
    settings = load_settings()
    options = PlainOptions(
        file=file,
        encoding=encoding,
        draft=settings.draft if no_draft is None else not no_draft,
        strict=settings.strict if strict is None else strict,
    )
    return plain_session(options, choose(settings, engine=engine, load=load), standard_streams())
