# Language standard, warnings, sanitizer, ccache: what every Litz target is built with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LITZ_CCACHE ccache)
  mark_as_advanced(LITZ_CCACHE)
  if(LITZ_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${LITZ_CCACHE}")
  endif()
endif()

# Flags for Litz's own sources. Third-party headers come in as system headers and are exempt.
add_library(litz_flags INTERFACE)
target_compile_features(litz_flags INTERFACE cxx_std_20)
target_compile_options(litz_flags INTERFACE -Wall -Wextra -Werror=switch)
if(LITZ_WARNINGS_AS_ERRORS)
  target_compile_options(litz_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # g++ 12 and 13 report these for correct std::string, std::vector and std::variant code.
  target_compile_options(litz_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized
                                              -Wno-dangling-pointer -Wno-array-bounds
                                              -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# A sanitizer must be in every object of a program, third-party code included.
if(LITZ_SANITIZE)
  add_compile_options(-fsanitize=${LITZ_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LITZ_SANITIZE})
endif()
