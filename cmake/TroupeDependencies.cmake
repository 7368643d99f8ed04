# What the product and its tests are built with; all of it comes from Debian 12, xgrammar excepted.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(CapnProto CONFIG REQUIRED)
find_package(glog REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS unit_test_framework)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(UCX REQUIRED IMPORTED_TARGET ucx)

# CAF 0.17 ships neither a CMake package nor a pkg-config file.
find_path(CAF_INCLUDE_DIR caf/all.hpp REQUIRED)
find_library(CAF_CORE_LIBRARY caf_core REQUIRED)
add_library(caf_core INTERFACE)
target_include_directories(caf_core SYSTEM INTERFACE ${CAF_INCLUDE_DIR})
target_link_libraries(caf_core INTERFACE ${CAF_CORE_LIBRARY} Threads::Threads)

include(Xgrammar)
