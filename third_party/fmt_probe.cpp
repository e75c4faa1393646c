// Configure-time check that third_party/fmt.cpp provides what {fmt}'s headers leave out.
#include <fmt/format.h>

#include <iterator>
#include <string>

int main(int argc, char**) {
  fmt::memory_buffer buffer;
  fmt::format_to(std::back_inserter(buffer), "{:>8} {:#x} {:.17g}", "text", argc, 1.5 * argc);
  std::string text =
      fmt::format("{} {:.3e} {}", fmt::to_string(buffer), 0.1f, fmt::join("abc", ","));
  fmt::print("{}\n", text);
  return 0;
}
