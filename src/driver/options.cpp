#include "driver/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <type_traits>

#include "support/error.h"

namespace litz {
namespace {

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

std::string as_text(bool value) { return value ? "true" : "false"; }
std::string as_text(int64_t value) { return std::to_string(value); }
std::string as_text(double value) { return std::to_string(value); }
std::string as_text(const std::string& value) { return value; }

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
#define LITZ_OPTION_ROW(name, type, value, shapes_code, choices, doc) \
  {#name, type_name<type>(), OptionValue(type(value)), shapes_code, doc},
      LITZ_OPTIONS(LITZ_OPTION_ROW)
#undef LITZ_OPTION_ROW
  };
  return rows;
}

Options make_options(
    const std::map<std::string, OptionValue>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  Options options;
  const auto variable = [](std::string_view name) {
    std::string text = "LITZ_";
    for (char c : name) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
#define LITZ_OPTION_READ(name, type, ...)                                   \
  if (const std::optional<std::string> text = environment(variable(#name))) \
    options.name = parse<type>(#name, *text);                               \
  if (const auto found = given.find(#name); found != given.end())           \
    assign(options.name, #name, found->second);
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
