// Library ops that run through Python: for argument types that torch's C interface does not carry,
// and to raise the exception that eager raises.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "runtime/torch_host.h"
#include "tensor_access.h"

namespace litz {

// The ops of one run. A Python exception stays in `raised` for the caller of the run.
class PythonOpCalls : public PythonOps {
 public:
  // `device` is where the memory of tensors without a handle is.
  PythonOpCalls(const TorchApi& api, const TorchDevice& device, const TensorAccess& access,
                const std::vector<nanobind::object>& callables)
      : api_(api), device_(device), access_(access), callables_(callables) {}

  int call(int32_t op, const LitzValue* args, int32_t num_args, LitzValue* results,
           int32_t num_results, std::string* message) override;

  // Inputs that the run needs no more leave this tuple, which nobody else has.
  void own(const nanobind::object& inputs) { owned_ = inputs.ptr(); }
  bool drops_inputs() const override { return owned_ != nullptr; }
  void drop_input(int32_t input) override;

  // The exception that ended the run, or an invalid object. Needs the GIL.
  nanobind::object& raised() { return raised_; }

 private:
  nanobind::object to_python(const LitzValue& value) const;
  void deliver(nanobind::handle value, LitzValue* results, int32_t num_results,
               int32_t* next) const;

  const TorchApi& api_;
  const TorchDevice device_;
  const TensorAccess& access_;
  const std::vector<nanobind::object>& callables_;
  nanobind::object raised_;
  PyObject* owned_ = nullptr;
};

}  // namespace litz
