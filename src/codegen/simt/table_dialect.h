// The dialect of a backend outside Litz: the tables of litz/backend.h, with everything that one
// C-like language has in common with the next added. Kernels are in scalars alone.
#pragma once

#include <litz/backend.h>

#include <string>

#include "codegen/simt/simt_dialect.h"
#include "codegen/simt/thread_plan.h"

namespace litz {

class TableDialect final : public SimtDialect {
 public:
  // The table must outlive this. `without`: dtypes of the table that this device lacks, separated
  // by spaces.
  TableDialect(const LitzDialect& table, std::string without);

  std::string header() const override;
  std::string helpers() const override;
  std::string scalar_types() const override;
  bool has_type(DType dtype) const override;
  std::string fragment(std::string_view name, prelude::Shape shape) const override;
  std::string conversion(std::string_view name, prelude::Shape from, DType to) const override;
  bool takes_common(std::string_view name, DType dtype) const override;
  std::string pack() const override;
  std::string pack_access(std::string_view name, std::string_view half,
                          prelude::Shape shape) const override;
  std::string atomic_helper() const override;
  std::string atomic(const std::string& own, const std::string& combine, const std::string& load,
                     const std::string& store, const std::string& value,
                     const std::string& memory) const override;
  std::string missing_atomic(DType memory) const override;

 private:
  std::string type_text(DType dtype) const;
  std::string row_text(std::string_view name, DType dtype) const;

  const LitzDialect& table_;
  std::string without_;
};

// The backend's heuristics, and its choose_threads for a device, which may be NULL.
ThreadHeuristics read_heuristics(const LitzBackend& backend, const LitzBackendDevice* device);

}  // namespace litz
