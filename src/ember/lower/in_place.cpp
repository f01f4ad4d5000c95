// Where in-place updates begin, and what comes before: see in_place.h.
#include "ember/lower/in_place.h"

#include <algorithm>
#include <set>

#include "ember/support/check.h"

namespace ember::lower {
namespace {

BufferId root_of(const Program& program, BufferId buffer) {
    while (program.buffers[static_cast<size_t>(buffer)].alias_of >= 0) {
        buffer = program.buffers[static_cast<size_t>(buffer)].alias_of;
    }
    return buffer;
}

enum class Access : uint8_t { kRead, kWritten };

/// Calls f(BufferId&, Access) for each mention of a buffer in a step; results that are arguments too are mentioned
/// twice. The kLoad of a ComputeScalar is not among them: its buffer stands in the table of scalars.
template <class F>
struct Accesses {
    const std::vector<Kernel>& kernels;
    F f;

    template <class Buffers>
    void all(Buffers& buffers, Access access) {
        for (auto& buffer : buffers) {
            f(buffer, access);
        }
    }
    void operator()(auto&) {}
    void launch(auto& s) {
        const Kernel& kernel = kernels[static_cast<size_t>(s.kernel)];
        for (size_t k = 0; k < s.buffers.size(); ++k) {
            f(s.buffers[k], kernel.buffers[k].written ? Access::kWritten : Access::kRead);
        }
    }
    void gemm(auto& s) {
        f(s.a.buffer, Access::kRead);
        f(s.b.buffer, Access::kRead);
        f(s.c.buffer, Access::kWritten);
    }
    void quantized(auto& s) {
        f(s.x.buffer, Access::kRead);
        f(s.weights, Access::kRead);
        f(s.result, Access::kWritten);
    }
    void rows(auto& s) {
        f(s.rows, Access::kRead);
        if (s.index >= 0) {
            f(s.index, Access::kRead);
        }
        f(s.to, Access::kWritten);
    }
    void copy(auto& s) {
        f(s.from, Access::kRead);
        f(s.to, Access::kWritten);
    }
    void call(auto& s) {
        all(s.arguments, Access::kRead);
        all(s.results, Access::kWritten);
    }
    void runtime(auto& s) {
        for (auto& argument : s.arguments) {
            if (argument.is_buffer()) {
                using Kind = std::remove_cvref_t<decltype(argument)>::Kind;
                auto buffer = static_cast<BufferId>(argument.value);
                f(buffer, argument.kind == Kind::kRead ? Access::kRead : Access::kWritten);
                if constexpr (!std::is_const_v<std::remove_reference_t<decltype(argument)>>) {
                    argument.value = buffer;
                }
            }
        }
    }
    void loop(auto& s) {
        all(s.initial, Access::kRead);
        all(s.invariants, Access::kRead);
        for (auto* written : {&s.ping, &s.finals, &s.stacked}) {
            all(*written, Access::kWritten);
        }
        f(s.index, Access::kWritten);
        if (s.go_on >= 0) {
            f(s.go_on, Access::kWritten);
        }
    }
};

/// A step whose arguments are buffers, which it may write, scalars and numbers, and whose result is a scalar.
template <class T>
concept CallsRuntime = requires(T s) {
    s.arguments.front().kind;
    s.result;
};

template <class S, class F>
void for_each_access(S& step, const std::vector<Kernel>& kernels, F f) {
    Accesses<F> accesses{kernels, std::move(f)};
    std::visit(
        [&](auto& s) {
            using T = std::remove_cvref_t<decltype(s)>;
            if constexpr (std::is_same_v<T, Launch>) {
                accesses.launch(s);
            } else if constexpr (std::is_same_v<T, Gemm>) {
                accesses.gemm(s);
            } else if constexpr (std::is_same_v<T, QuantizedMatmul>) {
                accesses.quantized(s);
            } else if constexpr (std::is_same_v<T, DequantizeRows>) {
                accesses.rows(s);
            } else if constexpr (std::is_same_v<T, CopyBuffer>) {
                accesses.copy(s);
            } else if constexpr (std::is_same_v<T, CallFunction> || std::is_same_v<T, If>) {
                accesses.call(s);
            } else if constexpr (std::is_same_v<T, Loop>) {
                accesses.loop(s);
            } else if constexpr (std::is_same_v<T, CheckIndices>) {
                accesses.f(s.index, Access::kRead);
            } else if constexpr (std::is_same_v<T, HostCall>) {
                accesses.call(s);
            } else if constexpr (CallsRuntime<T>) {
                accesses.runtime(s);
            } else {
                static_assert(std::is_same_v<T, ComputeScalar> || std::is_same_v<T, Check>, "a step without its case");
            }
        },
        step);
}

/// Calls f(ScalarId) for each scalar that is known once the step has run.
template <class F>
void for_each_made(const Step& step, F f) {
    std::visit(
        [&](const auto& s) {
            using T = std::remove_cvref_t<decltype(s)>;
            if constexpr (requires { s.lengths; }) {
                for (const auto& lengths : s.lengths) {
                    std::for_each(lengths.begin(), lengths.end(), f);
                }
            }
            if constexpr (std::is_same_v<T, ComputeScalar>) {
                f(s.scalar);
            } else if constexpr (std::is_same_v<T, Loop>) {
                if (s.actual >= 0) {
                    f(s.actual);
                }
            } else if constexpr (CallsRuntime<T>) {
                if (s.result >= 0) {
                    f(s.result);
                }
            }
        },
        step);
}

class Protection {
public:
    Protection(Program& program, const LoweredModule& module) : p_(program), m_(module) {}

