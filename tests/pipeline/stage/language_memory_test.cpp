// What a step of a language model keeps grows with the length of a sequence, and not with its square.
#include <gtest/gtest.h>

#include "framework/backend.h"
#include "layers/cpu/backend.h"
#include "models/llama.h"
#include "models/model.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"

namespace antichain {
namespace {

MemoryNeed need_of(const Graph& model) {
  register_cpu_backend();
  const Backend& cpu = backend("cpu");
  const Graph graph = lower(model, cpu);
  const Profile profile = unpriced(graph, cpu.description());
  const Plan plan = one_stage(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 2);
  return step_need(graph, *default_optimiser(), profile, plan, schedule, 0);
}

// Eight times as long, so eight times the bytes; a square anywhere would make it more.
TEST(LanguageMemory, OfLlamaGrowsWithTheLengthOfItsSequences) {
  const auto need = [](int tokens) {
    return need_of(make_model("llama", {.microbatch = 1, .sequence = tokens}));
  };
  const MemoryNeed brief = need(256), tall = need(2048);
  EXPECT_LE(double(tall.step.activations()), 8.3 * double(brief.step.activations()));
  EXPECT_LE(double(tall.step.scratch), 8.3 * double(brief.step.scratch));
  EXPECT_GT(double(tall.step.activations()), 7.9 * double(brief.step.activations()));
}

}  // namespace
}  // namespace antichain
