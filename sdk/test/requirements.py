"""Prints the dependencies of a pyproject.toml, including those of its tests. (No tomllib before
Python 3.11.)"""

import ast
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
for name in ("dependencies", "test"):
    print("\n".join(ast.literal_eval(re.search(rf"^{name} = (\[[^\]]*\])$", text, re.MULTILINE)[1])))
