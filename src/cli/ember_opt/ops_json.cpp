// `ember-opt ops --json`: the op table for tools in other languages.
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/ember_opt/commands.h"
#include "ember/ir/op.h"

namespace ember::opt {
namespace {

using Json = nlohmann::ordered_json;

std::string_view kind_name(ir::OpKind kind) {
    static constexpr std::string_view kNames[] = {
        "map",    "cast",  "source", "scalar",  "reduce", "arg_reduce", "scan", "contract", "attention", "view", "pad",
        "concat", "split", "gather", "scatter", "update", "sort",       "find", "control",  "assert",    "host"};
    static_assert(std::size(kNames) == static_cast<size_t>(ir::OpKind::kHost) + 1);
    return kNames[static_cast<size_t>(kind)];
}

std::string_view domain_name(ir::Domain domain) {
    static constexpr std::string_view kNames[] = {"any", "number", "float", "int", "bits"};
    return kNames[static_cast<size_t>(domain)];
}

Json attributes_of(ir::Op op) {
    Json list = Json::array();
    for (const ir::AttributeInfo& row : ir::attributes(op)) {
        list.push_back({{"name", row.name}, {"kind", ir::attribute_kind_name(row.kind)}, {"optional", row.optional}});
    }
    return list;
}

Json row_of(ir::Op op) {
    const ir::OpInfo& info = ir::info(op);
    Json row = {{"name", info.name},
                {"kind", kind_name(info.kind)},
                {"min_arity", info.min_arity},
                {"max_arity", info.max_arity},
                {"attributes", attributes_of(op)}};
    if (info.kind == ir::OpKind::kMap) {
        row["domain"] = domain_name(info.domain);
        row["result"] = info.result == ir::MapResult::kBool ? "bool" : "same";
        row["derivative"] = info.derivative;
        row["numpy"] = info.numpy;
    }
    row["summary"] = info.summary;
    return row;
}

}  // namespace

std::string ops_json() {
    Json table = Json::array();
    for (int i = 0; i < ir::kOpCount; ++i) {
        table.push_back(row_of(static_cast<ir::Op>(i)));
    }
    return table.dump(1) + "\n";
}

}  // namespace ember::opt
