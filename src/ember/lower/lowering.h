// The state of lowering one graph into one program; internal to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ember/lower/group.h"
#include "ember/lower/lower.h"

namespace ember::lower {

/// Kernels and messages of the whole module, each kept once.
class ModuleTables {
public:
    explicit ModuleTables(LoweredModule& module) : module_(module) {}
    int kernel(Kernel kernel);
    int message(const std::string& text);
    int host_id(std::string_view id);
    LoweredModule& module() { return module_; }

private:
    LoweredModule& module_;
    std::unordered_map<std::string, int> kernels_;
    std::unordered_map<std::string, int> messages_;
};

/// Thrown inside lowering for what it cannot do; lower() turns it into a Diagnostic.
struct Unsupported {
    Diagnostic diagnostic;
};

/// What a scalar is known by: equal scalars are computed once.
std::string scalar_key(const Scalar& scalar);

/// Where a grouped value is written instead of a buffer of its own: a window on another value's buffer.
struct Home {
    BufferId buffer = -1;
    std::vector<int> axis_of;     // by axis of the buffer: axis of the value, or -1
    std::vector<ScalarId> start;  // by axis of the buffer, -1: zero
};

/// The outputs that have a length which no parameter tells: they come with their memory and lengths.
std::vector<bool> open_outputs(const ir::Graph& graph);

class Lowering {
public:
    Lowering(const ir::Graph& graph, const ir::Module& module, ModuleTables& tables,
             const std::unordered_map<std::string, int>& functions);

    Program run();

    // --- scalars (scalars.cpp)
    ScalarId constant(int64_t value);
    ScalarId constant(ir::Literal literal);
    ScalarId compute(ir::Op op, std::vector<ScalarId> args, ir::DType dtype = ir::DType::kI64);
    /// The register that holds a rank-0 value, loaded from its buffer if it is not a host value.
    ScalarId scalar_of(ir::ValueId value);
    ScalarId dim_of(ir::ValueId value, size_t axis);
    /// The length that the op makes, whatever its type states.
    ScalarId made_dim(ir::ValueId value, size_t axis);
    std::vector<ScalarId> dims_of(ir::ValueId value);
    bool is_constant(ScalarId scalar, int64_t value) const;
    void check_equal(ScalarId a, ScalarId b, const std::string& message);

    /// Computed here, once for equal ones.
    ScalarId keep(Scalar scalar);
    /// Computed by no step so far: protect_parameters() finds a place if it is needed.
    ScalarId later(ir::Op op, ScalarId a, ScalarId b);
    ScalarId keep_later(Scalar scalar);

    // --- buffers
    /// The buffer that holds a value; virtual values are written into one by a kernel of their own.
    BufferId buffer_of(ir::ValueId value);
    bool has_buffer(ir::ValueId value) const { return buffer_[value] >= 0; }
    BufferId new_buffer(ir::DType dtype, std::vector<ScalarId> shape);
    /// The buffer a value is to be written to: an output's, or a temporary.
    BufferId make_buffer_for(ir::ValueId value);

    const ir::Graph& graph() const { return graph_; }
    const Grouping& grouping() const { return grouping_; }
    Program& program() { return program_; }
    ModuleTables& tables() const { return tables_; }
    void check_gather_bounds(const ir::Node& node, size_t first_index);
    void check_gather_has_elements(const ir::Node& node, size_t first_index);
    [[noreturn]] void unsupported(const ir::Node& node, const std::string& what) const;

    // --- used by the kernel builder
    struct Root {
        ir::ValueId value = ir::kNone;
        Home home;
        bool may_take_param = false;  // an update that may overwrite its parameter
        uint32_t param = ir::kNone;
    };
    void launch(const std::vector<Root>& roots, const Group* group);

private:
    void prepare_params();
    void plan_homes();
    void emit_groups();
    void emit_kernel_group(int g);
    bool is_read_by(ir::ValueId value, int g) const;
    void emit_opaque(const ir::Node& node);
    void emit_outputs();

    // --- callee.cpp
    enum class When : uint8_t { kNow, kLater };
    /// Scalars of a callee, given by its parameters, as scalars of this program; -1 where a value is not at hand.
    struct Import {
        Lowering& to;
        const Program& from;
        const std::vector<std::vector<ScalarId>>& dims;  // of the arguments
        const std::vector<ir::ValueId>& values;          // the arguments, or none
        When when;
        std::map<ScalarId, ScalarId> made;

