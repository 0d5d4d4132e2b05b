"""A program whose help looks like limber's, for the tests of what reads it."""
import pathlib
import stat

TOP = """Runs things.
Usage: limber [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit
  --version                   Version

Look, and look again:
  look                        What is in a model
  page                        A page about runs

Change it:
  touch                       Changes a model

Exit codes: 0 done.
"""
LOOK = """What is in a model
Usage: limber look [OPTIONS] model

Positionals:
  model MODEL REQUIRED        A file

Options:
  -h,--help                   Print this help message and exit
  --json                      Machine-readable output
  --kind a|b                  Which
  --order increasing|decreasing|random
                              How rows are sorted
  --rows one|two|three|fours! Exactly as wide as the column

Examples:
  limber look x.onnx --json
"""
PAGE = """A page about runs
Usage: limber page [OPTIONS] runs...

Positionals:
  runs RUN ... REQUIRED       Folders

Options:
  -h,--help                   Print this help message and exit
  -o,--output FILE            The page
"""

TOUCH = """Changes a model
Usage: limber touch [OPTIONS] model

Positionals:
  model MODEL REQUIRED        A file

Options:
  -h,--help                   Print this help message and exit
  --json                      Machine-readable output
"""


def write_program(folder, top=TOP, look=LOOK, page=PAGE):
    """Its path."""
    texts = {"top": top, "look": look, "page": page, "touch": TOUCH}
    for name, text in texts.items():
        pathlib.Path(folder, name).write_text(text)
    program = pathlib.Path(folder, "limber")
    program.write_text('#!/bin/sh\ncd "$(dirname "$0")"\ncase $1 in --help) cat top ;; *) cat "$1" ;; esac\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program
