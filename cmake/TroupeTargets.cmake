# Helpers that give every library, program and test of the project the same flags.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

option(TROUPE_SANITIZE "Sanitizers to build with, e.g. address,undefined or thread" "")
option(TROUPE_FUZZ "Build the libFuzzer targets (needs clang)" OFF)

add_library(troupe_flags INTERFACE)
target_include_directories(troupe_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
# -ffp-contract=off: "same request, same tokens" rests on every float operation being the one that
# the source spells; a fused multiply-add is written as one where it is meant.
target_compile_options(troupe_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       -Werror=unused-result -Werror=return-type
                       -ffp-contract=off -fno-math-errno $<$<CONFIG:Release>:-O2>)
if(TROUPE_SANITIZE)
  # CAF 0.17 binds null references when an actor is spawned, hence -fno-sanitize=null.
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
  if(TROUPE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=null,vptr -fno-sanitize-recover=undefined)
  endif()
endif()
if(TROUPE_FUZZ)
  # Coverage in the libraries as well: the fuzzer would else see only the target's own few lines.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# troupe_library(NAME SOURCES a.cc b.cc [DEPENDS troupe_x ...])
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC troupe_flags ${ARG_DEPENDS})
endfunction()

# troupe_program(NAME SOURCES main.cc [DEPENDS troupe_x ...])
function(troupe_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_flags ${ARG_DEPENDS})
endfunction()

# troupe_test(NAME SOURCES x_test.cc ... [DEPENDS troupe_x ...]): one Boost.Test program, known to ctest.
# TROUPE_SOURCE_DIR is the checkout, for golden files and the model.
function(troupe_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/test_main.cc)
  target_link_libraries(${name} PRIVATE troupe_flags ${ARG_DEPENDS} Boost::unit_test_framework)
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK
                             TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # The label tells tools/run_tests.py how the program reports its cases.
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS boost_test)
  set_property(GLOBAL APPEND PROPERTY TROUPE_TESTS ${name})
endfunction()

# troupe_fuzz(NAME SOURCES x_fuzz.cc CORPUS folder... [DEPENDS troupe_x ...]): a program around
# LLVMFuzzerTestOneInput. With TROUPE_FUZZ it is libFuzzer's; otherwise it runs every file of the
# corpus once, as a test, with any compiler. CORPUS is relative to the calling folder.
function(troupe_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;CORPUS;DEPENDS" ${ARGN})
  list(TRANSFORM ARG_CORPUS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(TROUPE_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${ARG_CORPUS})
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  endif()
  target_link_libraries(${name} PRIVATE troupe_flags ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS corpus)
endfunction()
