"""Small whole files in many languages, for tests of what a reply left out."""

PYTHON = '''\
"""Prices of an order."""

import math


class Order:
    def __init__(self, lines):
        self.lines = lines
        self.rate = 0.2

    def net(self):
        total = 0
        for line in self.lines:
            if line.price < 0:
                raise ValueError(line)
            total += line.price * line.count
        return total

    def gross(self):
        tax = self.net() * self.rate
        return math.ceil(self.net() + tax)


def report(order):
    head = f"{len(order.lines)} lines"
    body = f"net {order.net()}"
    foot = f"gross {order.gross()}"
    return "\\n".join([head, body, foot])
'''

JAVASCRIPT = """\
import { read } from './disk.js';

export function load(path) {
  const text = read(path);
  const rows = text.split('\\n');
  const cells = rows.map((row) => row.split(','));
  if (cells.length === 0) {
    throw new Error('empty table');
  }
  return cells;
}

export function show(cells) {
  for (const row of cells) {
    console.log(row.join(' | '));
  }
}
"""

TSX = """\
type Props = { items: string[]; title: string };

export function List({ items, title }: Props) {
  return (
    <section>
      <h1>{title}</h1>
      <ul>
        {items.map((item) => (
          <li key={item}>{item}</li>
        ))}
      </ul>
      <footer>{items.length} items</footer>
    </section>
  );
}
"""

GO = """\
package stack

type Stack struct {
	items []int
}

func (s *Stack) Push(n int) {
	s.items = append(s.items, n)
}

func (s *Stack) Pop() (int, bool) {
	if len(s.items) == 0 {
		return 0, false
	}
	last := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return last, true
}
"""

RUST = """\
pub struct Ring {
    data: Vec<u8>,
    head: usize,
}

impl Ring {
    pub fn push(&mut self, byte: u8) {
        let len = self.data.len();
        self.data[self.head] = byte;
        self.head = (self.head + 1) % len;
    }

    pub fn sum(&self) -> u32 {
        let mut sum = 0u32;
        for byte in &self.data {
            sum += u32::from(*byte);
        }
        sum
    }
}
"""

C = """\
#include <stdio.h>

static int clamp(int value, int low, int high)
{
    if (value < low)
        return low;
    if (value > high)
        return high;
    return value;
}

int main(void)
{
    printf("%d\\n", clamp(7, 0, 5));
    return 0;
}
"""

CSS = """\
body {
  margin: 0;
  padding: 0;
}

.card {
  color: #222;
  background: #fff;
  border: 1px solid #ddd;
  padding: 1rem;
}
"""

HTML = """\
<html>
  <body>
    <h1>Shop</h1>
    <ul>
      <li>Tea</li>
      <li>Coffee</li>
      <li>Water</li>
      <li>Juice</li>
    </ul>
    <p>Open daily.</p>
  </body>
</html>
"""

SQL = """\
CREATE TABLE person (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  born DATE,
  city TEXT
);
CREATE INDEX person_name ON person (name);
"""

YAML = """\
name: build
on: push
jobs:
  test:
    runs-on: linux
    steps:
      - checkout
      - install
      - compile
      - test
"""

JSON = """\
{
  "name": "shop",
  "port": 8080,
  "hosts": ["a", "b"],
  "debug": false,
  "retries": 3,
  "color": "red"
}
"""

BASH = """\
#!/bin/sh
set -e
build() {
  mkdir -p out
  cp -r src out
  tar cf out.tar out
  gzip out.tar
}
build
"""

LUA = """\
local M = {}

function M.area(w, h)
  local ok = w > 0 and h > 0
  if not ok then
    return nil
  end
  return w * h
end

return M
"""

HASKELL = """\
module Shape where

area :: Double -> Double -> Double
area w h
  | w < 0 = 0
  | h < 0 = 0
  | otherwise = w * h

name :: String
name = "shape"
"""

MARKDOWN = """\
# Guide

Install it first.

Then open a file.
Type what you want.
Look at the diff.
Press the key.

## License

MIT
"""

TEX = """\
\\section{Method}
We take ten samples.
Each is weighed twice.
The mean is written down.
Outliers are kept.
\\section{Result}
It works.
"""

VB = """\
Sub Main()
  Dim total As Integer
  total = 0
  total = total + 1
  total = total * 2
  Print total
End Sub
"""

OCAML = """\
let rec sum xs =
  match xs with
  | [] -> 0
  | x :: rest ->
    let tail = sum rest in
    x + tail

let () = print_int (sum [1; 2])
"""

LISP = """\
(defun area (w h)
  (when (minusp w)
    (error "width"))
  (when (minusp h)
    (error "height"))
  (* w h))
(print (area 2 3))
"""

INI = """\
[server]
host = localhost
port = 80
root = /srv
log = yes

[client]
retries = 3
"""

SOURCES = {
    "order.py": PYTHON,
    "load.js": JAVASCRIPT,
    "List.tsx": TSX,
    "stack.go": GO,
    "ring.rs": RUST,
    "clamp.c": C,
    "card.css": CSS,
    "shop.html": HTML,
    "person.sql": SQL,
    "build.yaml": YAML,
    "shop.json": JSON,
    "build.sh": BASH,
    "area.lua": LUA,
    "Shape.hs": HASKELL,
    "guide.md": MARKDOWN,
    "paper.tex": TEX,
    "main.vb": VB,
    "sum.ml": OCAML,
    "area.lisp": LISP,
    "server.ini": INI,
    "notes.unknown": C,
}
