"""Runs a recipe against several gateways, each of which prints into a file.

    python fork.py PACKAGE RECIPE FILE URL KEY [FILE URL KEY ...]

The first run is in this process and the others in copies of it: importing the package and building its models takes
several times as long as the calls.
"""

import importlib
import os
import runpy
import sys
import traceback

package, recipe, *runs = sys.argv[1:]


def run(file, url, key):
    output = os.open(file, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(TOLLGATE_URL=url, TOLLGATE_KEY=key)
    sys.argv = [recipe]
    try:
        runpy.run_path(recipe, run_name="__main__")
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()


importlib.import_module(package)
first, *others = zip(runs[0::3], runs[1::3], runs[2::3])
run(*first)
children = []
for each in others:
    child = os.fork()
    if child == 0:
        run(*each)
        sys.exit()
    children.append(child)
for child in children:
    os.waitpid(child, 0)