    void run() {
        if (first_write() < 0) {
            return;
        }
        hoist_checks(static_cast<size_t>(first_write()));
        sink_writes();
        while (first_write() >= 0) {
            auto first = static_cast<size_t>(first_write());
            if (last_failure(first) <= static_cast<int>(first)) {
                return commit(first);
            }
            give_memory(first);
        }
    }

private:
    /// The parameter buffers that a step writes.
    std::vector<BufferId> written_params(const Step& step) const {
        std::vector<BufferId> written;
        for_each_access(step, m_.kernels, [&](BufferId buffer, Access access) {
            BufferId root = root_of(p_, buffer);
            if (access == Access::kWritten && p_.buffers[static_cast<size_t>(root)].kind == BufferKind::kParam) {
                written.push_back(root);
            }
        });
        return written;
    }

    int first_write() const {
        auto at = std::find_if(p_.steps.begin(), p_.steps.end(),
                               [&](const Step& step) { return !written_params(step).empty(); });
        return at == p_.steps.end() ? -1 : static_cast<int>(at - p_.steps.begin());
    }

    // --- checks move up
    struct Late {
        std::set<ScalarId> scalars;
        std::set<BufferId> buffers;
    };

    bool is_late(const Late& late, BufferId buffer) const {
        const Buffer& b = p_.buffers[static_cast<size_t>(buffer)];
        return late.buffers.contains(root_of(p_, buffer)) ||
               std::any_of(b.shape.begin(), b.shape.end(), [&](ScalarId dim) { return late.scalars.contains(dim); });
    }

    /// May this scalar or check be computed before what is late?
    bool may_rise(const Step& step, const Late& late) const {
        auto early = [&](ScalarId scalar) { return !late.scalars.contains(scalar); };
        if (const auto* compute = std::get_if<ComputeScalar>(&step)) {
            const Scalar& s = p_.scalars[static_cast<size_t>(compute->scalar)];
            return std::all_of(s.args.begin(), s.args.end(), early) &&
                   !(s.kind == Scalar::Kind::kLoad && is_late(late, s.index));
        }
        if (const auto* check = std::get_if<Check>(&step)) {
            return early(check->a) && early(check->b) && early(check->shown);
        }
        const auto* indices = std::get_if<CheckIndices>(&step);
        return indices != nullptr && early(indices->limit) && !is_late(late, indices->index);
    }

    void hoist_checks(size_t first) {
        Late late;
        std::vector<Step> early;
        std::vector<Step> rest;
        for (size_t i = first; i < p_.steps.size(); ++i) {
            Step& step = p_.steps[i];
            if (may_rise(step, late)) {
                early.push_back(std::move(step));
                continue;
            }
            for_each_access(step, m_.kernels, [&](BufferId buffer, Access access) {
                if (access == Access::kWritten) {
                    late.buffers.insert(root_of(p_, buffer));
                }
            });
            for_each_made(step, [&](ScalarId scalar) { late.scalars.insert(scalar); });
            rest.push_back(std::move(step));
        }
        p_.steps.resize(first);
        std::move(early.begin(), early.end(), std::back_inserter(p_.steps));
        std::move(rest.begin(), rest.end(), std::back_inserter(p_.steps));
    }

