// The memory plan: temporaries whose lives do not overlap share a slot of the workspace. A slot is taken over only by a
// buffer of the very same size (equal lengths and element bytes), or among static sizes by the closest fit, so that the
// workspace never holds more than the sum of what is alive would need for equal shapes.
#include <algorithm>

#include "ember/lower/lower.h"
#include "ember/support/check.h"

namespace ember::lower {
namespace {

template <class F>
void for_each_buffer(const Program& program, const Step& step, F f) {
    auto all = [&](const std::vector<BufferId>& buffers) { std::for_each(buffers.begin(), buffers.end(), f); };
    if (const auto* s = std::get_if<ComputeScalar>(&step)) {
        const Scalar& scalar = program.scalars[static_cast<size_t>(s->scalar)];
        if (scalar.kind == Scalar::Kind::kLoad) {
            f(scalar.index);
        }
    } else if (const auto* s = std::get_if<Launch>(&step)) {
        all(s->buffers);
    } else if (const auto* s = std::get_if<Gemm>(&step)) {
        all({s->a.buffer, s->b.buffer, s->c.buffer});
    } else if (const auto* s = std::get_if<QuantizedMatmul>(&step)) {
        all({s->x.buffer, s->weights, s->result});
    } else if (const auto* s = std::get_if<DequantizeRows>(&step)) {
        all({s->rows, s->to});
        if (s->index >= 0) {
            f(s->index);
        }
    } else if (const auto* s = std::get_if<CopyBuffer>(&step)) {
        all({s->from, s->to});
    } else if (const auto* s = std::get_if<CheckIndices>(&step)) {
        f(s->index);
    } else if (const auto* s = std::get_if<CallRuntime>(&step)) {
        for (const CallRuntime::Argument& argument : s->arguments) {
            if (argument.is_buffer()) {
                f(static_cast<BufferId>(argument.value));
            }
        }
    } else if (const auto* s = std::get_if<CallFunction>(&step)) {
        all(s->arguments);
        all(s->results);
    } else if (const auto* s = std::get_if<HostCall>(&step)) {
        all(s->arguments);
        all(s->results);
    } else if (const auto* s = std::get_if<If>(&step)) {
        all(s->arguments);
        all(s->results);
    } else if (const auto* s = std::get_if<Loop>(&step)) {
        for (const auto* list : {&s->initial, &s->ping, &s->finals, &s->invariants, &s->stacked}) {
            all(*list);
        }
        f(s->index);
        if (s->go_on >= 0) {
            f(s->go_on);
        }
    }
}

BufferId root_of(const Program& program, BufferId buffer) {
    while (program.buffers[static_cast<size_t>(buffer)].alias_of >= 0) {
        buffer = program.buffers[static_cast<size_t>(buffer)].alias_of;
    }
    return buffer;
}

struct Life {
    int first = -1;
    int last = -1;
};

int64_t static_bytes(const Program& program, const Buffer& buffer) {
    int64_t bytes = ir::is_quantized(buffer.dtype) ? 1 : ir::element_bytes(buffer.dtype);
    for (ScalarId dim : buffer.shape) {
        const Scalar& scalar = program.scalars[static_cast<size_t>(dim)];
        if (scalar.kind != Scalar::Kind::kConst) {
            return -1;
        }
        bytes *= ir::literal_as_int(scalar.literal);
    }
    return bytes;
}

bool same_size(const Buffer& a, const Buffer& b) {
    std::vector<ScalarId> x = a.shape;
    std::vector<ScalarId> y = b.shape;
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    return x == y && ir::info(a.dtype).block_bytes == ir::info(b.dtype).block_bytes;
}

}  // namespace

void plan_memory(Program& program) {
    std::vector<Life> lives(program.buffers.size());
    for (size_t i = 0; i < program.steps.size(); ++i) {
        for_each_buffer(program, program.steps[i], [&](BufferId buffer) {
            Life& life = lives[static_cast<size_t>(root_of(program, buffer))];
            life.first = life.first < 0 ? static_cast<int>(i) : life.first;
            life.last = static_cast<int>(i);
        });
    }
    std::vector<BufferId> order;
    for (size_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        if (buffer.kind == BufferKind::kTemp && buffer.alias_of < 0 && lives[b].first >= 0) {
            order.push_back(static_cast<BufferId>(b));
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
        return lives[static_cast<size_t>(a)].first < lives[static_cast<size_t>(b)].first;
    });
    std::vector<int> busy_until;
    for (BufferId id : order) {
        Buffer& buffer = program.buffers[static_cast<size_t>(id)];
        const Life& life = lives[static_cast<size_t>(id)];
        int64_t bytes = static_bytes(program, buffer);
        int best = -1;
        int64_t best_distance = INT64_MAX;
        for (size_t s = 0; s < program.slots.size(); ++s) {
            if (busy_until[s] >= life.first) {
                continue;
            }
            const Buffer& user = program.buffers[static_cast<size_t>(program.slots[s].users[0])];
            int64_t other = static_bytes(program, user);
            int64_t distance = same_size(user, buffer)    ? 0
                               : bytes >= 0 && other >= 0 ? std::max(bytes, other) - std::min(bytes, other) + 1
                                                          : INT64_MAX;
            if (distance < best_distance) {
                best_distance = distance;
                best = static_cast<int>(s);
            }
        }
        if (best < 0) {
            best = static_cast<int>(program.slots.size());
            program.slots.emplace_back();
            busy_until.push_back(-1);
        }
        buffer.index = best;
        program.slots[static_cast<size_t>(best)].users.push_back(id);
        busy_until[static_cast<size_t>(best)] = life.last;
    }
    for (Buffer& buffer : program.buffers) {
        if (buffer.alias_of >= 0) {
            const Buffer& root = program.buffers[static_cast<size_t>(
                root_of(program, static_cast<BufferId>(&buffer - program.buffers.data())))];
            buffer.kind = root.kind;
            buffer.index = root.index;
        }
    }
}

}  // namespace ember::lower
