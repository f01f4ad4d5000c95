// Tensors in the directives of file tests.
#include "cli/ember_opt/tensor_text.h"

#include <cmath>
#include <complex>

#include "ember/text/element.h"
#include "ember/text/lexer.h"

namespace ember::opt {
namespace {

using interp::Tensor;
using text::Token;
using text::TokenKind;

class TensorReader {
public:
    explicit TensorReader(std::string_view text) : lexer_(text) { take(); }

    Result<Tensor> read() {
        EMBER_TRY(Tensor tensor, read_type());
        if (token_.kind == TokenKind::kEnd) {
            return fail("elements or a fill after the type");
        }
        if (auto fill = fill_named(token_.text); fill && token_.kind == TokenKind::kName) {
            EMBER_CHECKED(read_fill(*fill, tensor));
        } else {
            EMBER_CHECKED(read_elements(tensor));
        }
        if (token_.kind != TokenKind::kEnd) {
            return fail("nothing more");
        }
        return tensor;
    }

private:
    Token take() {
        Token taken = token_;
        token_ = lexer_.next();
        return taken;
    }

    bool accept(std::string_view mark) {
        bool found = token_.kind == TokenKind::kMark && token_.text == mark;
        if (found) {
            take();
        }
        return found;
    }

    Diagnostic fail(std::string_view expected) const {
        return error(Code::kParse, "expected " + std::string(expected) + ", found " + text::describe(token_));
    }

    static std::optional<interp::Fill> fill_named(std::string_view name) {
        using interp::Fill;
        static constexpr std::pair<std::string_view, Fill> kFills[] = {{"ordinary", Fill::kOrdinary},
                                                                       {"positive", Fill::kPositive},
                                                                       {"wide", Fill::kWide},
                                                                       {"special", Fill::kSpecial}};
        for (auto [known, fill] : kFills) {
            if (known == name) {
                return fill;
            }
        }
        return {};
    }

    Result<int64_t> read_integer() {
        std::string bytes;
        if (token_.kind != TokenKind::kNumber || !text::parse_element(token_.text, ir::DType::kI64, bytes)) {
            return fail("an integer");
        }
        take();
        return ir::literal_as_int({ir::DType::kI64, {}, bytes});
    }

    /// A tensor of this type without bytes.
    Result<Tensor> read_type() {
        auto dtype = ir::dtype_from_name(token_.text);
        if (!dtype) {
            return fail("a dtype");
        }
        take();
        Tensor tensor{*dtype, {}, {}};
        if (!accept("[")) {
            return fail("'[' after the dtype");
        }
        while (!accept("]")) {
            EMBER_TRY(int64_t length, read_integer());
            tensor.shape.push_back(length);
            accept(",");
        }
        EMBER_TRY(int64_t bytes, interp::tensor_bytes(tensor.dtype, tensor.shape));
        if (bytes > int64_t{1} << 30) {
            return error(Code::kParse, "a test's tensor has at most a gigabyte");
        }
        return tensor;
    }

    Status read_fill(interp::Fill fill, Tensor& tensor) {
        take();
        if (!accept("(") || take().text != "seed" || !accept("=")) {
            return fail("(seed=…) after the fill");
        }
        EMBER_TRY(int64_t seed, read_integer());
        if (!accept(")")) {
            return fail("')'");
        }
        tensor = interp::random_tensor(tensor.dtype, tensor.shape, static_cast<uint64_t>(seed), fill);
        return {};
    }

    Status read_elements(Tensor& tensor) {
        if (ir::is_quantized(tensor.dtype) || tensor.dtype == ir::DType::kRng) {
            return error(Code::kParse, "storage types are filled, as in 'q8_0[2,32] ordinary(seed=1)'");
        }
        bool is_list = accept("[");
        if (is_list == tensor.shape.empty()) {
            return fail(is_list ? "a scalar" : "a list");
        }
        std::string bytes;
        while (!is_list || !accept("]")) {
            EMBER_CHECKED(read_element(tensor.dtype, bytes));
            if (!is_list) {
                break;
            }
            accept(",");
        }
        tensor.bytes.assign(bytes.begin(), bytes.end());
        return interp::verify(tensor);
    }

    Status read_element(ir::DType dtype, std::string& bytes) {
        if (!ir::is_complex(dtype)) {
            return read_part(dtype, bytes);
        }
        if (!accept("(")) {
            return fail("a complex number (re,im)");
        }
        EMBER_CHECKED(read_part(text::part_dtype(dtype), bytes));
        if (!accept(",")) {
            return fail("',' after the real part");
        }
        EMBER_CHECKED(read_part(text::part_dtype(dtype), bytes));
        return accept(")") ? Status() : fail("')' after the imaginary part");
    }

