// States the order of every sum once more (layers/cuda/sums.h): runs of float32 chains, a tree of runs, lanes
// of parts, a tree of lanes. Loops on the host and launched blocks must both give its bits.
#include <gtest/gtest.h>

#include <vector>

#include "framework/random.h"
#include "layers/cuda/sums.h"

namespace antichain::cuda {
namespace {

// Adds pairs `half` apart, as far as there are that many.
double tree(std::vector<double> values) {
  for (size_t half = 16; half > 0; half /= 2)
    for (size_t i = 0; i < half && i + half < values.size(); ++i) values[i] += values[i + half];
  return values[0];
}

double sum_of_run(const std::vector<float>& terms) {
  double sum = 0;
  float chained = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    chained += terms[i];
    if (i % 16 == 15) sum += double(chained), chained = 0;
  }
  return sum + double(chained);
}

double by_the_rule(const std::vector<float>& x, const PixelParts& parts, size_t channel) {
  std::vector<double> of_part, of_lane;
  for (size_t first = 0; first < parts.pixels; first += parts.length * 32) {
    std::vector<std::vector<float>> terms(32);
    for (size_t p = first; p < std::min<size_t>(parts.pixels, first + parts.length * 32); ++p)
      terms[p % 32].push_back(x[p * parts.channels + channel]);
    std::vector<double> of_run;
    for (const std::vector<float>& run : terms)
      if (!run.empty()) of_run.push_back(sum_of_run(run));
    of_part.push_back(tree(of_run));
  }
  const size_t per_lane = (of_part.size() + 31) / 32;
  for (size_t part = 0; part < of_part.size(); ++part)
    if (part % per_lane == 0)
      of_lane.push_back(of_part[part]);
    else
      of_lane.back() += of_part[part];
  return tree(of_lane);
}

TEST(Sums, HaveTheOrderOfTheRule) {
  for (const int64_t pixels : {1, 31, 33, 255, 256, 257, 1000, 9000, 70'001})
    for (const int64_t channels : {1, 3, 4, 24, 32, 36, 72}) {
      if (pixels * channels > 700'000) continue;
      std::vector<float> x(size_t(pixels * channels));
      for (size_t i = 0; i < x.size(); ++i) x[i] = Philox::uniform(Philox(1).words(i)[0]) - 0.3f;
      const PixelParts parts(pixels, channels);
      std::vector<Sum> partials(size_t(parts.partials()));
      std::vector<double> right;
      for (size_t c = 0; c < size_t(channels); ++c) right.push_back(by_the_rule(x, parts, c));
      std::vector<double> sums(static_cast<size_t>(channels), -1);
      sum_channels<SumRun>(
          nullptr, parts, Partials<Sum>(partials.data()),
          [](SumRun& run, bool, float term) { run.part += term; },
          [at = sums.data()](Index c, const Sum& all) { at[c] = all.value; },
          read(static_cast<const float*>(x.data())));
      EXPECT_EQ(sums, right) << pixels << " pixels of " << channels;
    }
}

}  // namespace
}  // namespace antichain::cuda
