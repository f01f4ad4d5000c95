// Tests of Result and check().
#include "ember/support/check.h"
#include "ember/support/result.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

Result<int> half(int x) {
    if (x % 2 != 0) {
        return error(Code::kInvalidArgument, "odd", "here:1");
    }
    return x / 2;
}

Result<int> quarter(int x) {
    EMBER_TRY(int h, half(x));
    EMBER_TRY(int q, half(h));
    return q;
}

TEST(Result, CarriesValueOrDiagnostic) {
    EXPECT_EQ(quarter(8).value(), 2);
    ASSERT_FALSE(quarter(6).ok());
    EXPECT_EQ(quarter(6).error().to_string(), "here:1: odd");
    EXPECT_THROW((void)quarter(6).value(), InternalError);
}

TEST(Check, ThrowsWithPlace) {
    try {
        check(false, "sky is blue");
        FAIL();
    } catch (const InternalError& e) {
        EXPECT_NE(std::string(e.what()).find("sky is blue (support_test.cpp:"), std::string::npos);
    }
}

}  // namespace
}  // namespace ember
