#include "driver/reproducer.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string_view>

#include "driver/environment.h"
#include "graph/print_graph.h"

namespace litz {
namespace {

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_-+=:,./";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
}

// As the shell takes it.
std::string shell_word(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// Those that differ from the defaults.
std::string option_flags(const Options& options) {
  std::string flags;
  const Options defaults;
  for (const OptionRow& row : option_rows()) {
    const std::string value = option_text(options, row.name);
    if (value == option_text(defaults, row.name)) continue;
    flags += " --option " + shell_word(std::string(row.name) + "=" + value);
  }
  return flags;
}

// Empty where the graph is so broken that it cannot be printed.
std::string graph_text(const Graph& graph) {
  try {
    return to_string(graph);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

std::string reproduce_hint(const Graph& graph, const Options& options) {
  const std::string text = graph_text(graph);
  std::string folder = temporary_folder() + "/litz-reproducer-XXXXXX";
  if (text.empty() || mkdtemp(folder.data()) == nullptr) return {};
  const std::string path = folder + "/graph.litz";
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return {};
  return "; reproduce it with: litz-opt --compile" + option_flags(options) + " " + shell_word(path);
}

}  // namespace litz
