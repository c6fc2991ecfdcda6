"""A small stockroom: items, quantities, reservations, and a journal of what happened.

Quantities are whole units. Prices are integer cents, so that sums are exact.
"""

import csv
import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass
class Item:
    """One kind of thing on the shelf."""

    sku: str
    name: str
    price_cents: int
    quantity: int = 0
    reserved: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def available(self):
        return self.quantity - self.reserved

    def value_cents(self):
        return self.price_cents * self.quantity


class Stockroom:
    """Keeps items by SKU and remembers every movement."""

    def __init__(self, name):
        self.name = name
        self.items = {}
        self.journal = []

    def add_item(self, item):
        if item.sku in self.items:
            raise ValueError(f"duplicate sku: {item.sku}")
        self.items[item.sku] = item
        self._log("add", item.sku, item.quantity)

    def remove_item(self, sku):
        item = self.items.pop(sku)
        self._log("remove", sku, item.quantity)
        return item

    def receive(self, sku, count):
        item = self.items[sku]
        item.quantity += count
        self._log("receive", sku, count)

    def ship(self, sku, count):
        item = self.items[sku]
        if count > item.available:
            raise ValueError(f"only {item.available} of {sku} available")
        item.quantity -= count
        self._log("ship", sku, count)

    def reserve(self, sku, count):
        item = self.items[sku]
        if count > item.available:
            raise ValueError(f"only {item.available} of {sku} available")
        item.reserved += count
        self._log("reserve", sku, count)

    def release(self, sku, count):
        item = self.items[sku]
        if count > item.reserved:
            raise ValueError(f"only {item.reserved} of {sku} reserved")
        item.reserved -= count
        self._log("release", sku, count)

    def find(self, text):
        text = text.lower()
        found = []
        for item in self.items.values():
            if text in item.name.lower() or text in item.sku.lower():
                found.append(item)
        return found

    def by_tag(self, tag):
        return [item for item in self.items.values() if tag in item.tags]

    def low_stock(self, limit=5):
        low = [item for item in self.items.values() if item.available < limit]
        low.sort(key=lambda item: item.available)
        return low

    def total_value_cents(self):
        total = 0
        for item in self.items.values():
            total += item.value_cents()
        return total

    def _log(self, action, sku, count):
        self.journal.append((datetime.now(), action, sku, count))


def load_csv(path, name="stockroom"):
    """Read a stockroom from a CSV file with the columns sku, name, price_cents, quantity, tags."""
    room = Stockroom(name)
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            tags = [tag for tag in row.get("tags", "").split("|") if tag]
            item = Item(
                sku=row["sku"],
                name=row["name"],
                price_cents=int(row["price_cents"]),
                quantity=int(row["quantity"]),
                tags=tags,
            )
            room.add_item(item)
    return room


def save_json(room, path):
    """Write the stockroom as JSON, items in order of their SKU."""
    data = {
        "name": room.name,
        "items": [
            {
                "sku": item.sku,
                "name": item.name,
                "price_cents": item.price_cents,
                "quantity": item.quantity,
                "reserved": item.reserved,
                "tags": item.tags,
            }
            for item in sorted(room.items.values(), key=lambda item: item.sku)
        ],
    }
    Path(path).write_text(json.dumps(data, indent=2), encoding="utf-8")


def report(room):
    """A table for people: one line for each item, then the total."""
    lines = [f"Stockroom {room.name}"]
    for item in sorted(room.items.values(), key=lambda item: item.name):
        price = item.price_cents / 100
        lines.append(f"{item.sku:10} {item.name:24} {item.available:5} x {price:9.2f}")
    total = room.total_value_cents() / 100
    lines.append(f"{'total':10} {total:49.2f}")
    return "\n".join(lines)
