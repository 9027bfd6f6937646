// The launch has a worker for each channel of each part.
#include "framework/cuda/absorb.h"

namespace antichain::cuda {

void absorb(Stream stream, const RunningPart* parts, int64_t count) {
  constexpr Index workers = longest_running_part;
  for_each(stream, count * workers, [=] ANTICHAIN_DEVICE(Index i) {
    const RunningPart part = parts[i / workers];
    const Index worker = i % workers, c = part.first + worker;
    if (worker == 0 && part.batches) *part.batches += part.microbatches;
    if (worker >= part.channels) return;
    float mean = part.mean[c], variance = part.variance[c];
    for (int m = 0; m < part.microbatches; ++m)
      take_statistics(part.rule, part.statistics[2 * m][c], part.statistics[2 * m + 1][c], mean, variance);
    part.mean[c] = mean;
    part.variance[c] = variance;
  });
}

}  // namespace antichain::cuda
