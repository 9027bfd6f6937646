// What launchers say in the environment is understood, and its contradictions are explained.
#include "pipeline/host/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/expect_error.h"

namespace antichain {
namespace {

class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                             "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"})
      ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
};

TEST_F(Launch, NobodyLaunched) {
  EXPECT_EQ(rank_hint(), 0);
  EXPECT_FALSE(launched_in_parallel());
  EXPECT_NO_THROW(check_launch(1));
}

TEST_F(Launch, OpenMpi) {
  set("OMPI_COMM_WORLD_RANK", "3");
  set("OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_EQ(rank_hint(), 3);
  EXPECT_TRUE(launched_in_parallel());
}

TEST_F(Launch, OneProcessOfOpenMpiIsNotParallel) {
  set("OMPI_COMM_WORLD_RANK", "0");
  set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_FALSE(launched_in_parallel());
}

TEST_F(Launch, Hydra) {
  set("PMI_RANK", "2");
  set("PMI_SIZE", "8");
  EXPECT_EQ(rank_hint(), 2);
  EXPECT_TRUE(launched_in_parallel());
}

TEST_F(Launch, SlurmStep) {
  set("SLURM_PROCID", "1");
  set("SLURM_STEP_ID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  EXPECT_EQ(rank_hint(), 1);
  EXPECT_TRUE(launched_in_parallel());
  EXPECT_NO_THROW(check_launch(2));
  expect_error([] { check_launch(1); }, {"Slurm started 2 tasks", "srun --mpi=pmix -n 2"});
}

TEST_F(Launch, ABatchScriptAloneIsNotParallel) {
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");  // of the allocation; no step was started
  EXPECT_FALSE(launched_in_parallel());
  EXPECT_NO_THROW(check_launch(1));
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
