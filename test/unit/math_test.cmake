# math_test: the math bitcode inlined into loops (math_loops.cpp), once for each instruction set below, against references.
# The loops are compiled as generated code is: linked with the bitcode, then inlined and vectorised for the target.
include(${CMAKE_SOURCE_DIR}/cmake/ember_bitcode.cmake)

set(isas base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND isas avx2 avx512)
endif()
set(flags_base "")
set(flags_avx2 -march=haswell)
set(flags_avx512 -march=sapphirerapids -mprefer-vector-width=512)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ember/codegen/math/*.cpp)
ember_compile_bitcode(bitcode ember_math_test ${sources})
# What the code generator does for a target with FMA, see bitcode.h.
set(fused ${CMAKE_CURRENT_BINARY_DIR}/ember_math_fused)
file(WRITE ${fused}.ll "@ember_math_fma = constant i8 1\n")
add_custom_command(OUTPUT ${fused}.bc COMMAND ${EMBER_LLVM_LINK} ${bitcode} ${fused}.ll -o ${fused}.bc DEPENDS ${bitcode} VERBATIM)
set(bitcode_base ${bitcode})
set(bitcode_avx2 ${fused}.bc)
set(bitcode_avx512 ${fused}.bc)

set(objects "")
foreach(isa ${isas})
  set(stem ${CMAKE_CURRENT_BINARY_DIR}/math_loops_${isa})
  add_custom_command(
    OUTPUT ${stem}.o
    COMMAND ${EMBER_CLANG} -std=c++20 -O1 -fPIC ${flags_${isa}} -DEMBER_ISA=${isa} -I${CMAKE_SOURCE_DIR}/src -emit-llvm
            -c ${CMAKE_CURRENT_SOURCE_DIR}/unit/math_loops.cpp -o ${stem}.loops.bc
    COMMAND ${EMBER_LLVM_LINK} --suppress-warnings ${stem}.loops.bc --internalize ${bitcode_${isa}} -o ${stem}.bc
    COMMAND ${EMBER_CLANG} -O2 -fPIC ${flags_${isa}} -c ${stem}.bc -o ${stem}.o
    DEPENDS ${bitcode_${isa}} unit/math_loops.cpp unit/math_loops.h ${CMAKE_SOURCE_DIR}/src/ember/codegen/math/functions.def
    COMMENT "Compiling the math loops for ${isa}"
    VERBATIM)
  list(APPEND objects ${stem}.o)
endforeach()

add_executable(math_test unit/math_test.cpp ${objects})
target_compile_definitions(math_test PRIVATE EMBER_MATH_IR_DIR="${CMAKE_CURRENT_BINARY_DIR}/ember_math_test")
target_link_libraries(math_test PRIVATE GTest::gtest_main Threads::Threads)
gtest_discover_tests(math_test DISCOVERY_TIMEOUT 60)
