# litz_add_test(NAME LABEL
#   SOURCES file.cpp ...
#   [DEPENDS room ...]                rooms under test
#   [LIBRARIES target ...]            further targets
#   [ARGS ...]                        command line of the test program
#   [TIMEOUT seconds]                 120 by default
# )
#
# Makes the GoogleTest program NAME and one CTest entry of the same name with that label. One entry a
# program, not one a case: starting a process a case is what makes large suites slow.

set(LITZ_TEST_LABELS unit text error e2e fuzz gpu packaging)

if(LITZ_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

function(litz_add_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "TIMEOUT" "SOURCES;DEPENDS;LIBRARIES;ARGS")
  if(NOT label IN_LIST LITZ_TEST_LABELS)
    message(FATAL_ERROR "litz_add_test(${name}): label ${label} is none of ${LITZ_TEST_LABELS}")
  endif()
  if(test_UNPARSED_ARGUMENTS OR NOT test_SOURCES)
    message(FATAL_ERROR "litz_add_test(${name}): expected SOURCES, DEPENDS, LIBRARIES, ARGS, "
                        "TIMEOUT; got ${test_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()

  add_executable(${name} ${test_SOURCES})
  litz_room_targets(depends ${test_DEPENDS})
  target_link_libraries(${name} PRIVATE ${depends} ${test_LIBRARIES} GTest::gtest_main litz_flags)
  add_test(NAME ${name} COMMAND ${name} ${test_ARGS}
           WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${test_TIMEOUT})
endfunction()
