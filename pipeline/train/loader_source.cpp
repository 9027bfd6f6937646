#include "pipeline/train/loader_source.h"

#include <algorithm>

#include "framework/backend.h"
#include "pipeline/train/trainer.h"

namespace antichain {
namespace {

bool uses(const RankModel& model, std::string_view input) {
  const NodeId id = model.graph().find(input);
  return id >= 0 && std::ranges::any_of(model.graph().consumers(id), [&](NodeId c) { return model.owns(c); });
}

}  // namespace

LoaderOptions loading(const TrainOptions& options, const RankModel& model, const Seat& seat, bool train,
                      const BatchPosition& first) {
  return {.batch = options.batch,
          .microbatches = seat.microbatches,
          .first_microbatch = seat.replica,
          .every = seat.replicas,
          .seed = options.seed,
          .train = train,
          .augment = options.augment,
          .images = uses(model, Loader::images_input),
          .raw = options.device_augments && !model.context().backend().host_memory(),
          .first = first};
}

void LoaderSource::fill(std::string_view input, int microbatch, const Tensor& out) {
  const int64_t batch = position.batch + microbatch / microbatches_, all = sampler().batches();
  loader_.fill(input, {.epoch = position.epoch + batch / all, .batch = batch % all},
               microbatch % microbatches_, out);
}

void LoaderSource::fill_next(std::string_view input, int microbatch, const Tensor& out) {
  drawn_ = next;
  loader_.fill(input, *next, microbatch, out);
}

const RawImages* LoaderSource::raw(std::string_view input) const {
  return input == Loader::images_input ? loader_.raw() : nullptr;
}

}  // namespace antichain
