#include "pipeline/program/weight_folds.h"

#include <algorithm>

namespace antichain {
namespace {

class WeightFolds {
 public:
  WeightFolds(RankProgram& program, int rank, int microbatches, const StepNetwork& network, const Plan& plan,
              const Crossing& crossing)
      : program_(program),
        rank_(rank),
        microbatches_(microbatches),
        network_(network),
        stage_of_(plan.stage_of(int(network.size()))),
        crossing_(crossing) {}

  void add(const SharedWeight& weight) {
    WeightFold fold;
    bool goes_on = false;  // the use before is this rank's, too
    for (size_t i = 0; i < weight.uses.size(); ++i) {
      const ParamUse& use = weight.uses[i];
      if (has(use)) {
        if (!goes_on)
          fold.runs.push_back({.received = i == 0 ? no_buffer : buffer(weight.uses[i - 1], false)});
        fold.runs.back().uses.push_back(use);
        fold.first = use;
      } else if (goes_on) {
        fold.runs.back().sent = buffer(weight.uses[i - 1], true);
      }
      goes_on = has(use);
    }
    if (fold.runs.empty()) return;
    const ParamUse& last = weight.uses.back();
    if (!goes_on) fold.total = buffer(last, false);
    if (goes_on && !std::ranges::all_of(weight.uses, [&](const ParamUse& use) { return has(use); }))
      fold.runs.back().sent = buffer(last, true);
    program_.weight_folds.push_back(std::move(fold));
  }

 private:
  int stage(const ParamUse& use) const { return stage_of_[size_t(use.node)]; }
  bool has(const ParamUse& use) const {
    return std::ranges::count(crossing_.ranks[size_t(stage(use))], rank_) > 0;
  }
  // Returns the buffer of what is folded down to the use. One copy serves the whole step.
  BufferId buffer(const ParamUse& use, bool sent) {
    const auto [at, added] = program_.weights.try_emplace({{Flow::weight, use.node, use.param}, sent},
                                                          BufferId(program_.buffers.size()));
    if (added)
      program_.buffers.push_back({.content = Content::weight,
                                  .stage = stage(use),
                                  .node = use.node,
                                  .spec = network_[size_t(use.node)].shared.at(use.param),
                                  .replicas = microbatches_,
                                  .copies = 1});
    return at->second;
  }

  RankProgram& program_;
  const int rank_, microbatches_;
  const StepNetwork& network_;
  const std::vector<int> stage_of_;
  const Crossing& crossing_;
};

}  // namespace

void add_weight_folds(RankProgram& program, int rank, int microbatches, const StepNetwork& network,
                      const Profile& profile, const Plan& plan, const Crossing& crossing) {
  WeightFolds folds(program, rank, microbatches, network, plan, crossing);
  for (const SharedWeight& weight : profile.shared_weights()) folds.add(weight);
}

}  // namespace antichain
