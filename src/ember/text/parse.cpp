// The reader of the textual form: one function a rule of the grammar in parse.h. Recursion goes through regions only,
// and no deeper than kMaxDepth; all else that is made is in proportion to the text.
// Long because it is one function a rule of the grammar.
#include "ember/text/parse.h"

#include <unordered_map>
#include <unordered_set>

#include "ember/ir/builder.h"
#include "ember/text/element.h"
#include "ember/text/lexer.h"
#include "ember/text/suggest.h"

namespace ember::text {
namespace {

using ir::Op;
using ir::TensorType;

constexpr size_t kMaxTextBytes = size_t{1} << 26;
constexpr int kMaxDepth = 64;    // regions in regions
constexpr size_t kMaxRank = 32;  // axes of a type
constexpr size_t kMaxFunctions = 4096;
constexpr size_t kMaxItems = 65536;  // operands of a node, items of an attribute

/// The values of one function or region by name.
struct Scope {
    ir::GraphBuilder& builder;
    const Scope* outer;
    int depth;
    std::unordered_map<std::string_view, ir::ValueId> values = {};
};

/// A literal before its type is known.
struct LiteralText {
    struct Element {
        Token real;
        Token imaginary;  // kEnd where there is none
    };
    Token start;
    bool is_list = false;
    std::vector<Element> elements;
};

/// A call is checked against its callee when all functions are read.
struct PendingCall {
    size_t function;
    std::shared_ptr<const ir::Graph> region;  // null: in the function itself
    ir::NodeId node;
    Token where;
};

class Parser {
public:
    Parser(std::string_view text, std::string_view file, std::vector<ParsedNode>* nodes)
        : lexer_(text), file_(file), nodes_(nodes) {}

    Result<ir::Module> parse_module();

private:
    // tokens
    Token take();
    bool is(std::string_view mark_or_name) const;
    bool accept(std::string_view mark_or_name);
    Diagnostic fail(const Token& where, std::string message, Code code = Code::kParse) const;
    Diagnostic unexpected(std::string_view expected) const;
    Status expect(std::string_view mark, std::string_view after);
    Result<Token> expect(TokenKind kind, std::string_view what);
    template <class F>
    Status parse_list(std::string_view close, std::string_view what, F parse_item);

    // the grammar
    Result<ir::Graph> parse_function();
    Result<std::string> parse_name(const Token& token);
    Status parse_params(Scope& scope);
    Status parse_block(Scope& scope);
    Status parse_return(Scope& scope);
    Status parse_output(Scope& scope);
    Status parse_node(Scope& scope);
    Result<Op> parse_op(const Token& name);
    Result<std::vector<Token>> parse_results();
    Status parse_operands(Scope& scope, ir::NodeSpec& spec);
    Status parse_attributes(ir::NodeSpec& spec, LiteralText& literal);
    Result<ir::AttributeValue> parse_attribute(ir::AttributeKind kind, LiteralText& literal);
    Result<int64_t> parse_integer();
    Result<std::vector<int64_t>> parse_integers();
    Result<std::string> parse_string();
    Result<ir::DType> parse_dtype();
    Status parse_literal(LiteralText& literal);
    Result<LiteralText::Element> parse_literal_element();
    Status parse_regions(Scope& scope, ir::NodeSpec& spec);
    Result<std::shared_ptr<const ir::Graph>> parse_region(Scope& scope, std::string_view keyword);
    Result<std::vector<TensorType>> parse_types();
    Result<TensorType> parse_type();
    Result<ir::Dim> parse_dim();

    // meaning
    Result<ir::ValueId> find_value(const Scope& scope, const Token& name) const;
    Status define(Scope& scope, const Token& name, ir::ValueId value) const;
    Result<ir::Literal> make_literal(const LiteralText& text, const ir::NodeSpec& spec) const;
    Status make_element(const LiteralText::Element& element, ir::DType dtype, std::string& bytes) const;
    Status add_node(Scope& scope, ir::NodeSpec spec, const Token& op, const std::vector<Token>& results);
    void settle_calls(size_t first, const std::shared_ptr<const ir::Graph>& region);
    Status check_calls(const ir::Module& module) const;
    Result<ir::Module> check_module(ir::Module module) const;

