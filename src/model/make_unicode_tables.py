#!/usr/bin/env python3
"""Writes unicode_tables.h: the code points at which the class of characters changes, for the pre-tokenizers' \\p{L},
\\p{N} and \\s. Letters and numbers are the general categories L* and N* of Python's unicodedata; white space is the
Unicode property White_Space, which is str.isspace() without the four separators U+001C..U+001F.

    python3 make_unicode_tables.py > unicode_tables.h      (the Unicode version is that of the Python)
"""

import sys
import unicodedata

OTHER, LETTER, NUMBER, SPACE = range(4)


def class_of(code):
    char = chr(code)
    if char.isspace() and not 0x1C <= code <= 0x1F:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicodedata.category(char)[0], OTHER)


def main():
    rows, before = [], None
    for code in range(sys.maxunicode + 1):
        now = class_of(code)
        if now != before:
            rows.append(code << 2 | now)
        before = now
    print("// Written by make_unicode_tables.py; do not edit.")
    print("#pragma once\n\n#include <array>\n#include <cstdint>\n\nnamespace ember::model {\n")
    print("// clang-format off")
    print(f"/// Unicode {unicodedata.unidata_version}. Each element: (first code point << 2) | class, up to the next;")
    print("/// classes: 0 other, 1 letter, 2 number, 3 white space.")
    print(f"constexpr std::array<uint32_t, {len(rows)}> kClassChanges = {{")
    for i in range(0, len(rows), 12):
        print("    " + " ".join(f"{row:#x}," for row in rows[i : i + 12]))
    print("};\n// clang-format on\n\n}  // namespace ember::model")


main()
