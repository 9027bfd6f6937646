// The cuts shipped for our own models name nodes that these have, in both forms; also where the engine has
// fused them into others, and in the file of a profile.
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/backend.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "partition/plan/cut_file.h"
#include "partition/planners/planner.h"
#include "partition/profile/profile.h"

namespace antichain {
namespace {

bool has_form(const std::string& model, Form form) {
  const ModelTraits& traits = known_model(model).traits;
  return form == Form::cifar || (!traits.cifar_only && traits.reads == Reads::images);
}

TEST(ShippedCuts, FitEveryModelInEveryForm) {
  register_cpu_backend();
  const std::vector<std::string> shipped = models_with_shipped_cuts();
  for (const std::string& model : model_names()) {
    ASSERT_TRUE(std::count(shipped.begin(), shipped.end(), model)) << model;
    for (Form form : {Form::cifar, Form::imagenet}) {
      if (!has_form(model, form)) continue;
      const Graph graph = make_model(model, {.form = form, .microbatch = 1});
      const Graph fused = lower(graph, backend("cpu"));
      const Profile as_written = unpriced(graph, "none"), network = unpriced(fused, "cpu");
      for (int stages : {2, 4, 8}) {
        const Plan plan = plan_handsplit(as_written, {.stages = stages});
        EXPECT_EQ(int(plan.stages.size()), stages) << model;
        EXPECT_NO_THROW(validate(plan, as_written)) << model;
        const Plan of_fused = plan_handsplit(profile_from_json(to_json(network), "file"), {.stages = stages});
        EXPECT_NO_THROW(validate(of_fused, network)) << model;
        // Each stage ends in the node that has the value of the one it ends in as the model is written.
        for (int s = 0; s + 1 < stages; ++s) {
          const std::string& last = graph[plan.stages[size_t(s)].nodes.back()].name;
          EXPECT_TRUE(std::ranges::count(of_fused.stages[size_t(s)].nodes, fused.find(last)))
              << model << " " << last;
        }
      }
    }
  }
}

}  // namespace
}  // namespace antichain
