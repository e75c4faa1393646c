// litz._core.compile_graph, Program, option_table and mode_table: the driver.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "driver/cached_graphs.h"
#include "driver/compile.h"
#include "driver/environment.h"
#include "driver/options.h"
#include "graph_builder.h"
#include "ir/print_program.h"
#include "lowering/lowering.h"
#include "options_from_python.h"
#include "support/error.h"
#include "torch_door.h"

namespace nb = nanobind;

namespace litz {
namespace {

std::map<std::string, OptionValue> read_options(const nb::dict& given) {
  std::map<std::string, OptionValue> options;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::bool_>(value)) {
      options[name] = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::int_>(value)) {
      options[name] = nb::cast<int64_t>(value);
    } else if (nb::isinstance<nb::float_>(value)) {
      options[name] = nb::cast<double>(value);
    } else if (nb::isinstance<nb::str>(value)) {
      options[name] = nb::cast<std::string>(value);
    } else {
      throw UserError("option " + name + " is neither a bool, a number nor a string");
    }
  }
  return options;
}

}  // namespace

Options options_from_python(const nb::dict& given) {
  return make_options(read_options(given), environment_variable);
}

namespace {

// Called without the GIL. The object lives as long as the function, which Python owns.
std::function<Result<double>(const std::string&)> time_by(const nb::object& timer) {
  if (timer.is_none()) return {};
  return [timer](const std::string& call) -> Result<double> {
    const nb::gil_scoped_acquire acquired;
    try {
      return nb::cast<double>(timer(call));
    } catch (const std::exception& error) {
      return Unsupported{error.what()};
    }
  };
}

// (path, report as JSON, warnings, program, why it is left to eager, whether its kernels are the
// backend's): a path, a program to be
// interpreted, or a reason.
nb::tuple compile(GraphBuilder& builder, const nb::dict& given, HostPaths& paths) {
  const Options options = options_from_python(given);
  std::string unknown_variables = unknown_variables_warning(environment_names());
  Compiled compiled;
  {
    nb::gil_scoped_release released;
    compiled = compile_graph(builder.graph(), options, paths);
  }
  if (!unknown_variables.empty()) compiled.warnings.push_back(std::move(unknown_variables));
  // nanobind knows no pointers to constants; nothing in Python changes a program.
  const auto program = std::const_pointer_cast<Program>(compiled.program);
  return nb::make_tuple(compiled.path, compiled.info, compiled.warnings, program,
                        compiled.left_to_eager, compiled.on_backend);
}

std::string option_table() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OptionRow& row : option_rows()) {
    nlohmann::ordered_json value;
    std::visit([&](const auto& v) { value = v; }, row.value);
    rows.push_back({{"name", row.name},
                    {"type", row.type},
                    {"default", value},
                    {"doc", row.doc},
                    {"shapes_code", row.shapes_code},
                    {"variable", row.variable},
                    {"valid", row.valid.text()}});
  }
  return rows.dump();
}

std::string lowering_table() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LoweringFamily& family : lowering_families()) {
    for (const LoweringRow& row : family.rows) {
      rows.push_back(
          {{"op", row.op}, {"family", family.name}, {"library", is_library_lowering(row)}});
    }
  }
  return rows.dump();
}

// torch.compile's modes. CUDA graphs mean nothing on a CPU.
std::string mode_table() {
  const nlohmann::ordered_json none = nlohmann::ordered_json::object();
  const nlohmann::ordered_json cuda_graphs = {{"cuda_graphs", true}};
  const nlohmann::ordered_json modes = {
      {"default", none},
      {"reduce-overhead", cuda_graphs},
      {"max-autotune", {{"cuda_graphs", true}, {"autotune", true}}},
      {"max-autotune-no-cudagraphs", {{"autotune", true}}}};
  return modes.dump();
}

}  // namespace

