"""The whole evaluation as one JSON object, an item a line, never all of it in memory."""

import json
from typing import TextIO

from evaluators.report_objects import stream_parts
from evaluators.summary import Json, View


def write(view: View, summary: Json, out: TextIO) -> None:
    """Write summary, manifest, inputs, results and calls."""
    out.write("{\n")
    short = {**summary, "manifest": view.manifest}
    out.writelines(f"{json.dumps(name)}: {_dumped(value)},\n" for name, value in short.items())
    for number, (name, items) in enumerate(stream_parts(view)):
        out.write(f"{',' if number else ''}{json.dumps(name)}: [")
        separator = "\n"
        for item in items:
            out.write(f"{separator}{_dumped(item)}")
            separator = ",\n"
        out.write("]\n")
    out.write("}\n")


def _dumped(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair in a judge's reply
        return json.dumps(value)
    return text
