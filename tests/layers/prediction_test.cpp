// Tests that predicted weights are those that the update itself would make: step by step those of gradients
// of zero, and else those of a gradient that stays as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/grouped.h"
#include "framework/muon.h"
#include "framework/prediction.h"
#include "framework/random.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

constexpr int ahead = 3;
constexpr uint64_t late = 100'000;  // a step from which AdamW's corrections are 1
constexpr float rate = 1e-3f;

// A State is a parameter, a matrix of 12 x 20, after some steps, whose gradient was `gradient`.
struct State {
  explicit State(std::shared_ptr<const Optimiser> of) : optimiser(std::move(of)) {
    const ParamSpec spec{.shape = {12, 20}, .hidden_matrix = true};
    for (const std::string& slot : slots_of(*optimiser, spec)) {
      slots.push_back(tensor(slots.size() + 3));
      float* const values = slots.back().data<float>();
      for (int64_t i = 0; slot == "exp_avg_sq" && i < gradient.elements(); ++i) values[i] *= values[i];
    }
  }
  static Tensor tensor(uint64_t key) {
    const Tensor made = Tensor::host({{12, 20}});
    for (int64_t i = 0; i < made.elements(); ++i)
      made.data<float>()[i] = float(Philox{key}.words(uint64_t(i))[0]) / 2147483648.f - 1;
    return made;
  }
  static Tensor copy(const Tensor& of) {
    const Tensor made = Tensor::host(of.spec());
    std::copy_n(of.data<float>(), of.elements(), made.data<float>());
    return made;
  }

  // Returns the weights after so many updates with this gradient.
  Tensor updated(const Tensor& by) const {
    Trained t{copy(w), by, {}, {}};
    for (const Tensor& slot : slots) t.slots.push_back(copy(slot));
    const auto update = cpu.make_update(optimiser, context, {t});
    for (int i = 1; i <= ahead; ++i) update->run(context, {rate, late + uint64_t(i)});
    return t.w;
  }
  Tensor predicted(const std::string& method) const {
    const auto pass = prediction_of(optimiser, *prediction_method(method), ahead);
    const Trained t{Tensor::host(w.spec()), w, slots, {}};
    cpu.make_update(pass, context, {t})->run(context, {rate, late});
    return t.w;
  }
  // Returns the largest difference of two results, relative to the largest move.
  double difference(const Tensor& a, const Tensor& b) const {
    double most = 0, moved = 0;
    for (int64_t i = 0; i < a.elements(); ++i) {
      most = std::max(most, double(std::abs(a.data<float>()[i] - b.data<float>()[i])));
      moved = std::max(moved, double(std::abs(a.data<float>()[i] - w.data<float>()[i])));
    }
    EXPECT_GT(moved, 0);
    return most / moved;
  }

  const Backend& cpu = (register_cpu_backend(), backend("cpu"));
  mutable Context context{cpu, 1};
  std::shared_ptr<const Optimiser> optimiser;
  Tensor w = tensor(1), gradient = tensor(2);
  std::vector<Tensor> slots;
};

Tensor zeros() {
  const Tensor made = Tensor::host({{12, 20}});
  std::fill_n(made.data<float>(), made.elements(), 0.f);
  return made;
}

std::shared_ptr<const Optimiser> sgd(bool nesterov) {
  return std::make_shared<Sgd>(SgdOptions{.weight_decay = 0, .nesterov = nesterov});
}

// Weights of the order of 1 move by 1e-3 to 1e-2, so rounding is below 1e-4 of that. In three steps AdamW's
// mean squares lose 0.3 %, so its steps would grow by less than that.
TEST(Prediction, StepByStepIsWhatUpdatesWithoutGradientsMake) {
  for (const bool nesterov : {false, true}) {
    const State of(sgd(nesterov));
    EXPECT_LT(of.difference(of.updated(zeros()), of.predicted("momentum")), 1e-4);
    const State muon(std::make_shared<Muon>(MuonOptions{.nesterov = nesterov}));
    EXPECT_LT(muon.difference(muon.updated(zeros()), muon.predicted("momentum")), 1e-3);
  }
  const State adamw(std::make_shared<AdamW>(AdamWOptions{.weight_decay = 0.1}));
  EXPECT_LT(adamw.difference(adamw.updated(zeros()), adamw.predicted("momentum")), 3e-3);
}

// Each optimiser's slots are those that the gradient leaves as they are.
TEST(Prediction, StepsAsTheLastOneAreWhatTheSameGradientMakes) {
  for (const bool nesterov : {false, true}) {
    State of(sgd(nesterov));
    for (int64_t i = 0; i < of.w.elements(); ++i)
      of.slots[0].data<float>()[i] = of.gradient.data<float>()[i] / (1 - 0.9f);
    for (const char* method : {"spectrain", "pipeoptim", "xpipe"})
      EXPECT_LT(of.difference(of.updated(of.gradient), of.predicted(method)), 1e-4) << method;
    State muon(std::make_shared<Muon>(MuonOptions{.nesterov = nesterov, .adamw = {.weight_decay = 0.1}}));
    muon.slots[0] = State::copy(muon.gradient);
    EXPECT_LT(muon.difference(muon.updated(muon.gradient), muon.predicted("pipeoptim")), 1e-3);
  }
  State adamw(std::make_shared<AdamW>(AdamWOptions{.weight_decay = 0.1}));
  adamw.slots[0] = State::copy(adamw.gradient);
  for (int64_t i = 0; i < adamw.w.elements(); ++i)
    adamw.slots[1].data<float>()[i] = std::pow(adamw.gradient.data<float>()[i], 2.f);
  EXPECT_LT(adamw.difference(adamw.updated(adamw.gradient), adamw.predicted("pipeoptim")), 1e-3);
  EXPECT_GT(adamw.difference(adamw.updated(adamw.gradient), adamw.predicted("spectrain")), 1e-3);
}

TEST(Prediction, KnowsGroupsAndLeavesTheAverageOut) {
  const State plain(sgd(true));
  State averaged(std::make_shared<Averaged>(sgd(true), 0.9));
  averaged.slots.pop_back();  // as RankModel does
  EXPECT_EQ(plain.difference(plain.predicted("xpipe"), averaged.predicted("xpipe")), 0);
  const State grouped(std::make_shared<Grouped>(std::vector<ParameterGroup>{{sgd(true), 2}},
                                                std::map<std::string, size_t, std::less<>>{}));
  const Tensor once = plain.predicted("xpipe"), twice = grouped.predicted("xpipe");
  for (int64_t i = 0; i < once.elements(); ++i) {
    const float w = plain.w.data<float>()[i];
    EXPECT_NEAR(twice.data<float>()[i] - w, 2 * (once.data<float>()[i] - w), 1e-6);  // rounding of 1
  }
}

TEST(Prediction, NamesAreThoseOfTheTable) {
  EXPECT_EQ(prediction_method("none"), nullptr);
  EXPECT_EQ(prediction_method("momentum")->name, "momentum");
  expect_error([] { prediction_method("pipeoptimum"); }, {"pipeoptim"});
}

}  // namespace
}  // namespace antichain