void bind_compiler(nb::module_& m) {
  nb::class_<Program>(m, "Program", "A loop-level program that could not be compiled.")
      .def("__str__", [](const Program& program) { return to_string(program); });
  nb::class_<DeviceTarget>(m, "DeviceTarget", "The device that a graph is compiled for.")
      .def(
          "__init__",
          [](DeviceTarget* self, std::string kind, std::string arch, int32_t multiprocessors,
             std::string name, int32_t number) {
            new (self) DeviceTarget{std::move(kind), std::move(arch), multiprocessors,
                                    std::move(name), number};
          },
          nb::arg("kind") = "cpu", nb::arg("arch") = "", nb::arg("multiprocessors") = 0,
          nb::arg("name") = "", nb::arg("number") = 0)
      .def_ro("kind", &DeviceTarget::kind, "\"cpu\" or \"cuda\".")
      .def_ro("arch", &DeviceTarget::arch, "Of a CUDA device: \"sm_90\".")
      .def_ro("multiprocessors", &DeviceTarget::multiprocessors)
      .def_ro("name", &DeviceTarget::name, "Of a CUDA device: \"NVIDIA H200\".")
      .def_ro("number", &DeviceTarget::number, "Of a CUDA device: 1 of \"cuda:1\".");
  nb::class_<BackendPlugin>(m, "BackendPlugin", "A device backend's library, loaded.")
      .def_static(
          "load",
          [](const std::string& path) {
            return std::const_pointer_cast<BackendPlugin>(BackendPlugin::load(path));
          },
          nb::arg("path"), "Raises LitzUserError where it is none, or one for another ABI version.")
      .def_prop_ro("name", &BackendPlugin::name)
      .def_prop_ro("path", &BackendPlugin::path)
      .def(
          "open",
          [](std::shared_ptr<BackendPlugin> plugin, int32_t number) {
            const nb::gil_scoped_release released;
            return BackendDevice::open(std::move(plugin), number);
          },
          nb::arg("number") = 0, "A device. Raises LitzUserError with the backend's reason.");
  nb::class_<BackendDevice>(m, "BackendDevice", "A device of a backend, opened.")
      .def_prop_ro("name", &BackendDevice::name)
      .def_prop_ro("description",
                   [](const BackendDevice& device) { return device.info().description; })
      .def_prop_ro("shares_memory",
                   [](const BackendDevice& device) { return device.info().shares_memory != 0; });
  nb::class_<HostPaths>(m, "HostPaths",
                        "Where compilers may be on this machine, and the device of the graph.")
      .def(
          "__init__",
          [](HostPaths* self, std::vector<std::string> zig_folders,
             std::vector<std::string> nvrtc_folders, const DeviceTarget& device,
             std::shared_ptr<BackendDevice> backend, std::string python, std::string triton_worker,
             std::string triton_version, const nb::object& library_timer,
             std::string torch_version) {
            new (self)
                HostPaths{std::move(zig_folders),
                          std::move(nvrtc_folders),
                          device,
                          std::move(backend),
                          {std::move(python), std::move(triton_worker), std::move(triton_version)},
                          time_by(library_timer),
                          torch_version.empty() ? nullptr : TorchDoor::get().environment,
                          std::move(torch_version)};
          },
          nb::arg("zig_folders") = std::vector<std::string>(),
          nb::arg("nvrtc_folders") = std::vector<std::string>(), nb::arg("device") = DeviceTarget(),
          nb::arg("backend").none() = nb::none(), nb::arg("python") = "",
          nb::arg("triton_worker") = "", nb::arg("triton_version") = "",
          nb::arg("library_timer").none() = nb::none(), nb::arg("torch_version") = "",
          "`triton_version` is empty where there is no Triton; else `python` runs `triton_worker`, "
          "which imports it. `library_timer` gives the seconds of a library call, described in "
          "JSON. `torch_version`: of the torch of this process, which kernels for a CPU are timed "
          "with.");
  m.def("compile_graph", &compile, nb::arg("builder"), nb::arg("options"),
        nb::arg("paths") = HostPaths(),
        "Compiles the graph: (path of the library, report as JSON, warnings, program). Where there "
        "is no library the path is empty, and the program is what CompiledGraph interprets.");
  m.def(
      "cached_graphs",
      [](const nb::dict& given) {
        nb::list graphs;
        for (const CachedGraph& g : cached_graphs(options_from_python(given)))
          graphs.append(nb::make_tuple(g.digest, g.dialect, g.bytes, g.last_used_ns, g.graph));
        return graphs;
      },
      nb::arg("options"),
      "(digest, dialect, bytes, nanoseconds since 1970, graph) of each graph in the cache.");
  m.def(
      "clear_cached_graphs",
      [](const nb::dict& given, const std::string& dialect) {
        return clear_cached_graphs(options_from_python(given), dialect);
      },
      nb::arg("options"), nb::arg("dialect") = "", "How many graphs were removed.");
  m.def("mode_table", &mode_table, "The modes as JSON: for each the options that it sets.");
  m.def("lowering_table", &lowering_table,
        "The ops that Litz lowers, as JSON: op, family, whether it is a library call on purpose.");
  m.def("option_table", &option_table,
        "The options as JSON: name, type, default, doc, shapes_code, variable, valid.");
  m.def(
      "option_text",
      [](const nb::dict& given, const std::string& name) {
        return option_text(options_from_python(given), name);
      },
      nb::arg("options"), nb::arg("name"),
      "The value of one option as text: what is given, in the environment, or the default.");
  m.def(
      "check_options", [](const nb::dict& given) { options_from_python(given); },
      nb::arg("options"), "Raises LitzUserError for a name or a value that is not valid.");
}

}  // namespace litz
