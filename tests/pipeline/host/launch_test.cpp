// What launchers say in the environment is understood, and its contradictions are explained.
#include "pipeline/host/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/expect_error.h"

namespace antichain {
namespace {

class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK",
          "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS",
          "SLURM_STEP_NUM_NODES", "SLURM_NTASKS", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE",
          "TORCHELASTIC_RUN_ID"})
      ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
};

const std::string open_mpi = "Open MPI v4.1.4", mpich = "MPICH 4.0.2";

using Environment = std::vector<std::pair<const char*, const char*>>;

TEST_F(Launch, LaunchersTellRankAndNumber) {
  struct Case {
    Environment environment;
    int rank;
    bool parallel;
  };
  for (const auto& [environment, rank, parallel] :
       {Case{{}, 0, false}, Case{{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 3, true},
        Case{{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, 0, false},
        Case{{{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}}, 2, true},
        // A batch script alone: these are of the allocation, and no step was started.
        Case{{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}, 0, false}}) {
    SetUp();
    for (const auto& [name, value] : environment) set(name, value);
    EXPECT_EQ(rank_hint(), rank);
    EXPECT_EQ(launched_in_parallel(), parallel);
    if (!parallel) {
      EXPECT_NO_THROW(check_launch(open_mpi, 1));
    }
  }
}

TEST_F(Launch, SeveralHosts) {
  EXPECT_FALSE(launched_on_several_hosts());
  set("OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_FALSE(launched_on_several_hosts());  // it does not say
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "4");
  EXPECT_FALSE(launched_on_several_hosts());
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  EXPECT_TRUE(launched_on_several_hosts());
  SetUp();
  set("SLURM_STEP_NUM_NODES", "2");
  EXPECT_TRUE(launched_on_several_hosts());
}

TEST_F(Launch, SlurmStep) {
  set("SLURM_PROCID", "1");
  set("SLURM_STEP_ID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  EXPECT_EQ(rank_hint(), 1);
  EXPECT_TRUE(launched_in_parallel());
  EXPECT_NO_THROW(check_launch(open_mpi, 2));
  expect_error([] { check_launch(open_mpi, 1); }, {"Slurm started 2 tasks", "srun --mpi=pmix -n 2"});
  expect_error([] { check_launch(mpich, 1); }, {"Slurm started 2 tasks", "srun --mpi=pmi2 -n 2"});
  expect_error([] { check_launch(no_mpi_library, 1); }, {"Slurm started 2 tasks", "--local 2"});
}

// The launcher of one MPI starts a program that was built with another one: each process is alone.
TEST_F(Launch, LaunchersOfAnotherMpiAreNamed) {
  struct Case {
    Environment environment;
    std::string library, says;
    int rank;
  };
  const Case cases[] = {
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, open_mpi, "the mpiexec of MPICH, Intel MPI", 1},
      {{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_RANK", "2"}},
       mpich,
       "the mpirun of Open MPI started 3",
       2},
      {{{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "3"}}, open_mpi, "the mpirun of MVAPICH", 0},
      {{{"PMIX_RANK", "1"}}, mpich, "a launcher with PMIx started several processes", 1},
      {{{"WORLD_SIZE", "3"}, {"TORCHELASTIC_RUN_ID", "none"}}, open_mpi, "torchrun started 3", 0},
      // mpiexec.hydra in the shell of srun --pty, and in a job's script
      {{{"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_PROCID", "0"},
        {"PMI_RANK", "2"},
        {"PMI_SIZE", "3"}},
       open_mpi,
       "the mpiexec of MPICH",
       2},
      {{{"SLURM_NTASKS", "3"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, open_mpi, "the mpiexec of MPICH", 0},
      // srun --mpi=pmi2, and srun --mpi=pmix for an MPI that does not know it
      {{{"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "3"},
        {"SLURM_PROCID", "1"},
        {"PMI_RANK", "1"},
        {"PMI_SIZE", "3"}},
       open_mpi,
       "srun --mpi=pmix -n 3",
       1},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"}, {"PMIX_RANK", "2"}},
       mpich,
       "srun --mpi=pmi2 -n 3",
       2}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.says);
    SetUp();
    for (const auto& [name, value] : c.environment) set(name, value);
    EXPECT_TRUE(launched_in_parallel());
    EXPECT_EQ(rank_hint(), c.rank);
    EXPECT_NO_THROW(check_launch(c.library, 3));
    expect_error([&] { check_launch(c.library, 1); }, {c.says});
  }
}

TEST_F(Launch, OneProcessOfAnyLauncherIsRight) {
  const std::vector<Environment> environments = {
      {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
      {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}, {"SLURM_NTASKS", "4"}},  // in a job of four tasks
      {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}, {"SLURM_NTASKS", "4"}},
      {{"WORLD_SIZE", "4"}, {"RANK", "1"}}};  // of nobody known
  for (const auto& environment : environments) {
    SetUp();
    for (const auto& [name, value] : environment) set(name, value);
    SCOPED_TRACE(environment.front().first);
    EXPECT_FALSE(launched_in_parallel());
    EXPECT_EQ(rank_hint(), 0);
    EXPECT_NO_THROW(check_launch(open_mpi, 1));
  }
}

TEST_F(Launch, WarnsWhenRanksOutnumberCores) {
  const int cores = available_cores_on_host();
  EXPECT_EQ(crowding_warning(cores, 1), "");
  EXPECT_NE(crowding_warning(cores, 2), "");
  EXPECT_NE(crowding_warning(cores + 1, 1).find(std::to_string(cores + 1) + " ranks"), std::string::npos);
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace antichain
