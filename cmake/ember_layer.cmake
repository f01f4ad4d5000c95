# One object library per layer: ember_layer(NAME) globs the .cpp files of the folder that calls it.
# Which layer may include which other one is written in layers.txt and checked by a test.
function(ember_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(ember_${name} OBJECT ${sources})
endfunction()
