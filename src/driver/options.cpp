#include "driver/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "support/error.h"
#include "support/near_words.h"

namespace litz {
namespace {

constexpr std::string_view kPrefix = "LITZ_";
// Read by the script ./run.
constexpr std::string_view kScriptVariables[] = {"LITZ_PYTHON", "LITZ_VENV"};

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

template <class T>
std::string_view type_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, int64_t>) return "int";
  if constexpr (std::is_same_v<T, double>) return "float";
  return "str";
}

std::string names() {
  std::string list;
  for (const OptionRow& row : option_rows())
    list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

// 300, 0.5 and 1e+06 as 1000000.
std::string number_text(double value) {
  char buffer[32];
  char* const end =
      value == std::floor(value) && std::abs(value) < 1e15
          ? std::to_chars(buffer, buffer + sizeof(buffer), static_cast<int64_t>(value)).ptr
          : std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

UserError unknown_option(const std::string& name) {
  return UserError("unknown option '" + name + "'; options are " + names());
}

template <class T>
T parse(std::string_view name, const std::string& text) {
  const auto refuse = [&] {
    return UserError("option " + std::string(name) + " takes " + std::string(type_name<T>()) +
                     ", not '" + text + "'");
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "1" || text == "true" || text == "on") return true;
    if (text == "0" || text == "false" || text == "off" || text.empty()) return false;
    throw refuse();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw refuse();
    return value;
  }
}

template <class T>
void assign(T& field, std::string_view name, const OptionValue& value) {
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      field = static_cast<double>(*integer);
      return;
    }
  }
  const T* held = std::get_if<T>(&value);
  if (held == nullptr)
    throw UserError("option " + std::string(name) + " takes " + std::string(type_name<T>()));
  field = *held;
}

void check_range(std::string_view name, const ValidValues& valid, double value) {
  // NaN is in no range.
  if (valid.text().empty() || (value >= valid.least && value <= valid.most)) return;
  throw UserError("option " + std::string(name) + " is " + number_text(value) + ", not " +
                  valid.text());
}
void check_range(std::string_view, const ValidValues&, const std::string&) {}

std::string as_text(bool value) { return value ? "true" : "false"; }
std::string as_text(int64_t value) { return std::to_string(value); }
std::string as_text(double value) { return number_text(value); }
std::string as_text(const std::string& value) { return value; }

}  // namespace

std::string ValidValues::text() const {
  if (std::isinf(most)) return {};
  return number_text(least) + " to " + number_text(most);
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
#define LITZ_OPTION_ROW(name, type, value, shapes_code, variable, valid, doc) \
  {#name, type_name<type>(), OptionValue(type(value)), shapes_code, variable, valid, doc},
      LITZ_OPTIONS(LITZ_OPTION_ROW)
#undef LITZ_OPTION_ROW
  };
  return rows;
}

Options make_options(
    const std::map<std::string, OptionValue>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  Options options;
#define LITZ_OPTION_READ(name, type, value, shapes_code, variable, valid, doc) \
  if (const std::optional<std::string> text = environment(variable))           \
    options.name = parse<type>(#name, *text);                                  \
  if (const auto found = given.find(#name); found != given.end())              \
    assign(options.name, #name, found->second);                                \
  check_range(#name, valid, options.name);
  LITZ_OPTIONS(LITZ_OPTION_READ)
#undef LITZ_OPTION_READ
  for (const auto& [name, value] : given) {
    const bool known = std::any_of(option_rows().begin(), option_rows().end(),
                                   [&, n = name](const OptionRow& row) { return row.name == n; });
    if (!known) throw unknown_option(name);
  }
  return options;
}

OptionValue parse_option(const std::string& name, const std::string& text) {
#define LITZ_OPTION_PARSE(field, type, ...) \
  if (name == #field) return parse<type>(#field, text);
  LITZ_OPTIONS(LITZ_OPTION_PARSE)
#undef LITZ_OPTION_PARSE
  throw unknown_option(name);
}

std::string option_text(const Options& options, std::string_view name) {
#define LITZ_OPTION_TEXT(field, ...) \
  if (name == #field) return as_text(options.field);
  LITZ_OPTIONS(LITZ_OPTION_TEXT)
#undef LITZ_OPTION_TEXT
  LITZ_CHECK(false, "no option " + std::string(name));
}

std::string unknown_variables_warning(const std::vector<std::string>& names) {
  // Under the names of options too: who writes LITZ_TRACE means the option trace.
  std::vector<std::string> spellings;
  std::vector<std::string_view> variables;
  for (const OptionRow& row : option_rows()) {
    for (std::string spelling :
         {std::string(row.variable.substr(kPrefix.size())), upper_case(row.name)}) {
      spellings.push_back(std::move(spelling));
      variables.push_back(row.variable);
    }
  }
  const std::vector<std::string_view> known(spellings.begin(), spellings.end());
  std::string list;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || name.starts_with("LITZ_TEST_")) continue;
    if (std::find(std::begin(kScriptVariables), std::end(kScriptVariables), name) !=
            std::end(kScriptVariables) ||
        std::find(variables.begin(), variables.end(), name) != variables.end()) {
      continue;
    }
    std::vector<std::string_view> near;
    for (std::string_view spelling :
         near_words(std::string_view(name).substr(kPrefix.size()), known)) {
      const auto at = std::find(known.begin(), known.end(), spelling) - known.begin();
      const std::string_view variable = variables[static_cast<size_t>(at)];
      if (std::find(near.begin(), near.end(), variable) == near.end()) near.push_back(variable);
    }
    list += (list.empty() ? "" : ", ") + name;
    for (size_t i = 0; i < near.size(); ++i)
      list += (i == 0 ? " (did you mean " : " or ") + std::string(near[i]);
    if (!near.empty()) list += "?)";
  }
  if (list.empty()) return "";
  return "the environment sets variables that Litz does not know; " + list +
         "; litz.options() lists those that it reads";
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) entries.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

}  // namespace litz
