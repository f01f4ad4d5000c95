"""docs/cpp-api.md quotes examples/guide.cpp, which ctest compiles and runs: word for word, all of it, in order."""

import re


def test_guide_quotes_the_example(root):
    source = (root / "examples" / "guide.cpp").read_text()
    functions = re.findall(r"^void (?!expect\()\w+\(\) \{\n.*?^\}\n", source, re.DOTALL | re.MULTILINE)
    quoted = re.findall(r"^```cpp\n(.*?)^```", (root / "docs" / "cpp-api.md").read_text(), re.DOTALL | re.MULTILINE)
    assert functions
    assert quoted == functions
    calls = re.findall(r"^        (\w+)\(\);$", source, re.MULTILINE)
    assert calls == [re.match(r"void (\w+)", function)[1] for function in functions]