        ScalarId operator()(ScalarId id);
    };
    void check_preconditions(const Program& callee, const ir::Node& node,
                             const std::vector<std::vector<ScalarId>>& argument_dims);
    ScalarId callee_workspace(int function, const std::vector<std::vector<ScalarId>>& argument_dims,
                              const std::vector<ir::ValueId>& values);
    void measure_workspace();

    void check_node(const ir::Node& node);
    void check_extents(const ir::Node& node);
    void check_length(const ir::Node& node, ScalarId length);
    void check_stated(const ir::Node& node);
    void check_window(const ir::Node& node);
    struct Window {
        ir::Shape shape;
        std::vector<ScalarId> lengths;
    };
    Window window_of(const ir::Node& node, size_t first_index);
    void check_home(const ir::Node& node);
    std::string describe(const ir::Node& node) const;
    std::string type_text(const ir::TensorType& type) const;

    // --- steps.cpp
    void emit_contract(const ir::Node& node);
    bool emit_gemm(const ir::Node& node);
    void emit_quantized_matmul(const ir::Node& node);
    void emit_attention(const ir::Node& node);
    void emit_dequantize(const ir::Node& node);
    void emit_concat(const ir::Node& node);
    void emit_update_slice(const ir::Node& node);
    void emit_scatter(const ir::Node& node);
    void emit_scan(const ir::Node& node);
    void emit_assert(const ir::Node& node);
    void emit_call(const ir::Node& node);
    void emit_host_call(const ir::Node& node);  // host.cpp
    void emit_if(const ir::Node& node);
    void emit_loop(const ir::Node& node);

    // --- sort.cpp
    void emit_sort(const ir::Node& node);
    void emit_searchsorted(const ir::Node& node);
    void emit_nonzero(const ir::Node& node);
    void emit_unique(const ir::Node& node);
    void emit_bincount(const ir::Node& node);
    /// Calls a function of the runtime that gives a length.
    ScalarId call_for_length(std::string_view function, std::vector<CallRuntime::Argument> arguments);
    /// The product of the lengths of the axes from, …, to - 1.
    ScalarId product_of(ir::ValueId value, size_t from, size_t to);
    /// The buffer of a result that has these lengths, whatever its type states.
    BufferId make_result(const ir::Node& node, uint32_t k, const std::vector<ScalarId>& lengths);

    // --- steps.cpp, continued
    View view_of(ir::ValueId value);
    std::vector<ScalarId> given_lengths(size_t rank);
    BufferId given_buffer(ir::ValueId value, std::vector<ScalarId> lengths);
    /// The buffer of a result whose lengths, all of them, come with it.
    BufferId given_result(ir::ValueId value, std::vector<ScalarId>& lengths);
    void resolve_symbols(ir::ValueId value, ir::ValueId end);
    void bind(ir::ValueId value, const std::vector<ScalarId>& lengths, const std::string& what);
    BufferId converted(BufferId from, ir::ValueId value);
    /// Window of the target's buffer that `piece` fills.
    Home window(BufferId target, size_t rank, std::vector<ScalarId> start);
    BufferId target_of(const ir::Node& node);  // of concat and update_slice
    bool may_overwrite(ir::ValueId value, const ir::Node& reader) const;
    const ir::Node* only_user(ir::ValueId value) const;
    ir::ValueId overwritten_result(const ir::Node& call, ir::ValueId argument) const;
    bool is_home(ir::ValueId piece, const ir::Node& reader, size_t k) const;
    void copy_into(ir::ValueId value, const Home& home);
    /// Lengths of a result that its step makes; those that are known already are checked to be the same.
    void name_symbols(ir::ValueId value, const std::vector<ScalarId>& dims);

    // --- control.cpp
    using Dims = std::vector<ScalarId>;  // of one value; -1: not known
    void bind_given(const ir::Node& node, const std::vector<bool>& open, const std::vector<Dims>& lengths);
    /// What a region is to the node that has it.
    struct Region {
        std::vector<std::pair<int, int>> same_shape;      // outputs that keep the lengths of a parameter
        std::vector<bool> open;                           // outputs that come with their memory and lengths
        std::vector<std::pair<size_t, size_t>> unproved;  // parameters and axes whose lengths it must check
    };
    int lower_region(const ir::Graph& region, Region how, const std::vector<Dims>& argument_dims);
    void check_params();
    void check_carried(ir::ValueId value);
    Dims result_dims(const ir::Graph& callee, const ir::Output& output, const std::vector<Dims>& argument_dims);
    std::vector<Dims> all_dims(const std::vector<ir::ValueId>& values);
    void check_unified(const ir::Graph& callee, const std::vector<Dims>& argument_dims, const ir::Node& node);
    BufferId stacked_buffer(const ir::Node& node, uint32_t k, const std::vector<Dims>& argument_dims, Loop& step);

