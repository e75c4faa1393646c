#include "graph/schema_registry.h"

#include <algorithm>

namespace litz {
namespace {

constexpr BuiltinSchema kBuiltin[] = {
#include "graph/aten_schemas.inc"
};

const BuiltinSchema* find_builtin(std::string_view full_name) {
  const auto* row = std::lower_bound(
      std::begin(kBuiltin), std::end(kBuiltin), full_name,
      [](const BuiltinSchema& row, std::string_view name) { return row.full_name() < name; });
  return row != std::end(kBuiltin) && row->full_name() == full_name ? row : nullptr;
}

}  // namespace

std::span<const BuiltinSchema> builtin_schemas() { return kBuiltin; }

const OpSchema* SchemaRegistry::find(std::string_view full_name) const {
  if (auto known = by_name_.find(full_name); known != by_name_.end()) return known->second.schema;
  const BuiltinSchema* row = find_builtin(full_name);
  if (row == nullptr) return nullptr;
  OpSchema schema = parse_schema(row->text);
  schema.tags = row->tags;
  schema.is_builtin = true;
  return &insert(full_name, row->text, std::move(schema));
}

const OpSchema& SchemaRegistry::declare(std::string_view schema_text) {
  const std::string_view full_name = schema_text.substr(0, schema_text.find('('));
  if (const OpSchema* known = find(full_name)) {
    if (by_name_.find(full_name)->second.text == schema_text) return *known;
  }
  OpSchema schema = parse_schema(schema_text);
  const std::string name = schema.full_name();
  if (const BuiltinSchema* row = find_builtin(name)) {
    schema.tags = row->tags;
    schema.is_builtin = true;
  }
  return insert(name, schema_text, std::move(schema));
}

bool SchemaRegistry::is_builtin_text(const OpSchema& schema) {
  const BuiltinSchema* row = find_builtin(schema.full_name());
  return row != nullptr && row->text == to_string(schema);
}

const OpSchema& SchemaRegistry::insert(std::string_view full_name, std::string_view text,
                                       OpSchema schema) const {
  schemas_.push_back(std::make_unique<OpSchema>(std::move(schema)));
  by_name_.insert_or_assign(std::string(full_name),
                            Entry{std::string(text), schemas_.back().get()});
  return *schemas_.back();
}

}  // namespace litz
