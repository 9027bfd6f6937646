// A LoaderSource gives the runner samples of a data set: the inputs that a loader fills, of the batch at a
// position that the caller moves. Micro-batches beyond a batch are those of the next ones.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "data/loader.h"
#include "pipeline/run/runner.h"

namespace antichain {

struct TrainOptions;

// Returns how the samples of a rank's stages are loaded, the first of which is at this seat.
LoaderOptions loading(const TrainOptions&, const RankModel&, const Seat&, bool train,
                      const BatchPosition& first);

class LoaderSource : public BatchSource {
 public:
  LoaderSource(std::shared_ptr<const DataSet> data, const LoaderOptions& options)
      : loader_(std::move(data), options), microbatches_(options.microbatches) {}

  void fill(std::string_view input, int microbatch, const Tensor& out) override;
  const RawImages* raw(std::string_view input) const override;
  bool expects_more() const override { return next.has_value(); }
  void fill_next(std::string_view input, int microbatch, const Tensor& out) override;
  bool is_expected() const override { return drawn_ == position; }

  const Sampler& sampler() const { return loader_.sampler(); }
  BatchPosition position;
  std::optional<BatchPosition> next;  // the batch that comes after it, if any does

 private:
  Loader loader_;
  const int microbatches_;  // of a batch
  std::optional<BatchPosition> drawn_;
};

}  // namespace antichain
