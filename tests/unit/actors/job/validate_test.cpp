/// Tests that contradictions between options are found before anything starts, and that each
/// message names the field, the value and the remedy.
#include "actors/job/validate.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>

#include "actors/job/validate_run.hpp"
#include "chips/cpu/cpu_target.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::validate_test {
namespace {

using testing::expect_error;

void expect_refused(Errc code, std::initializer_list<std::string_view> words,
                    const TrainerOptions& options) {
  expect_error(code, words, [&] { validate(options, "app"); });
}

JobSpec spec(const TrainerOptions& options) { return validate(options, "app"); }

TEST(Validate, DefaultsAreOneWorkerWithOneChip) {
  const JobSpec job = spec({});
  EXPECT_EQ(job.name, "app");
  EXPECT_EQ(job.num_workers, 1);
  EXPECT_EQ(job.chips_per_worker, 1);
  EXPECT_EQ(*job.mesh, Mesh({1}, {"data"}));
}

TEST(Validate, MakesTheMeshOfTheFeatureTable) {
  EXPECT_EQ(*spec({.scaling = {.num_workers = 4, .chips_per_worker = 4}}).mesh,
            Mesh({4, 4}, {"data", "model"}));
  EXPECT_EQ(*spec({.scaling = {.num_workers = 2, .chips_per_worker = 8}}).mesh,
            Mesh({2, 8}, {"data", "model"}));
  EXPECT_EQ(*spec({.scaling = {.num_workers = 1, .chips_per_worker = 8}}).mesh,
            Mesh({8}, {"data"}));
}

TEST(Validate, TakesChipsPerWorkerFromTheTopology) {
  const JobSpec job = spec({.scaling = {.num_workers = 4, .topology = "4x4"}});
  EXPECT_EQ(job.chips_per_worker, 4);
  EXPECT_EQ(*job.mesh, Mesh({4, 4}, {"data", "model"}));
}

TEST(Validate, NoWorkersMeansThisProcess) {
  const JobSpec job = spec({.scaling = {.num_workers = 0, .chips_per_worker = 16}});
  EXPECT_EQ(job.num_workers, 0);
  EXPECT_EQ(job.num_joins(), 1);
  EXPECT_EQ(job.mesh->size(), 16);
}

TEST(Validate, AnEagerJobHasTheAxesOfItsMeshOnOneChip) {
  const JobSpec job =
      spec({.scaling = {.num_workers = 4, .topology = "4x4"}, .run = {.debug = DebugMode::eager}});
  EXPECT_TRUE(job.is_eager);
  EXPECT_EQ(job.num_workers, 1);
  EXPECT_EQ(job.num_chips(), 1);
  EXPECT_EQ(*job.mesh, Mesh({1, 1}, {"data", "model"}));
  const JobSpec here = spec({.scaling = {.num_workers = 0}, .run = {.debug = DebugMode::eager}});
  EXPECT_EQ(here.num_workers, 0);
  EXPECT_FALSE(spec({}).is_eager);
}

TEST(Validate, TakesCpusAloneAsChipsAndBesideChipsAsCores) {
  const JobSpec alone = spec({.scaling = {.num_workers = 2, .resources_per_worker = {{"CPU", 8}}}});
  EXPECT_EQ(alone.num_chips(), 16);
  EXPECT_EQ(alone.cpus_per_worker, 0);
  const JobSpec both =
      spec({.scaling = {.chips_per_worker = 4, .resources_per_worker = {{"CPU", 8}}}});
  EXPECT_EQ(both.chips_per_worker, 4);
  EXPECT_EQ(both.cpus_per_worker, 8);
}

TEST(Validate, RefusesADeviceThatIsntThere) {
  expect_refused(Errc::unavailable, {"resources_per_worker[\"TPU\"]", "looked for a TPU"},
                 {.scaling = {.num_workers = 2, .resources_per_worker = {{"CPU", 8}, {"TPU", 4}}}});
}

TEST(Validate, TakesTheOrderOfTheChips) {
  const JobSpec job = spec({.scaling = {.num_workers = 2, .chips_per_worker = 2},
                            .backend = {.spmd = {.device_ids = {3, 2, 1, 0}}}});
  EXPECT_EQ(*job.mesh, Mesh({2, 2}, {"data", "model"}, {3, 2, 1, 0}));
  expect_refused(Errc::mesh_mismatch, {"device_ids has 3 entries", "4 chips"},
                 {.scaling = {.num_workers = 2, .chips_per_worker = 2},
                  .backend = {.spmd = {.device_ids = {2, 1, 0}}}});
  expect_refused(Errc::invalid_argument, {"device id 1 is repeated"},
                 {.scaling = {.chips_per_worker = 2}, .backend = {.spmd = {.device_ids = {1, 1}}}});
  expect_refused(Errc::invalid_argument, {"backend.backend = Backend::none"},
                 {.backend = {.backend = Backend::none, .spmd = {.device_ids = {0}}}});
}

TEST(Validate, TakesAHybridMeshOfOneHost) {
  const HybridMesh one{{2, 4}, {1, 1}, {"data", "model"}};
  const JobSpec job = spec({.scaling = {.num_workers = 2}, .backend = {.spmd = {.hybrid = one}}});
  EXPECT_EQ(*job.mesh, Mesh({2, 4}, {"data", "model"}));
  EXPECT_EQ(job.chips_per_worker, 4);
  expect_refused(Errc::invalid_argument, {"both hybrid and mesh_shape (2,4)"},
                 {.backend = {.spmd = {.mesh_shape = {2, 4}, .hybrid = one}}});
}

TEST(Validate, TakesAHybridMeshOfSeveralHostsInOneMemory) {
  const HybridMesh two{{2, 2}, {1, 3}, {"data", "model"}};
  for (const int workers : {0, 1, 4}) {
    const JobSpec job =
        spec({.scaling = {.num_workers = workers}, .backend = {.spmd = {.hybrid = two}}});
    EXPECT_EQ(*job.mesh, two.mesh());
    EXPECT_EQ(job.num_chips(), 12);
  }
  const JobSpec eager =
      spec({.backend = {.spmd = {.hybrid = two}}, .run = {.debug = DebugMode::eager}});
  EXPECT_EQ(*eager.mesh, Mesh({1, 1}, {"data", "model"}));
}

TEST(Validate, RefusesAHybridMeshThatContradictsTheRest) {
  const HybridMesh two{{2, 2}, {2, 1}, {"data", "model"}};
  expect_refused(Errc::invalid_argument,
                 {"device_ids (1,0)", "hybrid.dcn = (2,1)", "leave device_ids empty"},
                 {.backend = {.spmd = {.device_ids = {1, 0}, .hybrid = two}}});
  expect_refused(
      Errc::mesh_mismatch,
      {"backend.spmd.hybrid has 2 hosts of 4 chips", "2 workers x 3 chips = 6", "dcn (2,1)",
       "ici (2,2)"},
      {.scaling = {.num_workers = 2, .chips_per_worker = 3}, .backend = {.spmd = {.hybrid = two}}});
  expect_refused(Errc::mesh_mismatch,
                 {"backend.spmd.hybrid: dcn x ici = {4, 2} has 8 chips", "num_workers = 3"},
                 {.scaling = {.num_workers = 3}, .backend = {.spmd = {.hybrid = two}}});
  expect_refused(Errc::invalid_argument, {"backend.spmd.hybrid: dcn x ici", "4096"},
                 {.backend = {.spmd = {.hybrid = HybridMesh{{64}, {128}, {"data"}}}}});
  expect_refused(Errc::mesh_mismatch, {"ici (2) has 1 entries", "dcn (2,2) has 2"},
                 {.backend = {.spmd = {.hybrid = HybridMesh{{2}, {2, 2}, {"data"}}}}});
  expect_refused(Errc::invalid_argument, {"backend.backend = Backend::none"},
                 {.backend = {.backend = Backend::none, .spmd = {.hybrid = two}}});
}

TEST(Validate, AcceptsTheBackendsAliases) {
  for (const Backend backend : {Backend::spmd, Backend::xla, Backend::xla_tpu}) {
    EXPECT_TRUE(spec({.backend = {.backend = backend}}).mesh);
  }
  EXPECT_FALSE(spec({.backend = {.backend = Backend::none}}).mesh);
}

TEST(Validate, RefusesNegativeSizes) {
  expect_refused(Errc::invalid_argument, {"scaling.num_workers", "-1"},
                 {.scaling = {.num_workers = -1}});
  expect_refused(Errc::invalid_argument, {"scaling.chips_per_worker", "-2"},
                 {.scaling = {.chips_per_worker = -2}});
}

TEST(Validate, RefusesTwoDifferentChipCounts) {
  expect_refused(Errc::invalid_argument, {"chips_per_worker = 2", "resources_per_worker", "= 4"},
                 {.scaling = {.chips_per_worker = 2, .resources_per_worker = {{"TPU", 4}}}});
}

TEST(Validate, RefusesWrongResources) {
  expect_refused(Errc::invalid_argument, {"resources_per_worker", "\"FPGA\"", "\"TPU\""},
                 {.scaling = {.resources_per_worker = {{"FPGA", 1}}}});
  expect_refused(Errc::invalid_argument, {"resources_per_worker", "0.5", "whole number"},
                 {.scaling = {.resources_per_worker = {{"TPU", 0.5}}}});
}

TEST(Validate, QuotesAWrongTopology) {
  for (const char* topology : {"65536x65537", "1048576x1048576x1048576x1048576"}) {
    expect_refused(Errc::invalid_argument, {"scaling.topology", topology, "4096"},
                   {.scaling = {.num_workers = 0, .topology = topology}});
  }
  for (const char* topology : {"4y4", "x4", "4x", "0x4", "-4", "4x4x4x4x"}) {
    expect_refused(Errc::invalid_argument, {"topology", topology},
                   {.scaling = {.num_workers = 4, .topology = topology}});
  }
}

TEST(Validate, ShowsTheGridWhereTopologyAndChipsDisagree) {
  expect_refused(Errc::mesh_mismatch, {"4x4", "16", "8"},
                 {.scaling = {.num_workers = 4, .chips_per_worker = 2, .topology = "4x4"}});
  expect_refused(Errc::mesh_mismatch, {"16", "num_workers = 3"},
                 {.scaling = {.num_workers = 3, .topology = "4x4"}});
}

TEST(Validate, NeedsATopologyForSeveralTpuWorkers) {
  expect_refused(Errc::invalid_argument, {"scaling.topology", "use_tpu", "4x4"},
                 {.scaling = {.num_workers = 4, .chips_per_worker = 4, .use_tpu = true}});
}

TEST(Validate, ChecksThePlacementStrategy) {
  for (const auto strategy :
       {PlacementStrategy::pack, PlacementStrategy::spread, PlacementStrategy::strict_pack}) {
    EXPECT_NO_THROW(spec({.scaling = {.num_workers = 2, .placement_strategy = strategy}}));
  }
  expect_refused(
      Errc::unavailable,
      {"PlacementStrategy::strict_spread", "2 hosts", "the job has 1 (this one is "},
      {.scaling = {.num_workers = 2, .placement_strategy = PlacementStrategy::strict_spread}});
}

/// Returns the job of a program that is started on `hosts` hosts.
JobSpec spec_on(int hosts, const TrainerOptions& options) {
  return validate(options, "test", {.index = 0, .count = hosts, .trainer = "h:1", .secret = "s"});
}

TEST(Validate, DividesAJobAmongHosts) {
  const JobSpec job =
      spec_on(2, {.scaling = {.num_workers = 4, .chips_per_worker = 2},
                  .backend = {.spmd = {.mesh_shape = {4, 2}, .axis_names = {"data", "model"}}}});
  EXPECT_EQ(job.workers_per_host(), 2);
  EXPECT_EQ(job.chips_per_host(), 4);
  EXPECT_EQ(dcn_shape(*job.mesh), (std::vector<std::int64_t>{2, 1}));
  EXPECT_NO_THROW(spec_on(
      2, {.scaling = {.num_workers = 2, .placement_strategy = PlacementStrategy::strict_spread}}));
}

TEST(Validate, TakesAsManyChipsAsAllHostsMayHave) {
  const JobSpec job = spec_on(16, {.scaling = {.num_workers = 512, .chips_per_worker = 8}});
  EXPECT_EQ(job.num_chips(), 4096);
  const auto refuses = [](int hosts, std::initializer_list<std::string_view> words,
                          ScalingConfig scaling) {
    expect_error(Errc::invalid_argument, words,
                 [&] { spec_on(hosts, {.scaling = std::move(scaling)}); });
  };
  refuses(2, {"num_workers = 514", "1 to 512 on all hosts"}, {.num_workers = 514});
  refuses(8, {"num_workers = 1032", "1 to 1024 on all hosts"}, {.num_workers = 1032});
  refuses(2, {"2 workers x 129 chips = 258 chips on a host", "up to 256"},
          {.num_workers = 4, .chips_per_worker = 129});
  refuses(32, {"32 hosts x 256 chips = 8192 chips", "4096 in a job"},
          {.num_workers = 1024, .chips_per_worker = 8});
}

TEST(Validate, RefusesAJobThatItsHostsCannotDivide) {
  const auto refuses = [](Errc code, std::initializer_list<std::string_view> words,
                          const TrainerOptions& options) {
    expect_error(code, words, [&] { spec_on(2, options); });
  };
  refuses(Errc::mesh_mismatch, {"scaling.num_workers = 3 with WEFT_HOSTS = 2", "a multiple of 2"},
          {.scaling = {.num_workers = 3}});
  refuses(Errc::mesh_mismatch, {"scaling.num_workers = 0 with WEFT_HOSTS = 2"},
          {.scaling = {.num_workers = 0}});
  refuses(Errc::mesh_mismatch, {"hybrid.dcn = (4,1) has 4 hosts, but WEFT_HOSTS = 2"},
          {.scaling = {.num_workers = 4},
           .backend = {.spmd = {.hybrid = HybridMesh{
                                    .ici = {1, 1}, .dcn = {4, 1}, .axis_names = {"a", "b"}}}}});
  refuses(Errc::mesh_mismatch, {"can't be divided among WEFT_HOSTS = 2", "backend.spmd.hybrid"},
          {.scaling = {.num_workers = 2},
           .backend = {.spmd = {.mesh_shape = {2}, .axis_names = {"a"}, .device_ids = {1, 0}}}});
  refuses(Errc::unavailable, {"strict_pack", "all 2 workers on one host", "on 2 hosts"},
          {.scaling = {.num_workers = 2, .placement_strategy = PlacementStrategy::strict_pack}});
  refuses(Errc::unavailable, {"strict_spread", "needs 4 hosts", "the job has 2"},
          {.scaling = {.num_workers = 4, .placement_strategy = PlacementStrategy::strict_spread}});
}

TEST(Validate, KeepsTheMemoryOfAJobOnSeveralHosts) {
  const JobSpec spec = spec_on(2, {.scaling = {.num_workers = 2}, .run = {.keep_for_rescue_s = 5}});
  EXPECT_EQ(spec.keep_for_rescue_s, 5);
  EXPECT_TRUE(spec.is_rescuable());
}

TEST(Validate, RefusesABadTimeout) {
  expect_refused(Errc::invalid_argument, {"backend.timeout_s", "0"}, {.backend = {.timeout_s = 0}});
}

TEST(Validate, RefusesContradictorySizesWithBothNumbers) {
  expect_refused(Errc::mesh_mismatch, {"data_parallel_size", "3", "16"},
                 {.scaling = {.num_workers = 4, .chips_per_worker = 4},
                  .backend = {.spmd = {.data_parallel_size = 3, .model_parallel_size = 4}}});
  expect_refused(Errc::mesh_mismatch, {"16", "8"},
                 {.scaling = {.num_workers = 4, .chips_per_worker = 4},
                  .backend = {.spmd = {.mesh_shape = {2, 4}}}});
  expect_refused(Errc::invalid_argument, {"backend.backend = Backend::none", "backend.spmd"},
                 {.backend = {.backend = Backend::none, .spmd = {.mesh_shape = {1}}}});
}

TEST(Validate, ChecksNameAndFolders) {
  expect_refused(Errc::invalid_argument, {"run.name", "a/b"}, {.run = {.name = "a/b"}});
  expect_refused(Errc::invalid_argument, {"run.storage_path"}, {.run = {.storage_path = ""}});
  expect_refused(Errc::invalid_argument, {"max_to_keep", "-1"},
                 {.run = {.checkpoint = {.max_to_keep = -1}}});
  expect_refused(Errc::invalid_argument, {"callbacks"}, {.run = {.callbacks = {nullptr}}});
}

TEST(Validate, RefusesAUrlWhereverAPathIsTaken) {
  expect_refused(Errc::unavailable, {"run.storage_path = \"gs://runs\" is a URL"},
                 {.run = {.storage_path = "gs://runs"}});
  expect_refused(Errc::unavailable, {"run.checkpoint.path = \"gs://bucket/x\" is a URL"},
                 {.run = {.checkpoint = {.path = "gs://bucket/x"}}});
  expect_refused(Errc::unavailable, {"run.resume = \"https://host/x\" is a URL"},
                 {.run = {.resume = "https://host/x"}});
  expect_refused(Errc::unavailable, {"run.resume = \"file:///x\"", "without \"file://\""},
                 {.run = {.resume = "file:///x"}});
}

TEST(Validate, RefusesAPartialResumeOfNothing) {
  expect_refused(Errc::invalid_argument, {"run.resume_partial", "never"},
                 {.run = {.resume_partial = true}});
  EXPECT_TRUE(spec({.run = {.resume = "/x", .resume_partial = true}}).resume_partial);
}

TEST(Validate, RefusesAConfigThatWasNoJson) {
  expect_refused(Errc::invalid_argument, {"loop_config", "isn't JSON"},
                 {.loop_config = Config::parse("{lr: 1}", nullptr, false)});
}

TEST(Validate, NamesWhatIsWrongWithTheFailureConfig) {
  const auto expect = [](std::initializer_list<std::string_view> words,
                         const FailureConfig& failure, int workers = 2) {
    expect_refused(Errc::invalid_argument, words,
                   {.scaling = {.num_workers = workers}, .run = {.failure = failure}});
  };
  expect({"max_failures = -2", "-1 for any number"}, {.max_failures = -2});
  expect({"max_failures = 3", "num_workers = 0"}, {.max_failures = 3}, 0);
  expect({"backoff_s = -1", "0 to 60"}, {.backoff_s = -1});
  expect({"state_versions = 3", "expected 2, or 1"}, {.state_versions = 3});
}

TEST(Validate, NamesACheckOfReplicasThatAreNotKept) {
  expect_refused(Errc::invalid_argument, {"check_replicas_every = 5", "state_versions to 2"},
                 {.run = {.failure = {.state_versions = 1}, .check_replicas_every = 5}});
}

TEST(Validate, NamesAGraceThatIsNoTime) {
  expect_refused(Errc::invalid_argument, {"run.grace_s = -1", "from 0"}, {.run = {.grace_s = -1}});
  expect_refused(Errc::invalid_argument, {"run.grace_s = inf"},
                 {.run = {.grace_s = std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(validate({.run = {.grace_s = 0.5}}, "app").grace(), std::chrono::milliseconds(500));
}

TEST(Validate, ComparesReplicasWhereThereAreSome) {
  EXPECT_EQ(spec({}).check_replicas_every, 0U);
  EXPECT_EQ(spec({.run = {.check_replicas_every = 50}}).check_replicas_every, 50U);
  expect_refused(Errc::invalid_argument,
                 {"run.check_replicas_every = -1", "1 or more, or 0 to compare nothing"},
                 {.run = {.check_replicas_every = -1}});
  expect_refused(
      Errc::invalid_argument,
      {"run.check_replicas_every = 5", "backend.backend = Backend::none", "Backend::spmd"},
      {.backend = {.backend = Backend::none}, .run = {.check_replicas_every = 5}});
}

TEST(Validate, NamesTheOpenFilesThatAJobNeeds) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 200;
  ::setrlimit(RLIMIT_NOFILE, &few);
  expect_refused(
      Errc::no_space,
      {"128 workers and 256 chips need 921 open files", "ulimit -n is 200", "ulimit -n "},
      {.scaling = {.num_workers = 128, .chips_per_worker = 2}});
  EXPECT_EQ(spec({.scaling = {.num_workers = 16}}).num_chips(), 16);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Validate, TakesTheFailureConfigOver) {
  const JobSpec spec = validate(
      {.run = {.failure = {.max_failures = -1, .restart = Restart::group, .backoff_s = 0.5}}},
      "app");
  EXPECT_EQ(spec.recovery.max_failures, -1);
  EXPECT_EQ(spec.recovery.restart, Restart::group);
  EXPECT_EQ(spec.recovery.backoff_ms, 500U);
}

Target without_kept_memory() {
  Target target = kCpuTarget;
  target.name = "forgetful";
  target.keeps_memory = false;
  return target;
}

TEST(Validate, RefusesToKeepStateInMemoryThatDoesNotStay) {
  const Target forgetful = without_kept_memory();
  RunConfig run{.failure = {.max_failures = 3}};
  check_kept_state(run, kCpuTarget);
  expect_error(Errc::invalid_argument,
               {"run.failure.max_failures = 3", "forgetful", "state_versions to 1"},
               [&] { check_kept_state(run, forgetful); });
  run.failure.state_versions = 1;
  check_kept_state(run, forgetful);
  run.keep_for_rescue_s = 60;
  check_kept_state(run, kCpuTarget);
  expect_error(Errc::invalid_argument, {"run.keep_for_rescue_s = 60", "forgetful", "set it to 0"},
               [&] { check_kept_state(run, forgetful); });
}

}  // namespace
}  // namespace weft::validate_test