    // --- writes move down
    void sink_writes() {
        for (size_t i = p_.steps.size(); i-- > 0;) {
            if (!std::holds_alternative<Launch>(p_.steps[i]) || written_params(p_.steps[i]).empty()) {
                continue;
            }
            int last = last_failure(static_cast<size_t>(first_write()));
            if (last > static_cast<int>(i) && may_sink(i, static_cast<size_t>(last))) {
                auto at = p_.steps.begin() + static_cast<std::ptrdiff_t>(i);
                std::rotate(at, at + 1, p_.steps.begin() + last + 1);
            }
        }
    }

    bool may_sink(size_t from, size_t to) const {
        std::set<BufferId> read;
        std::set<BufferId> written;
        for_each_access(p_.steps[from], m_.kernels, [&](BufferId buffer, Access access) {
            (access == Access::kWritten ? written : read).insert(root_of(p_, buffer));
        });
        bool fine = true;
        for (size_t i = from + 1; i <= to; ++i) {
            auto look = [&](BufferId buffer, Access access) {
                BufferId root = root_of(p_, buffer);
                fine &= !written.contains(root) && !(access == Access::kWritten && read.contains(root));
            };
            for_each_access(p_.steps[i], m_.kernels, look);
            if (const auto* compute = std::get_if<ComputeScalar>(&p_.steps[i])) {
                const Scalar& s = p_.scalars[static_cast<size_t>(compute->scalar)];
                if (s.kind == Scalar::Kind::kLoad) {
                    look(s.index, Access::kRead);
                }
            }
        }
        return fine;
    }

    // --- failures
    /// Is it the program that sees to memory for the buffer?
    static bool takes_memory(const Buffer& buffer) {
        return buffer.kind == BufferKind::kTemp || buffer.kind == BufferKind::kOutput;
    }

    /// Scalars that the steps before `end` have computed, with constants and all that follows from them.
    std::vector<bool> known_before(size_t end) const {
        std::vector<bool> known(p_.scalars.size(), false);
        for (size_t i = 0; i < end; ++i) {
            for_each_made(p_.steps[i], [&](ScalarId scalar) { known[static_cast<size_t>(scalar)] = true; });
        }
        for (size_t s = 0; s < known.size(); ++s) {
            const Scalar& scalar = p_.scalars[s];
            bool derived = scalar.kind == Scalar::Kind::kMap || scalar.kind == Scalar::Kind::kCast;
            known[s] = known[s] || scalar.kind == Scalar::Kind::kConst || scalar.kind == Scalar::Kind::kParamDim ||
                       (derived && std::all_of(scalar.args.begin(), scalar.args.end(),
                                               [&](ScalarId arg) { return known[static_cast<size_t>(arg)]; }));
        }
        return known;
    }

    bool needs_late_memory(const Step& step, const std::vector<bool>& known) const {
        bool late = false;
        for_each_access(step, m_.kernels, [&](BufferId buffer, Access) {
            const Buffer& b = p_.buffers[static_cast<size_t>(root_of(p_, buffer))];
            late |= takes_memory(b) && !std::all_of(b.shape.begin(), b.shape.end(),
                                                    [&](ScalarId dim) { return known[static_cast<size_t>(dim)]; });
        });
        ScalarId workspace = workspace_of(step);
        return late || (workspace >= 0 && !known[static_cast<size_t>(workspace)]);
    }

    /// The last step that can fail if all memory that can be had before step `first` is had by then. A callee that
    /// writes into a parameter fails before it does.
    int last_failure(size_t first) const {
        std::vector<bool> known = known_before(first);
        for (size_t i = p_.steps.size(); i-- > first;) {
            const Step& step = p_.steps[i];
            if (may_fail(step, m_) || (calls(step) && workspace_of(step) < 0) || needs_late_memory(step, known)) {
                return static_cast<int>(i);
            }
        }
        return -1;
    }

    // --- what cannot be in place
    /// The parameters that a step writes get copies, which are written in their stead from there on.
    void give_memory(size_t at) {
        for (BufferId param : written_params(p_.steps[at])) {
            Buffer own = p_.buffers[static_cast<size_t>(param)];
            std::vector<std::pair<BufferId, BufferId>> renamed;
            auto copy = static_cast<BufferId>(p_.buffers.size());
            own.kind = BufferKind::kTemp;
            for (size_t k = 0; k < p_.outputs.size(); ++k) {
                if (p_.outputs[k] == param) {
                    own.kind = BufferKind::kOutput;
                    own.index = static_cast<int>(k);
                    p_.outputs[k] = copy;
                    p_.in_place[k] = -1;
                }
            }
            p_.buffers.push_back(std::move(own));
            rename(at, param, copy);
            p_.steps.insert(p_.steps.begin() + static_cast<std::ptrdiff_t>(at), CopyBuffer{param, copy});
            ++at;
        }
    }

