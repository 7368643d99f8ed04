# xgrammar's C++ core, built from the sources that tools/fetch_xgrammar puts into .deps/. Its own
# build files are not used: they would want Python, and their flags are not ours.

set(XGRAMMAR_DIR ${PROJECT_SOURCE_DIR}/.deps/xgrammar-0.2.9)
if(NOT EXISTS ${XGRAMMAR_DIR}/COMPLETE)
  message(FATAL_ERROR "The sources of xgrammar are not in ${XGRAMMAR_DIR}. Obtain them with\n"
                      "  tools/python tools/fetch_xgrammar\n"
                      "which needs the network once (./serve, ./test and tools/build call it).")
endif()

file(GLOB_RECURSE XGRAMMAR_SOURCES ${XGRAMMAR_DIR}/cpp/*.cc)
# xgrammar_log.cc is ours: what xgrammar calls instead of writing to standard error.
add_library(xgrammar STATIC ${XGRAMMAR_SOURCES} ${PROJECT_SOURCE_DIR}/engine/grammar/xgrammar_log.cc)
target_include_directories(xgrammar SYSTEM
  PUBLIC ${XGRAMMAR_DIR}/include ${XGRAMMAR_DIR}/3rdparty/dlpack/include
  PRIVATE ${XGRAMMAR_DIR}/3rdparty/picojson ${XGRAMMAR_DIR}/cpp)
target_compile_definitions(xgrammar PUBLIC XGRAMMAR_ENABLE_CPPTRACE=0
  XGRAMMAR_ENABLE_INTERNAL_CHECK=0 XGRAMMAR_LOG_CUSTOMIZE=1)
# Foreign code: its warnings are not ours, and -O2 in every preset, or grammars compile so slowly
# under the sanitizers that deadlines pass.
target_compile_options(xgrammar PRIVATE -w -O2)
target_link_libraries(xgrammar PUBLIC Threads::Threads)
