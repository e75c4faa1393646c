// The schemas that a graph's calls refer to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/op_schema.h"

namespace litz {

// The built-in table of ATen schemas (generated from torch by tools/generate_schemas.py) plus those
// declared by a front end. A declared schema takes the place of the built-in one of the same name,
// so that Litz follows the torch that is running where it differs from the one of the table.
class SchemaRegistry {
 public:
  SchemaRegistry() = default;
  SchemaRegistry(const SchemaRegistry&) = delete;
  SchemaRegistry& operator=(const SchemaRegistry&) = delete;

  // Looks up "aten::add.Tensor"; nullptr where unknown. The pointer stays valid as long as the
  // registry, also when the name is declared anew.
  const OpSchema* find(std::string_view full_name) const;
  // Returns the known schema where the text is the same. Throws UserError where it is no schema.
  const OpSchema& declare(std::string_view schema_text);
  // True where the schema is the text of the built-in table.
  static bool is_builtin_text(const OpSchema& schema);

 private:
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Entry {
    std::string text;
    const OpSchema* schema = nullptr;
  };
  const OpSchema& insert(std::string_view full_name, std::string_view text, OpSchema schema) const;

  mutable std::vector<std::unique_ptr<OpSchema>> schemas_;
  mutable std::unordered_map<std::string, Entry, StringHash, std::equal_to<>> by_name_;
};

// One row of the built-in table.
struct BuiltinSchema {
  std::string_view text;
  uint8_t tags;
  std::string_view full_name() const { return text.substr(0, text.find('(')); }
};

// The built-in table, sorted by full name.
std::span<const BuiltinSchema> builtin_schemas();

}  // namespace litz
