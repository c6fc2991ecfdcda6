"""Which token ids end a reply, by what the configurations beside a Hugging Face checkpoint say.

Knows the forms `eos_token_id` is written in; nothing of tokenizers. Light. Invariant: ids are numbers that can be
ids, or the configuration is refused by name.
"""

from collections.abc import Mapping
from typing import Any

from editor_engine.errors import ModelFileError
from editor_engine.foreign_json import shown

CONFIG, GENERATION_CONFIG = "config.json", "generation_config.json"


def is_id(value: object) -> bool:
    """A number that can be a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def end_ids(config: Mapping[str, Any], generation: Mapping[str, Any]) -> tuple[int, ...]:
    """Ids that either configuration ends a reply with, ascending; of models that also see, the text's part as well.

    Each may have a number, a list of them, null or nothing. Raises ModelFileError for anything else.
    """
    text = config.get("text_config")
    places = [(CONFIG, config), (GENERATION_CONFIG, generation)]
    if isinstance(text, dict):
        places.append((CONFIG, text))
    found: set[int] = set()
    for name, settings in places:
        value = settings.get("eos_token_id")
        ids = value if isinstance(value, list) else [] if value is None else [value]
        for number in ids:
            if not is_id(number):
                raise ModelFileError(f"{name} is damaged: eos_token_id is {shown(value)}, which cannot be.")
        found.update(ids)
    return tuple(sorted(found))
