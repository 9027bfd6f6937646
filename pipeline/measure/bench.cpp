#include "pipeline/measure/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstring>

#include "framework/random.h"
#include "pipeline/host/seconds.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_csv.h"

namespace antichain {
namespace {

Tensor draw(const TensorSpec& spec) {
  const Tensor values = Tensor::host(spec);
  const Philox random(0);
  for (int64_t i = 0; i < values.elements(); ++i)
    values.data<float>()[i] = 2 * Philox::uniform(random.words(uint64_t(i))[0]) - 1;
  return values;
}

}  // namespace

Schedule whole_backwards(const Profile& profile, const Plan& plan, int microbatches) {
  return make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
}

Schedule parted_backwards(const Profile& profile, const Plan& plan, int microbatches) {
  std::vector<std::string> cells;
  for (const char verb : std::string_view("FIW"))
    for (int m = 0; m < microbatches; ++m) cells.push_back(fmt::format("0{}{}", verb, m));
  const std::string origin = "the profiler's order";
  return make_schedule(profile, plan, parse_csv(fmt::format("{}", fmt::join(cells, ",")), origin), origin);
}

void RandomSource::fill(std::string_view input, int, const Tensor& out) {
  if (out.dtype() != DType::f32) {
    std::memset(out.raw(), 0, size_t(out.bytes()));  // page-locked memory is uninitialised
    return;
  }
  Tensor& values = drawn_[std::string(input)];
  if (!values) values = draw(out.spec());
  std::memcpy(out.raw(), values.raw(), size_t(out.bytes()));
}

Bench::Step Bench::step(bool traced) {
  const auto start = std::chrono::steady_clock::now();
  // The rate is 0, so that the weights stay as drawn and no value overflows.
  StepResult result = runner_.run(
      {.batch = model_.graph().microbatch() * microbatches(), .rate = 0, .traced = traced}, source_);
  return {seconds_since(start), std::move(result.events)};
}

}  // namespace antichain