    Lexer lexer_;
    std::string_view file_;
    std::vector<ParsedNode>* nodes_;
    Token token_ = {};
    size_t function_ = 0;
    std::unordered_set<std::string> function_names_;
    std::vector<Token> returns_;  // of each function: where its own errors are shown
    std::vector<PendingCall> calls_;
};

// --- tokens

Token Parser::take() {
    Token taken = token_;
    token_ = lexer_.next();
    return taken;
}

bool Parser::is(std::string_view mark_or_name) const {
    return (token_.kind == TokenKind::kMark || token_.kind == TokenKind::kName) && token_.text == mark_or_name;
}

bool Parser::accept(std::string_view mark_or_name) {
    bool found = is(mark_or_name);
    if (found) {
        take();
    }
    return found;
}

Diagnostic Parser::fail(const Token& where, std::string message, Code code) const {
    return error(code, std::move(message),
                 std::string(file_) + ":" + std::to_string(where.line) + ":" + std::to_string(where.column));
}

Diagnostic Parser::unexpected(std::string_view expected) const {
    return fail(token_, "expected " + std::string(expected) + ", found " + describe(token_));
}

Status Parser::expect(std::string_view mark, std::string_view after) {
    if (!accept(mark)) {
        return unexpected("'" + std::string(mark) + "' " + std::string(after));
    }
    return {};
}

Result<Token> Parser::expect(TokenKind kind, std::string_view what) {
    if (token_.kind != kind) {
        return unexpected(what);
    }
    return take();
}

/// Items between commas up to `close`, the opening mark already taken.
template <class F>
Status Parser::parse_list(std::string_view close, std::string_view what, F parse_item) {
    if (accept(close)) {
        return {};
    }
    for (size_t count = 1;; ++count) {
        if (count > kMaxItems) {
            return fail(token_, "more than " + std::to_string(kMaxItems) + " " + std::string(what) + "s");
        }
        EMBER_CHECKED(parse_item());
        if (accept(close)) {
            return {};
        }
        if (!accept(",")) {
            return unexpected("',' or '" + std::string(close) + "' after " + std::string(what));
        }
    }
}

// --- functions

Result<ir::Module> Parser::parse_module() {
    take();
    ir::Module module;
    do {
        EMBER_TRY(ir::Graph function, parse_function());
        module.functions.push_back(std::move(function));
        ++function_;
    } while (token_.kind != TokenKind::kEnd);
    EMBER_CHECKED(check_calls(module));
    return check_module(std::move(module));
}

Result<std::string> Parser::parse_name(const Token& token) {
    std::string name;
    if (!token.text.starts_with('"')) {
        name = token.text;
    } else if (!unquote(token.text, name)) {
        return fail(token, "a string with an escape that is none of \\\" \\\\ \\n \\t \\r \\xNN");
    }
    return name;
}

Result<ir::Graph> Parser::parse_function() {
    if (!is("func")) {
        return unexpected("'func'");
    }
    take();
    EMBER_TRY(Token token, expect(TokenKind::kFunction, "@ and the function's name"));
    EMBER_TRY(std::string name, parse_name(token));
    if (!function_names_.insert(name).second) {
        return fail(token, "a second function @" + name);
    }
    if (function_ == kMaxFunctions) {
        return fail(token, "more than " + std::to_string(kMaxFunctions) + " functions");
    }
    ir::GraphBuilder builder(name);
    Scope scope{builder, nullptr, 0};
    EMBER_CHECKED(parse_params(scope));
    EMBER_CHECKED(parse_block(scope));
    return builder.take();
}

Status Parser::parse_params(Scope& scope) {
    EMBER_CHECKED(expect("(", "before the parameters"));
    return parse_list(")", "parameter", [&]() -> Status {
        ir::ParamKind kind = accept("shared")  ? ir::ParamKind::kShared
                             : accept("bound") ? ir::ParamKind::kBound
                                               : ir::ParamKind::kInput;
        if (kind != ir::ParamKind::kInput && scope.outer != nullptr) {
            return fail(token_, "regions have plain parameters");
        }
        EMBER_TRY(Token name, expect(TokenKind::kValue, "a parameter, as in '%x: f32[n]'"));
        EMBER_CHECKED(expect(":", "after a parameter's name"));
        EMBER_TRY(TensorType type, parse_type());
        return define(scope, name, scope.builder.param(std::move(type), kind));
    });
}

Status Parser::parse_block(Scope& scope) {
    EMBER_CHECKED(expect("{", "before the nodes"));
    while (!is("return")) {
        if (token_.kind != TokenKind::kValue && token_.kind != TokenKind::kName) {
            return unexpected("a node or 'return'");
        }
        EMBER_CHECKED(parse_node(scope));
    }
    if (scope.outer == nullptr) {
        returns_.push_back(token_);
    }
    return parse_return(scope);
}

Status Parser::parse_return(Scope& scope) {
    take();
    if (accept("}")) {
        return {};
    }
    do {
        EMBER_CHECKED(parse_output(scope));
    } while (accept(","));
    return expect("}", "after the outputs");
}

Status Parser::parse_output(Scope& scope) {
    EMBER_TRY(Token name, expect(TokenKind::kValue, "an output"));
    EMBER_TRY(ir::ValueId value, find_value(scope, name));
    if (!is("->")) {
        scope.builder.output(value);
        return {};
    }
    take();
    EMBER_TRY(Token target, expect(TokenKind::kValue, "the shared parameter that is updated"));
    EMBER_TRY(ir::ValueId updated, find_value(scope, target));
    const ir::Value& param = scope.builder.graph().values[updated];
    if (param.node != ir::kNone || scope.builder.graph().params[param.index].kind != ir::ParamKind::kShared) {
        return fail(target, "%" + std::string(target.text) + " is no shared parameter: it cannot be updated");
    }
    scope.builder.output(value, param.index);
    return {};
}

// --- nodes

Status Parser::parse_node(Scope& scope) {
    EMBER_TRY(std::vector<Token> results, parse_results());
    EMBER_TRY(Token name, expect(TokenKind::kName, "an op"));
    EMBER_TRY(Op op, parse_op(name));
    ir::NodeSpec spec{op, {}};
    LiteralText literal;
    EMBER_CHECKED(parse_operands(scope, spec));
    EMBER_CHECKED(parse_attributes(spec, literal));
    EMBER_CHECKED(parse_regions(scope, spec));
    if (is(":")) {
        EMBER_TRY(spec.stated, parse_types());
    }
    if (literal.start.kind != TokenKind::kEnd) {
        EMBER_TRY(ir::Literal value, make_literal(literal, spec));
        for (ir::Attribute& attribute : spec.attributes) {
            if (std::holds_alternative<ir::Literal>(attribute.value)) {
                attribute.value = value;
            }
        }
    }
    return add_node(scope, std::move(spec), name, results);
}

Result<std::vector<Token>> Parser::parse_results() {
    std::vector<Token> results;
    while (token_.kind == TokenKind::kValue) {
        results.push_back(take());
        if (accept("=")) {
            return results;
        }
        EMBER_CHECKED(expect(",", "or '=' after a result"));
    }
    if (!results.empty()) {
        return unexpected("a result after ','");
    }
    return results;
}

Result<Op> Parser::parse_op(const Token& name) {
    if (auto op = ir::op_from_name(name.text)) {
        return *op;
    }
    std::vector<std::string_view> known;
    for (const ir::OpInfo& row : ir::kOps) {
        known.push_back(row.name);
    }
    return fail(name, "unknown op " + describe(name) + did_you_mean(name.text, known));
}

Status Parser::parse_operands(Scope& scope, ir::NodeSpec& spec) {
    EMBER_CHECKED(expect("(", "before the operands"));
    return parse_list(")", "operand", [&]() -> Status {
        EMBER_TRY(Token name, expect(TokenKind::kValue, "an operand"));
        EMBER_TRY(ir::ValueId value, find_value(scope, name));
        spec.operands.push_back(value);
        return {};
    });
}

Status Parser::parse_attributes(ir::NodeSpec& spec, LiteralText& literal) {
    if (!accept("{")) {
        return {};
    }
    return parse_list("}", "attribute", [&]() -> Status {
        EMBER_TRY(Token name, expect(TokenKind::kName, "an attribute's name"));
        std::vector<std::string_view> known;
        const ir::AttributeInfo* found = nullptr;
        for (const ir::AttributeInfo& row : ir::attributes(spec.op)) {
            known.push_back(row.name);
            found = row.name == name.text ? &row : found;
        }
        if (found == nullptr) {
            return fail(name, std::string(ir::op_name(spec.op)) + " has no attribute " + describe(name) +
                                  did_you_mean(name.text, known));
        }
        for (const ir::Attribute& other : spec.attributes) {
            if (other.name == found->name) {
                return fail(name, "attribute " + describe(name) + " stands twice");
            }
        }
        EMBER_CHECKED(expect("=", "after an attribute's name"));
        EMBER_TRY(ir::AttributeValue value, parse_attribute(found->kind, literal));
        spec.attributes.push_back({found->name, std::move(value)});
        return {};
    });
}

Result<ir::AttributeValue> Parser::parse_attribute(ir::AttributeKind kind, LiteralText& literal) {
    switch (kind) {
        case ir::AttributeKind::kInt: {
            EMBER_TRY(int64_t value, parse_integer());
            return ir::AttributeValue(value);
        }
        case ir::AttributeKind::kInts: {
            EMBER_TRY(std::vector<int64_t> values, parse_integers());
            return ir::AttributeValue(std::move(values));
        }
        case ir::AttributeKind::kString: {
            EMBER_TRY(std::string text, parse_string());
            return ir::AttributeValue(std::move(text));
        }
        case ir::AttributeKind::kDType: {
            EMBER_TRY(ir::DType dtype, parse_dtype());
            return ir::AttributeValue(dtype);
        }
        case ir::AttributeKind::kLiteral:
            break;
    }
    EMBER_CHECKED(parse_literal(literal));
    return ir::AttributeValue(ir::Literal{});
}

Result<int64_t> Parser::parse_integer() {
    EMBER_TRY(Token token, expect(TokenKind::kNumber, "an integer"));
    std::string bytes;
    if (!parse_element(token.text, ir::DType::kI64, bytes)) {
        return fail(token, "expected an integer of 64 bits, found " + describe(token));
    }
    return ir::literal_as_int({ir::DType::kI64, {}, bytes});
}

Result<std::vector<int64_t>> Parser::parse_integers() {
    std::vector<int64_t> values;
    if (!accept("[")) {
        return unexpected("a list of integers, as in '[0,1]'");
    }
    EMBER_CHECKED(parse_list("]", "integer", [&]() -> Status {
        EMBER_TRY(int64_t value, parse_integer());
        values.push_back(value);
        return {};
    }));
    return values;
}

Result<std::string> Parser::parse_string() {
    EMBER_TRY(Token token, expect(TokenKind::kString, "a string in double quotes"));
    return parse_name(token);
}

Result<ir::DType> Parser::parse_dtype() {
    EMBER_TRY(Token name, expect(TokenKind::kName, "a dtype"));
    if (auto dtype = ir::dtype_from_name(name.text)) {
        return *dtype;
    }
    std::vector<std::string_view> known;
    for (int i = 0; i < ir::kDTypeCount; ++i) {
        known.push_back(ir::dtype_name(static_cast<ir::DType>(i)));
    }
    return fail(name, "unknown dtype " + describe(name) + did_you_mean(name.text, known));
}

// --- literals

Status Parser::parse_literal(LiteralText& literal) {
    literal.start = token_;
    literal.is_list = accept("[");
    auto parse_one = [&]() -> Status {
        if (literal.elements.size() >= ir::kMaxLiteralBytes) {
            return fail(token_, "a constant has at most 64 bytes; larger ones are bound parameters");
        }
        EMBER_TRY(LiteralText::Element element, parse_literal_element());
        literal.elements.push_back(element);
        return {};
    };
    return literal.is_list ? parse_list("]", "element", parse_one) : parse_one();
}

Result<LiteralText::Element> Parser::parse_literal_element() {
    LiteralText::Element element;
    auto parse_number = [&]() -> Result<Token> {
        if (token_.kind != TokenKind::kNumber && token_.kind != TokenKind::kName) {
            return unexpected("a number, true or false");
        }
        return take();
    };
    if (!accept("(")) {
        EMBER_TRY(element.real, parse_number());
        return element;
    }
    EMBER_TRY(element.real, parse_number());
    EMBER_CHECKED(expect(",", "after the real part"));
    EMBER_TRY(element.imaginary, parse_number());
    EMBER_CHECKED(expect(")", "after the imaginary part"));
    return element;
}

Status Parser::make_element(const LiteralText::Element& element, ir::DType dtype, std::string& bytes) const {
    bool given_as_complex = element.imaginary.kind != TokenKind::kEnd;
    if (given_as_complex != ir::is_complex(dtype)) {
        return fail(element.real, given_as_complex
                                      ? "a complex number in a constant of dtype " + std::string(ir::dtype_name(dtype))
                                      : std::string("complex numbers are written (re,im)"));
    }
    ir::DType part = given_as_complex ? part_dtype(dtype) : dtype;
    for (const Token& token : {element.real, element.imaginary}) {
        if (token.kind != TokenKind::kEnd && !parse_element(token.text, part, bytes)) {
            return fail(token, describe(token) + " is no " + std::string(ir::dtype_name(part)));
        }
    }
    return {};
}

Result<ir::Literal> Parser::make_literal(const LiteralText& text, const ir::NodeSpec& spec) const {
    if (spec.stated.size() != 1 || !spec.stated[0].is_static()) {
        return fail(text.start, "a constant needs its type after it, as in '{value=1.5} : f32[]'");
    }
    const TensorType& type = spec.stated[0];
    if (text.is_list == type.is_scalar()) {
        return fail(text.start, text.is_list ? "a list for a scalar" : "a constant with axes is written as a list");
    }
    if (type.static_elements() != static_cast<int64_t>(text.elements.size())) {
        return fail(text.start, type.to_string() + " has " + std::to_string(type.static_elements()) +
                                    " elements, the list " + std::to_string(text.elements.size()));
    }
    ir::Literal literal{type.dtype, {}, {}};
    for (ir::Dim dim : type.shape) {
        literal.shape.push_back(dim.size());
    }
    for (const LiteralText::Element& element : text.elements) {
        EMBER_CHECKED(make_element(element, type.dtype, literal.bytes));
    }
    return literal;
}

// --- regions

Status Parser::parse_regions(Scope& scope, ir::NodeSpec& spec) {
    std::vector<std::string_view> keywords;
    if (spec.op == Op::k_loop) {
        keywords = {"do"};
    } else if (spec.op == Op::k_if) {
        keywords = {"then", "else"};
    }
    for (std::string_view keyword : keywords) {
        EMBER_TRY(auto region, parse_region(scope, keyword));
        spec.regions.push_back(std::move(region));
    }
    return {};
}

Result<std::shared_ptr<const ir::Graph>> Parser::parse_region(Scope& scope, std::string_view keyword) {
    EMBER_CHECKED(expect(keyword, "and a region"));
    if (scope.depth >= kMaxDepth) {
        return fail(token_, "regions nest deeper than " + std::to_string(kMaxDepth));
    }
    ir::GraphBuilder builder{std::string(keyword)};
    Scope inner{builder, &scope, scope.depth + 1};
    size_t first_call = calls_.size();
    EMBER_CHECKED(parse_params(inner));
    EMBER_CHECKED(parse_block(inner));
    auto region = std::make_shared<const ir::Graph>(builder.take());
    settle_calls(first_call, region);
    return region;
}

// --- types

Result<std::vector<TensorType>> Parser::parse_types() {
    take();
    std::vector<TensorType> types;
    do {
        EMBER_TRY(TensorType type, parse_type());
        types.push_back(std::move(type));
    } while (accept(","));
    return types;
}

Result<TensorType> Parser::parse_type() {
    Token start = token_;
    EMBER_TRY(ir::DType dtype, parse_dtype());
    TensorType type{dtype, {}};
    EMBER_CHECKED(expect("[", "after a dtype"));
    EMBER_CHECKED(parse_list("]", "dimension", [&]() -> Status {
        if (type.shape.size() == kMaxRank) {
            return fail(token_, "a type has at most " + std::to_string(kMaxRank) + " axes");
        }
        EMBER_TRY(ir::Dim dim, parse_dim());
        type.shape.push_back(dim);
        return {};
    }));
    int32_t block = ir::info(dtype).block_elements;
    if (block > 1 && (type.is_scalar() || (type.shape.back().is_static() && type.shape.back().size() % block != 0))) {
        return fail(start, "the last axis of " + std::string(ir::dtype_name(dtype)) + " must be a multiple of " +
                               std::to_string(block));
    }
    return type;
}

Result<ir::Dim> Parser::parse_dim() {
    if (token_.kind == TokenKind::kName) {
        return ir::Dim::symbol(take().text);
    }
    Token where = token_;
    if (token_.kind != TokenKind::kNumber) {
        return unexpected("a dimension: a number or a symbol");
    }
    EMBER_TRY(int64_t size, parse_integer());
    if (size < 0 || size > ir::kMaxLength) {
        return fail(where, "no axis has length " + std::to_string(size));
    }
    return ir::Dim(size);
}

// --- meaning

Result<ir::ValueId> Parser::find_value(const Scope& scope, const Token& name) const {
    if (auto found = scope.values.find(name.text); found != scope.values.end()) {
        return found->second;
    }
    for (const Scope* outer = scope.outer; outer != nullptr; outer = outer->outer) {
        if (outer->values.contains(name.text)) {
            return fail(name, describe(name) + " stands outside of this region: give it to the region as an operand");
        }
    }
    return fail(name, "unknown value " + describe(name));
}

Status Parser::define(Scope& scope, const Token& name, ir::ValueId value) const {
    if (!scope.values.emplace(name.text, value).second) {
        return fail(name, describe(name) + " is defined twice");
    }
    return {};
}

Status Parser::add_node(Scope& scope, ir::NodeSpec spec, const Token& op, const std::vector<Token>& results) {
    bool is_call = spec.op == Op::k_call;
    if (is_call && spec.stated.empty()) {
        return fail(op, "call: the types of its results must be stated");
    }
    auto values = scope.builder.add(std::move(spec));
    if (!values.ok()) {
        return fail(op, values.error().message, values.error().code);
    }
    if (values->size() != results.size()) {
        return fail(op, std::string(op.text) + " has " + std::to_string(values->size()) + " results, not " +
                            std::to_string(results.size()));
    }
    for (size_t k = 0; k < results.size(); ++k) {
        EMBER_CHECKED(define(scope, results[k], (*values)[k]));
    }
    if (is_call) {
        calls_.push_back({function_, nullptr, scope.builder.graph().values[values->front()].node, op});
    }
    if (nodes_ != nullptr) {
        nodes_->push_back({op.line, static_cast<uint32_t>(function_), {}});
        for (ir::ValueId value : *values) {
            nodes_->back().types.push_back(scope.builder.type(value));
        }
    }
    return {};
}

/// Calls since `first` that belong to no region yet belong to this one.
void Parser::settle_calls(size_t first, const std::shared_ptr<const ir::Graph>& region) {
    for (size_t i = first; i < calls_.size(); ++i) {
        if (calls_[i].region == nullptr) {
            calls_[i].region = region;
        }
    }
}

Status Parser::check_calls(const ir::Module& module) const {
    for (const PendingCall& call : calls_) {
        const ir::Graph& graph = call.region != nullptr ? *call.region : module.functions[call.function];
        const ir::Node& node = graph.nodes[call.node];
        if (module.find(node.string("callee")) == nullptr) {
            std::vector<std::string_view> known(function_names_.begin(), function_names_.end());
            std::string callee(node.string("callee"));
            return fail(call.where, "no function @" + callee + did_you_mean(callee, known), Code::kVerify);
        }
        ir::NodeSpec spec{node.op, node.operands, node.attributes, {}, {}};
        for (uint32_t k = 0; k < node.result_count; ++k) {
            spec.stated.push_back(graph.type(node.result(k)));
        }
        auto types = ir::infer_types(graph, spec, &module);
        if (!types.ok()) {
            return fail(call.where, types.error().message, types.error().code);
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            if ((*types)[k] != spec.stated[k]) {
                return fail(
                    call.where,
                    "call: gives " + (*types)[k].to_string() + ", the text states " + spec.stated[k].to_string(),
                    Code::kType);
            }
        }
    }
    return {};
}

/// What is left to be wrong concerns a function as a whole: its updates, and calls in a circle.
Result<ir::Module> Parser::check_module(ir::Module module) const {
    Status status = ir::verify(module);
    if (status.ok()) {
        return module;
    }
    for (size_t i = 0; i < module.functions.size(); ++i) {
        if (Status own = ir::verify(module.functions[i], &module); !own.ok()) {
            return fail(returns_[i], own.error().message, own.error().code);
        }
    }
    return fail(returns_[0], status.error().message, status.error().code);
}

Result<ir::Module> parse_checked(std::string_view text, std::string_view file, std::vector<ParsedNode>* nodes) {
    if (text.size() > kMaxTextBytes) {
        return error(Code::kParse, "a graph's text has at most 64 MiB", std::string(file));
    }
    return Parser(text, file, nodes).parse_module();
}

}  // namespace

Result<ir::Module> parse(std::string_view text, std::string_view file_name) {
    return parse_checked(text, file_name, nullptr);
}

Result<ir::Module> parse(std::string_view text, std::string_view file_name, std::vector<ParsedNode>& nodes) {
    return parse_checked(text, file_name, &nodes);
}

}  // namespace ember::text
