# Two uses.
#
# Included: litz_add_source_id(TARGET ROOMS ...) gives TARGET the function source_id()
# (src/driver/source_id.h), made anew when a source of one of the rooms changes, or the program that has
# Triton compile.
#
# Run as a script, by that rule: writes the function to OUTPUT; LIST is a file with a source a line.
if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS "${LIST}" sources)
  set(hashes "")
  foreach(source IN LISTS sources)
    file(SHA256 "${source}" hash)
    cmake_path(GET source FILENAME name)
    string(APPEND hashes "${name} ${hash}\n")
  endforeach()
  string(SHA256 id "${hashes}")
  string(SUBSTRING "${id}" 0 32 id)
  file(WRITE "${OUTPUT}" "#include \"driver/source_id.h\"\n\n\
namespace litz {\n\nstd::string_view source_id() { return \"${id}\"; }\n\n}  // namespace litz\n")
  return()
endif()

set(LITZ_SOURCE_ID_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(litz_add_source_id target)
  # A glob, unlike the lists of what to compile: a header that no list names matters as well.
  set(patterns "")
  foreach(room IN LISTS ARGN)
    foreach(suffix IN ITEMS cpp h inc)
      list(APPEND patterns "${PROJECT_SOURCE_DIR}/src/${room}/*.${suffix}")
    endforeach()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${patterns} "${PROJECT_SOURCE_DIR}/include/litz/*.h"
       "${PROJECT_SOURCE_DIR}/python/litz/triton_worker.py")
  set(list "${CMAKE_CURRENT_BINARY_DIR}/source_id.txt")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/source_id.cpp")
  list(JOIN sources "\n" lines)
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}\n" @ONLY)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${list}" "-DOUTPUT=${output}" -P "${LITZ_SOURCE_ID_SCRIPT}"
    DEPENDS ${sources} "${list}" "${LITZ_SOURCE_ID_SCRIPT}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