    const ir::Graph& graph_;
    const ir::Module& module_;
    ModuleTables& tables_;
    const std::unordered_map<std::string, int>& functions_;
    Grouping grouping_;
    Region region_;                                       // of a region
    std::unordered_map<int64_t, size_t> symbol_numbers_;  // by Dim code: in order of appearance
    bool may_donate_ = true;                              // may results take over parameters' memory?
    Program program_;
    std::vector<BufferId> buffer_;                   // by value
    std::vector<ScalarId> scalar_;                   // by value
    std::unordered_map<int64_t, ScalarId> symbols_;  // by Dim code
    std::map<std::string, ScalarId> known_scalars_;
    std::map<std::string, ScalarId> later_scalars_;
    std::set<std::tuple<int, int, int, int>> made_checks_;
    std::unordered_map<ir::ValueId, std::pair<ir::NodeId, size_t>> piece_of_;  // grouped value → concat or update
    std::vector<bool> checked_;                         // by node: checks of bounds or places emitted
    std::vector<std::vector<uint32_t>> outputs_of_;     // by value: outputs it is
    std::unordered_map<ir::ValueId, BufferId> target_;  // by result of concat or update_slice
};

/// Builds one kernel from the values it must store.
class KernelBuilder {
public:
    KernelBuilder(Lowering& lowering, const Group* group) : lowering_(lowering), group_(group) {}

    /// Sets the space; `columns`: axes that reductions run over.
    void set_space(ir::ValueId like, const ir::Shape& space, const std::vector<int>& columns);
    void set_space_of(const ir::Shape& space, const std::vector<ScalarId>& lengths, const std::vector<int>& columns);
    /// An instruction for value at the given indices (one an axis).
    int emit(ir::ValueId value, std::vector<int> at);
    std::vector<int> space_indices() const { return space_; }
    std::vector<int> row_indices() const;
    int axis_index(size_t axis) const { return space_[axis]; }

    int add(Instruction instruction);
    int constant(int64_t value);
    int index_add(int a, int b);
    int index_mul(int a, int b);
    int index_of_scalar(ScalarId scalar);
    int extent_value(Extent extent);
    Extent extent_of(ScalarId scalar);
    int scalar_argument(ScalarId scalar);
    int map(ir::Op op, std::vector<int> args, ir::DType dtype);
    int load(BufferId buffer, std::vector<int> at);
    void store(BufferId buffer, int value, std::vector<int> at, ir::Op combine = ir::Op::k_select);
    int buffer_argument(BufferId buffer, bool written);
    int wrapped_index(int index, ir::DType dtype, int extent, std::string_view bounds);

    Kernel& kernel() { return kernel_; }
    /// Simplifies the space and appends the launch to the program. In place: a stored buffer that is replaced by
    /// another.
    void finish();
    bool loads_only_at(BufferId buffer, const std::vector<int>& at) const;

    std::vector<int> broadcast_at(const std::vector<int>& at, const ir::Shape& shape);

private:
    int emit_node(ir::ValueId value, const ir::Node& node, const std::vector<int>& at);
    int emit_map(const ir::Node& node, const std::vector<int>& at);
    int emit_reduce(const ir::Node& node);
    int emit_reshape(const ir::Node& node, const std::vector<int>& at);
    int emit_gather(const ir::Node& node, const std::vector<int>& at);
    int emit_take_along(const ir::Node& node, const std::vector<int>& at);
    int emit_pad(const ir::Node& node, const std::vector<int>& at);
    int linear(const std::vector<int>& at, const std::vector<Extent>& shape);
    void collapse();
    bool collapse_pair(int k);

    Lowering& lowering_;
    const Group* group_;
    Kernel kernel_;
    std::vector<int> space_;  // index instruction of each axis of the space
    std::vector<int> column_axes_;
    std::vector<BufferId> buffers_;
    std::vector<ScalarId> scalars_;
    std::map<std::pair<ir::ValueId, std::vector<int>>, int> memo_;
    std::unordered_map<std::string, int> known_;
};

}  // namespace ember::lower
