#!/usr/bin/env python3
"""The cells of a terminal as a picture: reads what `tmux capture-pane -e -p` writes, and writes SVG.

    tmux capture-pane -e -p -t NAME | cells.py --columns 80 --title 'haft demo' > demo.svg

Letters are text of the picture, placed by column, so that it looks the same in whatever font the reader has.
"""

import argparse
import re
import sys
import unicodedata
from xml.sax.saxutils import escape

FOREGROUND, BACKGROUND = "#d7dae0", "#16181d"
COLOURS = [
    "#3b4048", "#e5686b", "#7fc58b", "#dfb867", "#76a9f0", "#c78fe0", "#63c2c9", "#c9ced6",
    "#7d8590", "#ff8a8c", "#9bdca6", "#f2cf85", "#96c0ff", "#daabf0", "#86dbe0", "#ffffff",
]
WIDTH, HEIGHT, SIZE, EDGE, BAR = 8.4, 18, 14, 14, 30


def colour(number):
    if number < 16:
        return COLOURS[number]
    if number < 232:
        number -= 16
        parts = [number // 36, number // 6 % 6, number % 6]
        return "#" + "".join(f"{0 if part == 0 else 55 + 40 * part:02x}" for part in parts)
    return "#" + f"{8 + 10 * (number - 232):02x}" * 3


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.front = self.back = None
        self.bold = self.dim = self.italic = self.underline = self.reverse = False

    def apply(self, codes):
        codes = list(codes) or [0]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.reset()
            elif code in (1, 2, 3, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code in (23, 24, 27):
                setattr(self, {23: "italic", 24: "underline", 27: "reverse"}[code], False)
            elif code in (38, 48):
                kind = codes.pop(0) if codes else 0
                if kind == 5 and codes:
                    value = colour(codes.pop(0))
                elif kind == 2 and len(codes) >= 3:
                    value = "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))
                else:
                    continue
                setattr(self, "front" if code == 38 else "back", value)
            elif code == 39:
                self.front = None
            elif code == 49:
                self.back = None
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.front = COLOURS[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.back = COLOURS[code - 40 if code < 100 else code - 92]

    def key(self):
        front, back = self.front or FOREGROUND, self.back
        if self.reverse:
            front, back = back or BACKGROUND, front
        return front, back, self.bold, self.dim, self.italic, self.underline


def wide(letter):
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 0 if unicodedata.combining(letter) else 1


def runs(line, style):
    """Pieces of a line in one style: (column, columns, text, style)."""
    column, found = 0, []
    for piece in re.split(r"(\x1b\[[0-9;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))", line):
        if piece.startswith("\x1b["):
            style.apply(int(code or 0) for code in re.split("[;:]", piece[2:-1]))
        elif piece and not piece.startswith("\x1b"):
            columns = sum(map(wide, piece))
            found.append((column, columns, piece, style.key()))
            column += columns
    return found


def draw(lines, columns, title):
    width, height = columns * WIDTH + 2 * EDGE, len(lines) * HEIGHT + EDGE + BAR + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',\'Liberation Mono\',monospace" font-size="{SIZE}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        *(f'<circle cx="{EDGE + 6 + at * 18}" cy="17" r="5.5" fill="#3b4048"/>' for at in range(3)),
        f'<text x="50%" y="21" text-anchor="middle" font-size="12" fill="#8d95a1">{escape(title)}</text>',
    ]
    style = Style()
    for row, line in enumerate(lines):
        top = BAR + row * HEIGHT
        for column, length, text, (front, back, bold, dim, italic, underline) in runs(line, style):
            x = EDGE + column * WIDTH
            if back:
                out.append(f'<rect x="{x:.1f}" y="{top}" width="{length * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>')
            if not text.strip() and not underline:
                continue
            kept = text.rstrip() if not underline else text
            start = len(kept) - len(kept.lstrip())
            x += start * WIDTH
            kept = kept[start:]
            more = "".join([
                f' fill="{front}"',
                ' font-weight="bold"' if bold else "",
                ' opacity=".62"' if dim else "",
                ' font-style="italic"' if italic else "",
                ' text-decoration="underline"' if underline else "",
            ])
            cells = sum(map(wide, kept))
            out.append(
                f'<text x="{x:.1f}" y="{top + 13.5}" textLength="{cells * WIDTH:.1f}" lengthAdjust="spacing" xml:space="preserve"{more}>{escape(kept)}</text>'
            )
    return "\n".join([*out, "</svg>", ""])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--columns", type=int, default=80)
    options.add_argument("--title", default="")
    options = options.parse_args()
    lines = sys.stdin.read().rstrip("\n").split("\n")
    while lines and not re.sub(r"\x1b\[[0-9;:]*m", "", lines[-1]).strip():
        lines.pop()
    sys.stdout.write(draw(lines, options.columns, options.title))


main()
