"""The command `ember` of an installed package: the program that lies in it."""

import os
import sys
from pathlib import Path


def main():
    program = Path(__file__).parent / "bin" / "ember"
    os.execv(program, ["ember", *sys.argv[1:]])
