# Shared by the scripts: where things stand and how they speak. Sourced, never run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
model_folder=$root/.cache/models
model_file=SmolLM2-135M-Instruct.Q4_1.gguf

say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}

# The GGUF that the demo, the tests and the benchmarks run: EMBER_MODEL, else the one that scripts/setup unpacked.
model_path() { printf '%s\n' "${EMBER_MODEL:-$model_folder/$model_file}"; }

# The Python of tools and tests; false where scripts/setup found none that is new enough.
have_python() { [ -x "$venv/bin/python" ]; }

# The Python of small jobs that any version can do: .venv's, else the machine's.
any_python() {
    if have_python; then "$venv/bin/python" "$@"; else python3 "$@"; fi
}

# How many jobs a build runs: one a core, but no more than memory allows (2 GiB each: LLVM's headers and its static link).
build_jobs() {
    local cores memory_kib
    cores=$(nproc)
    memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
    local by_memory=$((memory_kib / 2097152))
    [ "$by_memory" -ge 1 ] || by_memory=1
    printf '%s\n' "${EMBER_JOBS:-$((cores < by_memory ? cores : by_memory))}"
}
