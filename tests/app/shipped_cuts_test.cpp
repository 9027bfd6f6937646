// The cuts shipped for our own models name nodes that these have, in both forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/model.h"
#include "partition/cut_file.h"
#include "partition/planner.h"
#include "partition/profile.h"

namespace antichain {
namespace {

const std::set<std::string> cifar_only = {"resnet20", "resnet32", "resnet56"};

TEST(ShippedCuts, fit_every_model_in_every_form) {
  const std::vector<std::string> shipped = models_with_shipped_cuts();
  for (const std::string& model : model_names()) {
    ASSERT_TRUE(std::count(shipped.begin(), shipped.end(), model)) << model;
    for (Form form : {Form::cifar, Form::imagenet}) {
      if (form == Form::imagenet && cifar_only.count(model)) continue;
      const Profile network = unpriced(make_model(model, {.form = form, .microbatch = 1}), "none");
      for (int stages : {2, 4, 8}) {
        const Plan plan = plan_handsplit(network, {.stages = stages});
        EXPECT_EQ(int(plan.stages.size()), stages) << model;
        EXPECT_NO_THROW(validate(plan, network)) << model;
      }
    }
  }
}

}  // namespace
}  // namespace antichain
