# Third-party libraries, wrapped so that nothing Litz links needs a shared library which another
# distribution may lack. A room asks for them by these names in LIBRARIES:
#
#   litz_fmt      {fmt}, compiled once from the installed headers (third_party/fmt.cpp). Header-only
#                 use would cost each source file several seconds, and Debian ships no libfmt.a.
#   litz_spdlog   spdlog, header-only. It takes about nine seconds in each file that includes it, so
#                 include it in one source file only and keep it out of headers.
#   litz_json     nlohmann/json. Include <nlohmann/json_fwd.hpp> in headers.
#   litz_xxhash   xxHash, inlined.
#   litz_cli11    CLI11, for the command line tools.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_path(LITZ_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(LITZ_XXHASH_INCLUDE_DIR)

get_target_property(litz_fmt_include_dir fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)

# third_party/fmt.cpp names internals of {fmt} 9 and 10. With a version it does not fit, fall back to
# the header-only target: slower builds, the same program.
if(NOT DEFINED LITZ_FMT_COMPILED)
  message(CHECK_START "Compiling {fmt} ${fmt_VERSION} from its headers")
  try_compile(LITZ_FMT_COMPILED "${CMAKE_CURRENT_BINARY_DIR}/fmt_probe"
    SOURCES "${PROJECT_SOURCE_DIR}/third_party/fmt.cpp"
            "${PROJECT_SOURCE_DIR}/third_party/fmt_probe.cpp"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${litz_fmt_include_dir}"
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  if(LITZ_FMT_COMPILED)
    message(CHECK_PASS "works")
  else()
    message(CHECK_FAIL "does not fit, using it header-only")
  endif()
endif()

if(LITZ_FMT_COMPILED)
  add_library(litz_fmt STATIC "${PROJECT_SOURCE_DIR}/third_party/fmt.cpp")
  set_target_properties(litz_fmt PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(litz_fmt SYSTEM PUBLIC "${litz_fmt_include_dir}")
else()
  add_library(litz_fmt INTERFACE)
  target_link_libraries(litz_fmt INTERFACE fmt::fmt-header-only)
endif()

get_target_property(litz_spdlog_include_dir spdlog::spdlog_header_only
                    INTERFACE_INCLUDE_DIRECTORIES)
add_library(litz_spdlog INTERFACE)
target_compile_definitions(litz_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_include_directories(litz_spdlog SYSTEM INTERFACE "${litz_spdlog_include_dir}")
target_link_libraries(litz_spdlog INTERFACE litz_fmt Threads::Threads)

add_library(litz_json INTERFACE)
target_link_libraries(litz_json INTERFACE nlohmann_json::nlohmann_json)

add_library(litz_xxhash INTERFACE)
target_compile_definitions(litz_xxhash INTERFACE XXH_INLINE_ALL)
target_include_directories(litz_xxhash SYSTEM INTERFACE "${LITZ_XXHASH_INCLUDE_DIR}")

add_library(litz_cli11 INTERFACE)
target_link_libraries(litz_cli11 INTERFACE CLI11::CLI11)