    /// From step `from` on, `before` and its other names are `after`.
    void rename(size_t from, BufferId before, BufferId after) {
        std::vector<BufferId> names(p_.buffers.size());
        for (size_t b = 0; b < names.size(); ++b) {
            names[b] = static_cast<BufferId>(b);
        }
        size_t count = p_.buffers.size();
        for (size_t b = 0; b < count; ++b) {
            if (static_cast<BufferId>(b) == before) {
                names[b] = after;
            } else if (root_of(p_, static_cast<BufferId>(b)) == before) {
                Buffer alias = p_.buffers[b];
                alias.alias_of = after;
                names[b] = static_cast<BufferId>(p_.buffers.size());
                p_.buffers.push_back(std::move(alias));
            }
        }
        for (size_t i = from; i < p_.steps.size(); ++i) {
            for_each_access(p_.steps[i], m_.kernels,
                            [&](BufferId& buffer, Access) { buffer = names[static_cast<size_t>(buffer)]; });
            if (const auto* compute = std::get_if<ComputeScalar>(&p_.steps[i])) {
                Scalar& s = p_.scalars[static_cast<size_t>(compute->scalar)];
                if (s.kind == Scalar::Kind::kLoad) {
                    s.index = names[static_cast<size_t>(s.index)];
                }
            }
        }
    }

    // --- the point from which on nothing fails
    void commit(size_t first) {
        std::vector<bool> computed(p_.scalars.size(), false);
        for (size_t i = 0; i < first; ++i) {
            for_each_made(p_.steps[i], [&](ScalarId scalar) { computed[static_cast<size_t>(scalar)] = true; });
        }
        std::set<BufferId> prepared;
        std::set<ScalarId> needs;
        for (size_t i = first; i < p_.steps.size(); ++i) {
            for_each_access(p_.steps[i], m_.kernels, [&](BufferId buffer, Access) {
                BufferId root = root_of(p_, buffer);
                if (takes_memory(p_.buffers[static_cast<size_t>(root)])) {
                    prepared.insert(root);
                }
            });
            if (ScalarId workspace = workspace_of(p_.steps[i]); workspace >= 0) {
                needs.insert(workspace);
            }
        }
        for (BufferId output : p_.outputs) {
            if (p_.buffers[static_cast<size_t>(output)].kind == BufferKind::kOutput) {
                prepared.insert(output);
            }
        }
        std::vector<ScalarId> fresh;
        for (ScalarId need : needs) {
            collect(need, computed, fresh);
            p_.reserve = p_.reserve < 0 ? need : larger(p_.reserve, need, fresh);
        }
        for (BufferId buffer : prepared) {
            for (ScalarId dim : p_.buffers[static_cast<size_t>(buffer)].shape) {
                collect(dim, computed, fresh);
            }
        }
        std::erase_if(p_.steps, [&](const Step& step) {
            const auto* compute = std::get_if<ComputeScalar>(&step);
            return compute != nullptr && std::find(fresh.begin(), fresh.end(), compute->scalar) != fresh.end();
        });
        std::vector<Step> steps;
        for (ScalarId scalar : fresh) {
            steps.emplace_back(ComputeScalar{scalar});
        }
        p_.steps.insert(p_.steps.begin() + static_cast<std::ptrdiff_t>(first), steps.begin(), steps.end());
        p_.commit = static_cast<int>(first + steps.size());
        p_.prepared.assign(prepared.begin(), prepared.end());
    }

    ScalarId larger(ScalarId a, ScalarId b, std::vector<ScalarId>& fresh) {
        p_.scalars.push_back({Scalar::Kind::kMap, ir::DType::kI64, ir::Op::k_max, {a, b}});
        fresh.push_back(static_cast<ScalarId>(p_.scalars.size()) - 1);
        return fresh.back();
    }

