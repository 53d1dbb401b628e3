#include "inspect/profile/plan_profile.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

double to_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string op_text(const Program& program, const PlanStep& step) {
  switch (step.kind) {
    case StepKind::barrier: return "barrier";
    case StepKind::update_wait: return "wait for commits";
    case StepKind::repeat: return "next iteration";
    case StepKind::join: return "end of cond";
    case StepKind::wait: return fmt::format("wait of {}", to_string(program.kind(step.first)));
    default: break;
  }
  const std::string_view kind = to_string(program.kind(step.first));
  if (step.count == 1) return std::string(kind);
  return fmt::format("{} and {} more", kind, step.count - 1);
}

std::string type_text(const Program& program, const PlanStep& step) {
  if (step.count == 0) return "";
  const auto operands = program.op_operands(step.first);
  if (row(program.kind(step.first)).traits->product && operands.size() == 2) {
    return program.type(operands[0]).to_string() + " x " + program.type(operands[1]).to_string();
  }
  return program.type(program.result(step.first)).to_string();
}

std::string rate_text(double rate) { return rate > 0 ? fmt::format("{:.2f}", rate / 1e9) : ""; }
std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string limit_text(double of_limit) { return of_limit > 0 ? share_text(of_limit) : ""; }

/// Returns a text such as "97.1 GB/s of 32.0 KiB, 21.9 of 32.0 MiB": the fastest rate, the slowest
/// rate and one between them, each multiplied by `share`.
std::string memory_text_of(const ChipLimits& limits, double share) {
  std::vector<MemoryRate> shown{limits.memory.front()};
  if (limits.memory.size() > 2) shown.push_back(limits.memory[limits.memory.size() / 2]);
  if (limits.memory.size() > 1) shown.push_back(limits.memory.back());
  std::string text;
  for (const MemoryRate& rate : shown) {
    text += fmt::format("{}{:.1f}{}", text.empty() ? "" : ", ", share * rate.bytes_per_s / 1e9,
                        text.empty() ? " GB/s" : "");
    if (rate.bytes > 0) text += " of " + bytes_text(rate.bytes);
  }
  return text;
}

std::string limits_text(const ChipLimits& limits, double share) {
  return fmt::format("{:.1f} GFLOP/s in f32, {:.1f} in bf16; {}", share * limits.f32_flops / 1e9,
                     share * limits.bf16_flops / 1e9, memory_text_of(limits, share));
}

std::string head_text(const Snapshot& job, const PlanProfile& profile) {
  const PlanTimes& times = profile.times;
  const ChipLimits& limits = profile.limits;
  std::string in_the_mean;
  if (limits.core_share < 1) {
    in_the_mean = fmt::format("limits on average during a run, because chips take turns: {}\n",
                              limits_text(limits, limits.core_share));
  }
  return fmt::format(
      "job {}, program {}: {}\n"
      "times: {} runs of {} chips, from the job's events; a run takes {} (median)\n"
      "limits of a chip: {}\n"
      "{}{}\n\n",
      visible(job.job), profile.program.number, visible(profile.program.site), times.runs,
      times.chips, time_text(to_seconds(times.median_run_ns)), limits_text(limits, 1), in_the_mean,
      limits.from);
}

Json step_json(const ProfiledStep& step, std::size_t number) {
  const auto limit = step.bound == Bound::nothing ? Json() : Json(step.of_limit);
  return {{"step", number},
          {"kind", to_string(step.kind)},
          {"op", step.op},
          {"type", step.type},
          {"at", step.place},
          {"count", step.times.count},
          {"median_s", to_seconds(step.times.median_ns)},
          {"total_s", to_seconds(step.times.total_ns)},
          {"waited_s", to_seconds(step.times.waited_ns)},
          {"share", step.share},
          {"flops", step.cost.flops},
          {"read_bytes", step.cost.read_bytes},
          {"written_bytes", step.cost.written_bytes},
          {"traffic_bytes", step.cost.traffic_bytes},
          {"flops_per_s", step.flops},
          {"bytes_per_s", step.bytes},
          {"of_limit", limit},
          {"bound", to_string(step.bound)}};
}

}  // namespace

double ChipLimits::flops(DType dtype) const {
  if (dtype == DType::bf16) return bf16_flops;
  return dtype == DType::f64 ? f32_flops / 2 : f32_flops;
}

double ChipLimits::bytes(std::int64_t step_bytes) const {
  double rate = memory.front().bytes_per_s;
  for (const MemoryRate& of : memory) {
    if (of.bytes <= step_bytes) rate = of.bytes_per_s;
  }
  return rate;
}

std::string_view to_string(Bound bound) noexcept {
  switch (bound) {
    case Bound::nothing: return "";
    case Bound::compute: return "compute";
    case Bound::memory: return "memory";
  }
  return "";
}

