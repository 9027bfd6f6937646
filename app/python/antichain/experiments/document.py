"""A report consists of headings, paragraphs, tables and pictures. It is written once and printed as Markdown,
as HTML, and for a terminal."""

import html
import re
import shutil
import textwrap

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 Helvetica, Arial, sans-serif; color: #222; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; }}
h2 {{ font-size: 1.3rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd;
  font-variant-numeric: tabular-nums; }}
td {{ white-space: nowrap; }} td.text {{ white-space: normal; }}
table.dense th, table.dense td {{ padding: 0.2rem 0.35rem; font-size: 12px; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 2px solid #888; vertical-align: bottom; }}
figure {{ margin: 1.2rem 0; }} img {{ max-width: 100%; max-height: 60rem; }}
figcaption {{ color: #555; font-size: 13px; }}
code {{ background: #f2f2f2; padding: 0 0.2em; overflow-wrap: anywhere; }}
@page {{ size: A4 landscape; margin: 12mm; }}
@media print {{ body {{ max-width: none; margin: 0; padding: 0; }} .wide {{ overflow: visible; }}
  tr, figure {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}</body>
</html>
"""
MANY_COLUMNS, SENTENCE = 8, 60  # above these a table is dense, and a cell's text is wrapped


def literal(text):
    """Returns a name from outside as a document shows it: no letter of it is Markdown or HTML."""
    return re.sub(r"[\\`*<>|\[\]]|\b_(?!\w)|(?<!\w)_", r"\\\g<0>", text)


def _plain(text):
    return re.sub(r"\\(.)", r"\1", text)


def _in_html(text):
    """Takes **bold**, `code`, and a letter behind a backslash as it is."""
    held = re.sub(r"\\(.)", lambda found: f"\0{ord(found[1])};", text)
    held = re.sub(r"`([^`]*)`", r"<code>\1</code>", re.sub(r"\*\*(.*?)\*\*", r"<b>\1</b>", html.escape(held)))
    return re.sub(r"\0(\d+);", lambda found: html.escape(chr(int(found[1]))), held)


class Document:
    """Texts may have **bold** and `code`; names from outside are made `literal` first."""

    def __init__(self, title):
        self.title, self._parts = title, []

    def _add(self, markdown, html, text=""):
        self._parts.append((f"{markdown}\n\n", f"{html}\n", f"{text}\n"))

    def heading(self, text):
        self._add(f"## {text}", f"<h2>{_in_html(text)}</h2>", text + "\n")

    def paragraph(self, text):
        self._add(text, f"<p>{_in_html(text)}</p>", textwrap.fill(_plain(text), 80))

    def picture(self, file, caption):
        """Takes a file's path relative to the report."""
        source, said = html.escape(file), html.escape(caption)
        image = f'<img src="{source}" alt="{said}" loading="lazy">'
        markdown = f"![{literal(caption)}]({file.replace(' ', '%20')})"
        self._add(markdown, f"<figure>{image}<figcaption>{said}</figcaption></figure>")

    def table(self, header, rows, keys=1):
        """The first column is text, the others are numbers on the right. `keys` is as text_table has it."""
        text = text_table(header, [[_plain(cell) for cell in row] for row in rows], keys)
        header = [name.replace("\n", " ") for name in header]
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        markdown = "\n".join("|" + "".join(f" {c} |" for c in line) for line in lines)
        # A header may break after the characters that join words.
        names = [re.sub("([+_-])", r"\1<wbr>", _in_html(cell)) for cell in header]
        heads = "".join(f"<th>{name}</th>" for name in names)
        body = ""
        for row in rows:
            marks = [' class="text"' if len(cell) > SENTENCE else "" for cell in row]
            cells = [f"<td{mark}>{_in_html(cell)}</td>" for mark, cell in zip(marks, row)]
            body += f"<tr>{''.join(cells)}</tr>\n"
        dense = ' class="dense"' if len(header) > MANY_COLUMNS else ""
        table = f'<div class="wide"><table{dense}>\n<tr>{heads}</tr>\n{body}</table></div>'
        self._add(markdown, table, text)

    def markdown(self):
        return f"# {self.title}\n\n" + "".join(part[0] for part in self._parts)

    def text(self):
        return "".join(part[2] for part in self._parts)

    def write(self, out):
        """Writes report.md and report.html into a ResultsFolder."""
        out.write("report.md", self.markdown())
        out.write("report.html", self.html())

    def html(self):
        return PAGE.format(title=html.escape(self.title), body="".join(part[1] for part in self._parts))


def text_table(header, rows, keys=1):
    """Returns a table for a terminal. Names may have two lines. What is too wide for it goes on below, with
    the first columns, the keys, again."""
    names = [(name.split("\n") + [""])[:2] for name in header]
    widths = [
        max(len(text) for text in (*name, *column)) for name, column in zip(names, list(zip(*rows)) or names)
    ]
    width, parts = shutil.get_terminal_size().columns, [[]]
    for column in range(keys, len(header)):
        if parts[-1] and 2 + sum(widths[c] + 2 for c in [*range(keys), *parts[-1], column]) - 2 > width:
            parts.append([])
        parts[-1].append(column)

    def line(cells, columns):
        aligned = [cells[c].rjust(widths[c]) if c else cells[c].ljust(widths[c]) for c in columns]
        return ("  " + "  ".join(aligned)).rstrip() + "\n"

    texts = []
    for part in parts:
        columns = [*range(keys), *part]
        heads = [[name[i] for name in names] for i in (0, 1)] + [["-" * w for w in widths]]
        texts.append("".join(line(cells, columns) for cells in [*(h for h in heads if any(h)), *rows]))
    return "\n".join(texts)


def counted(count, thing):
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
