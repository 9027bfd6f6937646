// Tests looking up backends and kernels, and the scratch memory of a Context.
#include "framework/backend.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/expect_error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

TEST(Backend, LookingUpWhatIsNotThereSaysWhatThereIs) {
  const test::StandInBackend stand_in;
  EXPECT_NO_THROW(stand_in.entry("any"));
  try {
    stand_in.entry("conv9d");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "device 'stand-in' has no kernel for operator 'conv9d': it has any, blocked, plain, reorder");
  }
}

TEST(Backend, RegistryKnowsNamesAndRefusesOthers) {
  register_backend(std::make_unique<test::StandInBackend>());
  EXPECT_EQ(backend("stand-in").description(), "no arithmetic");
  EXPECT_THROW(backend("abacus"), Error);
}

TEST(Backend, AKernelFromOutsideIsFoundAndNeverHidesAnother) {
  const test::StandInBackend crowded("crowded");
  register_kernel("crowded", "own", crowded.entry("any"));
  EXPECT_NO_THROW(crowded.entry("own"));
  EXPECT_THROW(register_kernel("crowded", "own", {}), Error);
  register_kernel("another", "of another", {});
  EXPECT_THROW(crowded.entry("of another"), Error);
  register_kernel("crowded", "blocked", {});
  expect_error([&] { crowded.entry("blocked"); }, {"crowded", "blocked", "another type"});
}

class Resting : public Optimiser {
 public:
  std::string_view name() const override { return "resting"; }
  std::string str() const override { return "leaves all as it is"; }
  std::vector<std::string> slots(const ParamSpec&) const override { return {}; }
};

TEST(Backend, AnUpdateIsFoundByItsOptimisersName) {
  const test::StandInBackend stand_in;
  const Context context(stand_in);
  const auto resting = std::make_shared<Resting>();
  expect_error([&] { stand_in.make_update(resting, context, {}); },
               {"device 'stand-in' has no update for optimiser 'resting'"});
  const MakeUpdate make = one_by_one([](Context&, const Optimiser&, const Rate&, const Trained&) {});
  register_update("stand-in", "resting", make);
  EXPECT_NE(stand_in.make_update(resting, context, {}), nullptr);
  expect_error([&] { register_update("stand-in", "resting", make); },
               {"an update of optimiser 'resting'", "stand-in", "a name of its own"});
}

TEST(Context, WorkspaceGrowsAndIsReused) {
  const test::StandInBackend stand_in;
  Context context(stand_in);
  std::byte* small = context.workspace(100);
  EXPECT_EQ(context.workspace(50), small);
  EXPECT_NE(context.workspace(1 << 20), nullptr);
}

}  // namespace
}  // namespace antichain