PlanProfile profile_of(const ProgramEntry& program, const Plan& plan, const PlanTimes& times,
                       const ChipLimits& limits) {
  PlanProfile profile{.program = program, .times = times, .limits = limits};
  const std::vector<StepCost> costs = step_costs(plan, mesh_of(plan));
  double least_s = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    ProfiledStep& row = profile.steps.emplace_back();
    row.kind = step.kind;
    row.op = op_text(plan.program, step);
    row.type = type_text(plan.program, step);
    if (step.count > 0) row.place = plan.program.loc(step.first);
    row.cost = costs[i];
    row.times = times.steps[i];
    row.share = ratio(to_seconds(row.times.total_ns), to_seconds(times.run_ns));
    const auto flops = static_cast<double>(row.cost.flops);
    const auto bytes = static_cast<double>(row.cost.bytes());
    const double compute_s = ratio(flops, limits.flops(row.cost.dtype));
    const double memory_s = ratio(bytes, limits.bytes(row.cost.bytes()));
    const double median_s = to_seconds(row.times.median_ns);
    row.flops = ratio(flops, median_s);
    row.bytes = ratio(bytes, median_s);
    row.of_limit = ratio(std::max(compute_s, memory_s), median_s);
    if (row.of_limit > 0) row.bound = compute_s > memory_s ? Bound::compute : Bound::memory;
    const auto count = static_cast<double>(row.times.count);
    profile.run_flops += flops * count;
    profile.run_bytes += bytes * count;
    least_s += std::max(compute_s, memory_s) * count;
  }
  const auto runs = static_cast<double>(times.runs);
  profile.run_flops = ratio(profile.run_flops, runs);
  profile.run_bytes = ratio(profile.run_bytes, runs);
  profile.run_s = ratio(to_seconds(times.run_ns), runs);
  profile.of_limit = ratio(least_s, limits.core_share * to_seconds(times.run_ns));
  return profile;
}

std::string profile_text(const Snapshot& job, const PlanProfile& profile) {
  Table table({columns::kStep, columns::kOp, columns::kType, columns::kAt, columns::kTimes,
               columns::kMedian, columns::kShare, columns::kGflops, columns::kGbytes,
               columns::kOfLimit, columns::kBound});
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfiledStep& step = profile.steps[i];
    const StepTimes& times = step.times;
    if (times.count == 0) {
      table.add({std::to_string(i), step.op, step.type, step.place, "0", "", "", "", "", "", ""});
      continue;
    }
    table.add({std::to_string(i), step.op, step.type, step.place, std::to_string(times.count),
               time_text(to_seconds(times.median_ns)), share_text(step.share),
               rate_text(step.flops), rate_text(step.bytes), limit_text(step.of_limit),
               std::string(to_string(step.bound))});
  }
  const double all = to_seconds(profile.times.run_ns);
  table.add({"", "between steps", "", "", "", "",
             share_text(ratio(to_seconds(profile.times.other_ns), all)), "", "", "", ""});
  table.add({"", "average run", "", "", std::to_string(profile.times.runs),
             time_text(profile.run_s), share_text(1),
             rate_text(ratio(profile.run_flops, profile.run_s)),
             rate_text(ratio(profile.run_bytes, profile.run_s)), limit_text(profile.of_limit), ""});
  std::int64_t waited_ns = 0;
  for (const ProfiledStep& step : profile.steps) waited_ns += step.times.waited_ns;
  std::string text = head_text(job, profile) + table.to_string();
  if (waited_ns > 0) {
    text += fmt::format("\nchips waited for others in {} of the time\n",
                        share_text(ratio(to_seconds(waited_ns), all)));
  }
  if (profile.of_limit > 1) {
    text += fmt::format("\nan average run takes less time than the limits allow: {}\n",
                        profile.limits.core_share < 1
                            ? "the limits are too low, or not all chips ran at once"
                            : "the limits are too low");
  }
  return text;
}

std::string profile_json(const Snapshot& job, const PlanProfile& profile) {
  const PlanTimes& times = profile.times;
  const ChipLimits& limits = profile.limits;
  Json json{{"schema", "weft.profile/1"},
            {"job", job.job},
            {"name", job.header.name},
            {"program", profile.program.number},
            {"fingerprint", profile.program.fingerprint},
            {"site", profile.program.site},
            {"chips", times.chips},
            {"runs", times.runs},
            {"median_run_s", to_seconds(times.median_run_ns)},
            {"total_s", to_seconds(times.run_ns)},
            {"other_s", to_seconds(times.other_ns)},
            {"flops", profile.run_flops},
            {"bytes", profile.run_bytes},
            {"of_limit", profile.of_limit},
            {"limits",
             {{"f32_flops_per_s", limits.f32_flops},
              {"bf16_flops_per_s", limits.bf16_flops},
              {"memory", Json::array()},
              {"core_share", limits.core_share},
              {"from", limits.from}}},
            {"steps", Json::array()}};
  for (const MemoryRate& rate : limits.memory) {
    json["limits"]["memory"].push_back({{"bytes", rate.bytes}, {"bytes_per_s", rate.bytes_per_s}});
  }
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    json["steps"].push_back(step_json(profile.steps[i], i));
  }
  return json_text(json);
}

}  // namespace weft
