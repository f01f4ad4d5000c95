# Takes from the textual LLVM IR in INPUT what ties it to a target or a file name, gives ember_math_fma its value, and writes
# OUTPUT.
file(READ ${INPUT} text)
string(REGEX REPLACE "target (triple|datalayout) = \"[^\"]*\"\n" "" text "${text}")
string(REGEX REPLACE "source_filename = \"[^\"]*\"\n" "" text "${text}")
string(REGEX REPLACE " \"[a-z-]+\"(=\"[^\"]*\")?" "" text "${text}")
string(REGEX REPLACE "@ember_math_fma = [^\n]*" "@ember_math_fma = linkonce_odr hidden constant i8 0, align 1" text "${text}")
string(REGEX REPLACE "define hidden " "define " text "${text}")
string(REGEX REPLACE "\n!llvm[.][^\n]*" "" text "${text}")
file(WRITE ${OUTPUT} "${text}")
