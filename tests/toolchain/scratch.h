// A directory for one test, and scripts that play the part of a compiler.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace litz {

class ScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "litz-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    scratch_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(scratch_, ignored);
  }

  std::string path(const std::string& name) const { return scratch_ + "/" + name; }

  std::string write_script(const std::string& name, const std::string& body) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << "#!/bin/sh\n" << body << "\n";
    ::chmod(path(name).c_str(), 0755);
    return path(name);
  }

  // A program that passes for g++ when asked for its version and otherwise runs `body`.
  std::string write_compiler(const std::string& name, const std::string& body) const {
    return write_script(
        name,
        "if [ \"$1\" = --version ]; then\n"
        "  echo 'g++ (Script) 1.0'; echo 'see the source for copying conditions'; exit 0\n"
        "fi\n" +
            body);
  }

  std::string scratch_;
};

}  // namespace litz
