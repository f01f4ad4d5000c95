// `ember`: run models, compile graphs, look after the cache.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "cli/ember/commands.h"

namespace ember::cli {

int fail(const Diagnostic& diagnostic) {
    std::string text = "ember: " + diagnostic.to_string();
    for (char& c : text) {
        c = c == '\n' ? ' ' : c;
    }
    std::fprintf(stderr, "%s\n", text.c_str());
    return 1;
}

double process_seconds() {
    std::ifstream stat("/proc/self/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
    size_t at = text.rfind(')');
    if (at == std::string::npos) {
        return 0;
    }
    // Field 22 is the start, in ticks since boot; the field after ')' is number 3.
    for (int field = 2; field < 22 && at != std::string::npos; ++field) {
        at = text.find(' ', at + 1);
    }
    double start = std::stod(text.substr(at + 1)) / static_cast<double>(sysconf(_SC_CLK_TCK));
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - start;
}

int64_t peak_bytes() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.starts_with("VmHWM:")) {
            return std::stoll(line.substr(6)) * 1024;
        }
    }
    return 0;
}

}  // namespace ember::cli

int main(int argc, char** argv) {
    using namespace ember::cli;
    CLI::App app{"Ember compiles tensor graphs and finds them again."};
    app.require_subcommand(1);
    Command chosen;
    add_run(app, chosen);
    add_tokenize(app, chosen);
    add_compile(app, chosen);
    add_cache(app, chosen);
    add_config(app, chosen);
    add_doctor(app, chosen);
    add_bench(app, chosen);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
        int code = app.exit(problem);
        return code == 0 ? 0 : 2;
    }
    try {
        return chosen();
    } catch (const std::exception& bug) {
        return fail(ember::error(ember::Code::kInternal, bug.what()));
    }
}