    Status read_part(ir::DType dtype, std::string& bytes) {
        if (!text::parse_element(token_.text, dtype, bytes)) {
            return fail("an element of dtype " + std::string(ir::dtype_name(dtype)));
        }
        take();
        return {};
    }

    text::Lexer lexer_;
    Token token_;
};

bool is_storage(ir::DType dtype) {
    return ir::is_quantized(dtype) || dtype == ir::DType::kRng;
}

void append_shown(std::string& out, const Tensor& tensor, int64_t index) {
    bool is_nan = ir::is_float(tensor.dtype) && std::isnan(tensor.at_double(index));
    auto bytes = static_cast<size_t>(ir::element_bytes(tensor.dtype));
    if (is_nan) {
        out += "nan";
    } else {
        text::append_element(out, tensor.dtype, tensor.bytes.data() + static_cast<size_t>(index) * bytes);
    }
}

bool agree(double expected, double found, Tolerance tolerance) {
    if (std::isnan(expected) || std::isnan(found)) {
        return std::isnan(expected) && std::isnan(found);
    }
    if (expected == found) {
        return expected != 0 || !tolerance.zero_signs || std::signbit(expected) == std::signbit(found);
    }
    double bound = tolerance.relative * std::max(std::fabs(expected), std::fabs(found)) + tolerance.absolute;
    return std::isfinite(expected) && std::isfinite(found) && std::fabs(expected - found) <= bound;
}

bool element_agrees(const Tensor& expected, const Tensor& found, int64_t i, Tolerance tolerance) {
    if (ir::is_complex(expected.dtype)) {
        std::complex<double> a = expected.at_complex(i);
        std::complex<double> b = found.at_complex(i);
        bool both_nan =
            (std::isnan(a.real()) || std::isnan(a.imag())) && (std::isnan(b.real()) || std::isnan(b.imag()));
        return both_nan || a == b ||
               std::abs(a - b) <= tolerance.relative * std::max(std::abs(a), std::abs(b)) + tolerance.absolute;
    }
    return ir::is_float(expected.dtype) ? agree(expected.at_double(i), found.at_double(i), tolerance)
                                        : expected.at_int(i) == found.at_int(i);
}

std::string type_text(const Tensor& tensor) {
    return std::string(ir::dtype_name(tensor.dtype)) + interp::lengths_to_string(tensor.shape);
}

}  // namespace

Result<Tensor> parse_tensor(std::string_view text) {
    return TensorReader(text).read();
}

std::string print_tensor(const Tensor& tensor) {
    std::string out = type_text(tensor);
    if (is_storage(tensor.dtype) || tensor.elements() > kMaxShown) {
        return out;
    }
    out += tensor.shape.empty() ? " " : " [";
    for (int64_t i = 0; i < tensor.elements(); ++i) {
        out += i == 0 ? "" : ", ";
        append_shown(out, tensor, i);
    }
    return out + (tensor.shape.empty() ? "" : "]");
}

Tolerance default_tolerance(ir::DType dtype) {
    switch (dtype) {
        case ir::DType::kF16:
            return {2e-3, 1e-6};
        case ir::DType::kBF16:
            return {1.6e-2, 1e-6};
        case ir::DType::kF32:
        case ir::DType::kC64:
            return {2e-6, 1e-30};
        case ir::DType::kF64:
        case ir::DType::kC128:
            return {1e-13, 1e-290};
        default:
            return {};
    }
}

std::optional<std::string> find_difference(const Tensor& expected, const Tensor& found,
                                           std::optional<Tolerance> tolerance) {
    if (type_text(expected) != type_text(found)) {
        return "expected " + type_text(expected) + ", found " + type_text(found);
    }
    if (is_storage(expected.dtype)) {
        return expected == found ? std::nullopt : std::optional<std::string>("the bytes differ");
    }
    for (int64_t i = 0; i < expected.elements(); ++i) {
        if (!element_agrees(expected, found, i, tolerance.value_or(default_tolerance(expected.dtype)))) {
            std::string text = "element " + std::to_string(i) + ": expected ";
            append_shown(text, expected, i);
            append_shown(text += ", found ", found, i);
            return text;
        }
    }
    return {};
}

std::optional<std::string> find_difference(const std::vector<Tensor>& expected, const std::vector<Tensor>& found,
                                           std::optional<Tolerance> tolerance) {
    if (expected.size() != found.size()) {
        return std::to_string(expected.size()) + " results expected, " + std::to_string(found.size()) + " found";
    }
    for (size_t k = 0; k < expected.size(); ++k) {
        if (auto difference = find_difference(expected[k], found[k], tolerance)) {
            return "result " + std::to_string(k) + ": " + *difference;
        }
    }
    return {};
}

}  // namespace ember::opt
