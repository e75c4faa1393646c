// Every option of a compilation, in one table from which the Options struct, the Python dictionary,
// the environment variables and the docs are made.
//
// An option's environment variable is LITZ_ and its name in capitals; what is given explicitly wins
// over the environment. Options marked as shaping code enter the cache key, and no others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace litz {

// X(name, type, default, shapes code, choices, doc)
#define LITZ_OPTIONS(X)                                                                          \
  X(target, std::string, "native", true, "",                                                     \
    "CPU to generate code for: native, baseline, avx2, avx512, with +bf16 or +vnni")             \
  X(compiler, std::string, "", false, "",                                                        \
    "C++ compiler to use, a name or a path; empty takes the best one found")                     \
  X(optimization_level, int64_t, 2, true, "", "-O level of the C++ compiler, 0 to 3")            \
  X(jobs, int64_t, 0, true, "", "translation units compiled at once; 0 is one per processor")    \
  X(compile_time_limit, double, 300.0, false, "", "seconds after which a compiler is stopped")   \
  X(cache, bool, true, false, "", "keep compiled graphs on disk")                                \
  X(cache_dir, std::string, "", false, "",                                                       \
    "folder of the cache; empty is litz in the user's cache folder")                             \
  X(cache_size_mb, int64_t, 4096, false, "", "bound on the cache's size")                        \
  X(trace, std::string, "", false, "",                                                           \
    "folder into which every stage of each compilation is written; empty writes none")           \
  X(verify, bool, false, false, "", "check the invariants of every intermediate form")           \
  X(interpret, bool, false, false, "",                                                           \
    "run graphs by the reference interpreter instead of compiling them")                         \
  X(inline_producers, bool, true, true, "", "compute cheap values where they are used")          \
  X(fuse, bool, true, true, "", "let operations share kernels")                                  \
  X(reuse_memory, bool, true, true, "", "let intermediates share memory")                        \
  X(max_kernel_nodes, int64_t, 400, true, "",                                                    \
    "scalar operations of one kernel after which fusion stops")                                  \
  X(disable_passes, std::string, "", true, "", "graph passes to leave out, separated by commas") \
  X(fallback_ops, std::string, "", true, "",                                                     \
    "ops to run in the library, separated by commas: aten::sum or aten::sum.default")            \
  X(fallback_everything, bool, false, true, "", "run every op in the library")

using OptionValue = std::variant<bool, int64_t, double, std::string>;

struct Options {
#define LITZ_OPTION_FIELD(name, type, value, ...) type name = value;
  LITZ_OPTIONS(LITZ_OPTION_FIELD)
#undef LITZ_OPTION_FIELD
};

struct OptionRow {
  std::string_view name;
  std::string_view type;  // "bool", "int", "float", "str"
  OptionValue value;      // the default
  bool shapes_code;
  std::string_view doc;
};
const std::vector<OptionRow>& option_rows();

// The defaults, over them what the environment says, over that what is given. Throws UserError,
// naming the valid names or the type, for an unknown name or a value of another type.
Options make_options(
    const std::map<std::string, OptionValue>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

// A value of the option's type from text, as an environment variable or a command line has it.
// Throws UserError as make_options does.
OptionValue parse_option(const std::string& name, const std::string& text);

// The value of an option by name, as text for a cache key or a message.
std::string option_text(const Options& options, std::string_view name);

// The entries of a comma-separated option.
std::vector<std::string> split_list(std::string_view text);

}  // namespace litz
