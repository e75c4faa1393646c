# cmake --install puts liblitz, the public headers, the tools and the package files for
# find_package(litz) in place (component "dev"); the Python extension is component "python".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(litz_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/litz")

install(TARGETS litz EXPORT litzTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/litz"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev FILES_MATCHING PATTERN "*.h")
foreach(tool litz litz-opt)
  if(TARGET ${tool})
    get_target_property(tool_type ${tool} TYPE)
    if(tool_type STREQUAL "EXECUTABLE")
      install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT dev)
    endif()
  endif()
endforeach()
install(EXPORT litzTargets NAMESPACE litz:: DESTINATION "${litz_package_dir}" COMPONENT dev)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/litzConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/litzConfig.cmake" INSTALL_DESTINATION "${litz_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/litzConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/litzConfig.cmake" "${PROJECT_BINARY_DIR}/litzConfigVersion.cmake"
  DESTINATION "${litz_package_dir}" COMPONENT dev)
