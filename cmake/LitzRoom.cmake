# The rooms, lowest first: a room may use only rooms named before it. tools/check_includes.py has the
# exact table.
set(LITZ_ROOMS support symbolic graph frontend passes ir lowering schedule codegen toolchain cache
               runtime driver)

# litz_add_room(NAME
#   SOURCES file.cpp file.h ...       explicit list, relative to src/NAME
#   [DEPENDS room ...]                rooms below this one; their headers become usable
#   [LIBRARIES litz_fmt ...]          third-party targets, see LitzThirdParty.cmake
# )
#
# Makes the static library litz_NAME. Its objects also go into liblitz. A room named in DEPENDS whose
# folder does not exist is left out.

set_property(GLOBAL PROPERTY LITZ_ROOM_TARGETS "")

function(litz_room_targets out)
  set(targets "")
  foreach(room IN LISTS ARGN)
    if(TARGET litz_${room})
      list(APPEND targets litz_${room})
    else()
      message(STATUS "Room ${room} is not there yet")
    endif()
  endforeach()
  set(${out} "${targets}" PARENT_SCOPE)
endfunction()

function(litz_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "DEPENDS;LIBRARIES;SOURCES")
  if(room_UNPARSED_ARGUMENTS OR NOT room_SOURCES)
    message(FATAL_ERROR "litz_add_room(${name}): expected SOURCES, DEPENDS, LIBRARIES; "
                        "got ${room_UNPARSED_ARGUMENTS}")
  endif()

  set(target litz_${name})
  add_library(${target} STATIC ${room_SOURCES})
  # Only inline code in headers would otherwise need no linker language.
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src"
                                              "${PROJECT_SOURCE_DIR}/include")
  litz_room_targets(depends ${room_DEPENDS})
  target_link_libraries(${target} PUBLIC ${depends} ${room_LIBRARIES} PRIVATE litz_flags)
  set_property(GLOBAL APPEND PROPERTY LITZ_ROOM_TARGETS ${target})
endfunction()
