# math_test: the math bitcode inlined into loops (math_loops.cpp), once for each instruction set below, against references.
include(${CMAKE_SOURCE_DIR}/cmake/ember_bitcode.cmake)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(EMBER_MATH_ISAS base avx2 avx512)
else()
  set(EMBER_MATH_ISAS base)
endif()
set(EMBER_MATH_FLAGS_base "")
set(EMBER_MATH_FLAGS_avx2 -march=haswell)
set(EMBER_MATH_FLAGS_avx512 -march=sapphirerapids -mprefer-vector-width=512)

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ember/codegen/math/*.cpp)
ember_compile_bitcode(math_bitcode ember_math_test ${sources})
set(objects "")
foreach(isa ${EMBER_MATH_ISAS})
  set(stem ${CMAKE_CURRENT_BINARY_DIR}/math_loops_${isa})
  add_custom_command(
    OUTPUT ${stem}.o
    COMMAND ${EMBER_CLANG} -std=c++20 -O1 -fPIC ${EMBER_MATH_FLAGS_${isa}} -DEMBER_ISA=${isa} -I${CMAKE_SOURCE_DIR}/src -emit-llvm
            -c ${CMAKE_CURRENT_SOURCE_DIR}/unit/math_loops.cpp -o ${stem}.loops.bc
    COMMAND ${EMBER_LLVM_LINK} --suppress-warnings ${stem}.loops.bc --internalize ${math_bitcode} -o ${stem}.bc
    COMMAND ${EMBER_CLANG} -O2 -fPIC ${EMBER_MATH_FLAGS_${isa}} -c ${stem}.bc -o ${stem}.o
    DEPENDS ${math_bitcode} unit/math_loops.cpp unit/math_loops.h ${CMAKE_SOURCE_DIR}/src/ember/codegen/math/functions.def
    VERBATIM)
  list(APPEND objects ${stem}.o)
endforeach()

add_executable(math_test unit/math_test.cpp ${objects})
target_link_libraries(math_test PRIVATE GTest::gtest_main Threads::Threads)
gtest_discover_tests(math_test DISCOVERY_TIMEOUT 60)
