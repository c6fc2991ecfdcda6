"""A reply that is nothing but a number of tokens: what the decode loop pushes into, in tests of drafters and rules."""

from dataclasses import dataclass, field


@dataclass
class CountingSink:
    """A `TokenSink` that takes `limit` tokens."""

    limit: int
    ids: list[int] = field(default_factory=list)

    def wants_more(self) -> bool:
        """Fewer than the limit have come."""
        return len(self.ids) < self.limit

    @property
    def room(self) -> int:
        """How many more may come."""
        return self.limit - len(self.ids)

    def push(self, token: int) -> None:
        """Take one."""
        self.ids.append(token)
