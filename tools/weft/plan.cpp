#include "tools/weft/plan.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "inspect/views/table.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "transport/format/file_bytes.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string file;
  bool json = false;
};

/// The ops of a step, each kind once, in the order in which they first come.
std::string ops_of(const Plan& plan, const PlanStep& step) {
  std::vector<std::string_view> kinds;
  for (OpId op = step.first; op < step.end(); ++op) {
    const std::string_view kind = to_string(plan.program.kind(op));
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

/// An input or an output, as both are shown.
struct Boundary {
  std::string name;
  std::string role;  ///< an input's kind; the input that an output updates, or ""
  TensorType global;
  TensorType chip;
  std::string sharding;
};

std::vector<Boundary> inputs_of(const Plan& plan, const Mesh& mesh) {
  std::vector<Boundary> rows;
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    const ProgramInput& input = plan.program.inputs[i];
    const TensorType& global = plan.input_types[i];
    rows.push_back({input.name, std::string(to_string(input.kind)), global,
                    plan.program.type(input.value),
                    input.sharding.to_string(mesh, global.shape.size())});
  }
  return rows;
}

std::vector<Boundary> outputs_of(const Plan& plan, const Mesh& mesh) {
  std::vector<Boundary> rows;
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    const ProgramOutput& output = plan.program.outputs[i];
    const TensorType& global = plan.output_types[i];
    const std::string updates =
        output.updates < 0 ? ""
                           : plan.program.inputs[static_cast<std::size_t>(output.updates)].name;
    rows.push_back({output.name, updates, global, plan.program.type(output.value),
                    output.sharding.to_string(mesh, global.shape.size())});
  }
  return rows;
}

std::int64_t chip_bytes(const std::vector<Boundary>& rows) {
  std::int64_t bytes = 0;
  for (const Boundary& row : rows) bytes += row.chip.bytes();
  return bytes;
}

Json to_json(const std::vector<Boundary>& rows, const char* role) {
  Json json = Json::array();
  for (const Boundary& row : rows) {
    json.push_back({{"name", row.name},
                    {role, row.role},
                    {"type", row.global.to_string()},
                    {"chip_type", row.chip.to_string()},
                    {"sharding", row.sharding}});
  }
  return json;
}

Json to_json(const Plan& plan, const Mesh& mesh) {
  Json json{{"mesh", {{"shape", mesh.shape()}, {"axes", mesh.axis_names()}}},
            {"fingerprint", fingerprint(plan.program).to_string()},
            {"ops", plan.program.num_ops()},
            {"inputs", to_json(inputs_of(plan, mesh), "kind")},
            {"outputs", to_json(outputs_of(plan, mesh), "updates")},
            {"temp_bytes", plan.temp_bytes},
            {"temp_bytes_bound", plan.temp_bytes_bound},
            {"shared_bytes", plan.shared_bytes},
            {"collectives", Json::array()},
            {"steps", Json::array()},
            {"held", plan.held}};
  for (const CollectiveSummary& collective : collectives(plan, mesh)) {
    json["collectives"].push_back({{"kind", to_string(collective.kind)},
                                   {"axes", collective.axes},
                                   {"bytes", collective.bytes},
                                   {"of", collective.value}});
  }
  for (const PlanStep& step : plan.steps) {
    json["steps"].push_back({{"kind", to_string(step.kind)},
                             {"first_op", step.first},
                             {"ops", step.count},
                             {"of", ops_of(plan, step)}});
  }
  return json;
}

void print(const Table& table) {
  table.print();
  fmt::print("\n");
}

void print(const char* heading, const char* role, const std::vector<Boundary>& rows) {
  Table table({{heading}, {role}, {"type"}, {"on a chip"}, {"sharding"}});
  for (const Boundary& row : rows) {
    table.add({row.name, row.role, row.global.to_string(), row.chip.to_string(), row.sharding});
  }
  print(table);
}

void print(const Plan& plan, const Mesh& mesh) {
  const auto inputs = inputs_of(plan, mesh);
  const auto outputs = outputs_of(plan, mesh);
  fmt::print("mesh {}\n{}\n", mesh.to_string(), mesh.grid());
  print("inputs", "kind", inputs);
  print("outputs", "updates", outputs);
  Table bytes({{"on a chip"}, {"bytes", Align::right}, {""}});
  bytes.add({"inputs", std::to_string(chip_bytes(inputs)), ""});
  bytes.add({"outputs", std::to_string(chip_bytes(outputs)), ""});
  bytes.add({"temporaries", std::to_string(plan.temp_bytes),
             fmt::format("no plan needs fewer than {}", plan.temp_bytes_bound)});
  if (plan.shared_bytes > 0) {
    bytes.add({"shared", std::to_string(plan.shared_bytes), "once for a group of chips"});
  }
  print(bytes);
  Table table({{"collectives"}, {"axes"}, {"bytes", Align::right}, {"of"}});
  for (const CollectiveSummary& collective : collectives(plan, mesh)) {
    table.add({std::string(to_string(collective.kind)),
               fmt::format("{}", fmt::join(collective.axes, ",")), std::to_string(collective.bytes),
               collective.value});
  }
  print(table);
  Table steps({{"steps"}, {"kind"}, {"ops", Align::right}, {"of"}});
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    steps.add({std::to_string(i), std::string(to_string(step.kind)), std::to_string(step.count),
               ops_of(plan, step)});
  }
  print(steps);
  for (const std::uint32_t output : plan.held) {
    fmt::print("output \"{}\" is held until the update_wait\n", plan.program.outputs[output].name);
  }
}

}  // namespace

void add_plan(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "show what a dumped plan runs on its mesh");
  command->add_option("file", options->file, "a plan file, as WEFT_DUMP_TO writes it")->required();
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &code] {
    const Plan plan = decode_plan(read_file_bytes(options->file, kPlanBytesMax));
    const Mesh mesh(plan.mesh_shape, plan.axis_names);
    verify(plan, mesh);
    if (options->json) {
      fmt::print("{}\n", to_json(plan, mesh).dump(1, ' ', false, Json::error_handler_t::replace));
    } else {
      print(plan, mesh);
    }
    code = 0;
  });
}

}  // namespace weft