    /// Adds what no step has computed yet, arguments first.
    void collect(ScalarId id, std::vector<bool>& computed, std::vector<ScalarId>& fresh) const {
        const Scalar& s = p_.scalars[static_cast<size_t>(id)];
        if (computed[static_cast<size_t>(id)] || s.kind == Scalar::Kind::kConst) {
            return;
        }
        computed[static_cast<size_t>(id)] = true;
        for (ScalarId arg : s.args) {
            collect(arg, computed, fresh);
        }
        fresh.push_back(id);
    }

    Program& p_;
    const LoweredModule& m_;
};

}  // namespace

namespace {

/// Do results come with memory of the step's own?
bool gives_memory(const Step& step) {
    return std::visit(
        [](const auto& s) {
            if constexpr (requires { s.lengths; }) {
                return std::any_of(s.lengths.begin(), s.lengths.end(), [](const auto& one) { return !one.empty(); });
            }
            return false;
        },
        step);
}

}  // namespace

bool may_fail(const Step& step, const LoweredModule& module) {
    // Memory that a step gives is not had before it runs.
    if (gives_memory(step)) {
        return true;
    }
    auto callee = [&](int function) { return module.programs[static_cast<size_t>(function)].may_fail; };
    if (const auto* call = std::get_if<CallFunction>(&step)) {
        return callee(call->function);
    }
    if (const auto* choice = std::get_if<If>(&step)) {
        return callee(choice->then_function) || callee(choice->else_function);
    }
    if (const auto* loop = std::get_if<Loop>(&step)) {
        return callee(loop->body);
    }
    if (const auto* call = std::get_if<CallRuntime>(&step)) {
        return call->may_fail;
    }
    bool cannot = std::holds_alternative<ComputeScalar>(step) || std::holds_alternative<Launch>(step) ||
                  std::holds_alternative<Gemm>(step) || std::holds_alternative<QuantizedMatmul>(step) ||
                  std::holds_alternative<DequantizeRows>(step) || std::holds_alternative<CopyBuffer>(step);
    return !cannot;
}

bool calls(const Step& step) {
    return std::holds_alternative<CallFunction>(step) || std::holds_alternative<If>(step) ||
           std::holds_alternative<Loop>(step);
}

ScalarId workspace_of(const Step& step) {
    if (const auto* call = std::get_if<CallFunction>(&step)) {
        return call->workspace;
    }
    if (const auto* choice = std::get_if<If>(&step)) {
        return choice->workspace;
    }
    const auto* loop = std::get_if<Loop>(&step);
    return loop == nullptr ? -1 : loop->workspace;
}

void protect_parameters(Program& program, const LoweredModule& module) {
    Protection(program, module).run();
}

bool is_given(const Program& program, ScalarId scalar) {
    const Scalar& s = program.scalars[static_cast<size_t>(scalar)];
    switch (s.kind) {
        case Scalar::Kind::kConst:
        case Scalar::Kind::kParamDim:
            return true;
        case Scalar::Kind::kLoad: {
            const Buffer& buffer = program.buffers[static_cast<size_t>(root_of(program, s.index))];
            return buffer.kind == BufferKind::kParam &&
                   std::find(program.in_place.begin(), program.in_place.end(), buffer.index) == program.in_place.end();
        }
        case Scalar::Kind::kMap:
        case Scalar::Kind::kCast:
            return std::all_of(s.args.begin(), s.args.end(), [&](ScalarId arg) { return is_given(program, arg); });
        default:
            return false;
    }
}

void take_preconditions(Program& program) {
    auto is_precondition = [&](const Step& step) {
        if (const auto* check = std::get_if<Check>(&step)) {
            bool shown = check->shown < 0 || is_given(program, check->shown);
            return shown && is_given(program, check->a) && is_given(program, check->b);
        }
        const auto* indices = std::get_if<CheckIndices>(&step);
        if (indices == nullptr) {
            return false;
        }
        const Buffer& buffer = program.buffers[static_cast<size_t>(root_of(program, indices->index))];
        bool written =
            std::find(program.in_place.begin(), program.in_place.end(), buffer.index) != program.in_place.end();
        return buffer.kind == BufferKind::kParam && !written && is_given(program, indices->limit);
    };
    auto kept = std::stable_partition(program.steps.begin(), program.steps.end(),
                                      [&](const Step& step) { return !is_precondition(step); });
    program.preconditions.assign(std::make_move_iterator(kept), std::make_move_iterator(program.steps.end()));
    program.steps.erase(kept, program.steps.end());
}

}  // namespace ember::lower
